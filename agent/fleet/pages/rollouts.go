package pages

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Rollout is the progress of the rollout of a channel, from the records of its hosts.
type Rollout struct {
	Ref     artifact.Ref
	Version string // that is rolled out
	State   string // running, paused, halted, aborted or finished
	Next    string // what happens next
	Urgent  bool   // it waits for no waves
	Waves   []Wave
	Halts   []Halt
	Unread  string // why the results of its hosts are unknown; empty if they are known
}

// Finished is the state of a rollout whose hosts all have taken the release.
const Finished = "finished"

// Wave is a wave of a rollout. Counts are of hosts.
type Wave struct {
	Name, Share            string
	Hosts, Healthy, Failed int
	Open                   bool   // its hosts may take the release
	Why                    string // why they may not
}

// Halt is a halt that a host recorded.
type Halt struct {
	Host string
	At   time.Time // when the store received it
	Why  string    // its grounds
}

// rolloutShown is a rollout in the form for a page.
type rolloutShown struct {
	Channel, Version, State, Class, Says, Next, Unread string
	Waves                                              []waveShown
	Halts                                              []haltShown
}

type waveShown struct {
	Name, Size, Counts, State string
	Open                      bool
	Bar                       []part // 1000 wide
}

type haltShown struct {
	Halt
	Known bool // the host has a page
}

// rollouts returns the rollouts of a project, or for "" those of all projects that have not finished.
func (w *writer) rollouts(project string) (out []rolloutShown) {
	known := map[string]bool{}
	for _, h := range w.site.View.Hosts {
		known[h.Host] = true
	}
	for _, r := range w.site.Rollouts {
		if project == r.Ref.Project || project == "" && r.State != Finished {
			out = append(out, r.shown(known))
		}
	}
	return out
}

// mostHalts bounds the halts of a rollout on a page.
const mostHalts = 5

func (r Rollout) shown(known map[string]bool) rolloutShown {
	s := rolloutShown{Channel: r.Ref.String(), Version: shown(r.Version), State: r.State, Class: class(r.State),
		Next: shown(r.Next), Unread: shown(r.Unread)}
	hosts, healthy, failed := 0, 0, 0
	for _, wave := range r.Waves {
		hosts, healthy, failed = hosts+wave.Hosts, healthy+wave.Healthy, failed+wave.Failed
		s.Waves = append(s.Waves, wave.shown())
	}
	s.Says = fmt.Sprintf("%s of %s are healthy with it, and it failed on %s", grouped(healthy), hostCount(hosts),
		grouped(failed))
	if r.Urgent {
		s.Says += "; urgent, so it waits for no waves"
	}
	for _, h := range r.Halts[:min(len(r.Halts), mostHalts)] {
		h.Why = shown(h.Why)
		s.Halts = append(s.Halts, haltShown{h, known[h.Host]})
	}
	return s
}

func (w Wave) shown() waveShown {
	waiting := max(0, w.Hosts-w.Healthy-w.Failed)
	s := waveShown{Name: shown(w.Name), Size: strings.TrimPrefix(w.Share+", "+hostCount(w.Hosts), ", "), Open: w.Open,
		Counts: fmt.Sprintf("%s healthy, %s failed, %s waiting", grouped(w.Healthy), grouped(w.Failed), grouped(waiting))}
	switch {
	case waiting == 0:
		s.State = "all have finished"
	case w.Open:
		s.State = "may take it"
	default:
		s.State = cmp.Or(shown(w.Why), "waits")
	}
	x := 0
	for _, p := range []struct {
		state fleet.State
		n     int
	}{{fleet.Healthy, w.Healthy}, {fleet.Failed, w.Failed}} {
		if p.n == 0 || w.Hosts == 0 {
			continue
		}
		width := min(max(1000*p.n/w.Hosts, 4), 1000-x) // a single host of many stays visible
		s.Bar = append(s.Bar, part{Class: class(string(p.state)), Title: fmt.Sprintf("%s: %s", p.state, hostCount(p.n)), X: x,
			W: width})
		x += width
	}
	return s
}
