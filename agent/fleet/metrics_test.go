package fleet_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestMetrics checks that texts of hosts cannot break the lines of metrics, and that a halted rollout without hosts
// counts.
func TestMetrics(t *testing.T) {
	v := fleet.View{Rows: []fleet.Row{{Ref: artifact.Ref{Project: "p", Channel: "c"}, Digest: "9\"}\n#\\\x1b[31m\u202e"}},
		Attention: []fleet.Attention{{What: fleet.Halted}}}
	var b bytes.Buffer
	if err := v.WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`digest="9\"}?#\\?[31m?"`, `corpus_fleet_needs_a_person{why="halted rollout"} 1`,
		`corpus_fleet_needs_a_person_hosts{why="halted rollout"} 0`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the metrics lack %s:\n%s", want, b.String())
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Errorf("the metrics have control characters: %q", b.String())
	}
}
