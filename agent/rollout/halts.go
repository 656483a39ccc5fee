package rollout

import (
	"cmp"
	"slices"
	"time"
)

// sortHalts returns the halts that count and those of earlier epochs, by time. The epoch that the host signed decides,
// and not the time that the store gave the object: its clock may have been ahead when a person resumed the rollout.
// sortHalts ignores all halts of a host that has signed one of a later epoch, since such a host would stop the rollout
// again after each resume.
func (g *gathering) sortHalts() (present, past []Entry) {
	slices.SortFunc(g.halts, func(a, b Entry) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Host, b.Host)) })
	epoch, ahead := g.rollout.epoch(), map[string]bool{}
	for _, h := range g.halts {
		ahead[h.Host] = ahead[h.Host] || h.Epoch > epoch
	}
	for _, h := range g.halts {
		switch {
		case ahead[h.Host]:
			g.ignore(h.String(), "its host signed a halt for a time that is still to come")
		case h.Epoch < epoch:
			past = append(past, h)
		default:
			present = append(present, h)
		}
	}
	return present, past
}

// haltTimes returns the times of halts of the present epoch for decisions: after the resume that they name, whatever
// time the store gave them.
func (r Rollout) haltTimes(halts []Entry) []time.Time {
	times := timesOf(halts)
	for i, at := range times {
		if !at.After(r.Start.Resumed) {
			times[i] = r.Start.Resumed.Add(time.Second)
		}
	}
	return times
}

func timesOf(entries []Entry) []time.Time {
	times := make([]time.Time, len(entries))
	for i, e := range entries {
		times[i] = e.At
	}
	return times
}
