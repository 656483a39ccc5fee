package rollout

import (
	"fmt"
	"strings"
	"time"
)

// FormatWaves formats waves for ParseWaves.
func FormatWaves(waves []Wave) string {
	var parts []string
	for _, w := range waves {
		text := w.Share.String()
		if w.Name != "" {
			text = w.Name + "=" + text
		}
		if w.Soak > 0 {
			text += ":" + w.Soak.String()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ",")
}

// String returns a plan in one line, for people who sign it.
func (p Plan) String() string {
	text := fmt.Sprintf("waves %s, stops at %s, %s of a wave healthy, %s of a cluster at once", FormatWaves(p.Waves),
		p.Halt, p.Healthy, p.AtOnce)
	for _, list := range []struct {
		what  string
		items []string
	}{{"first", p.First}, {"last", p.Last}, {"regions", p.Regions}} {
		if len(list.items) > 0 {
			text += fmt.Sprintf(", %s %s", list.what, strings.Join(list.items, " "))
		}
	}
	for _, w := range p.Windows {
		text += fmt.Sprintf(", window %s", string(w))
	}
	if p.Agent != "" {
		text += ", agent " + p.Agent
	}
	return text
}

// Least returns the minimum duration of a rollout without failures, which is the sum of the soak times.
func (p Plan) Least() time.Duration {
	var d time.Duration
	for _, w := range p.Waves[:max(len(p.Waves)-1, 0)] {
		d += time.Duration(w.Soak)
	}
	return d
}
