package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Attention is something that a person should look at, with all hosts that it concerns.
type Attention struct {
	What    string    `json:"what"` // a State, or one of the words below
	Project string    `json:"project,omitempty"`
	Channel string    `json:"channel,omitempty"`
	Version string    `json:"version,omitempty"`
	Hosts   []string  `json:"hosts"`
	Since   time.Time `json:"since"` // when the first of these hosts reported it
	// Why it is in the list. If Said is not empty, Why has its texts, which the hosts chose.
	Why string `json:"why,omitempty"`
	// Hint is what to do. If Said is not empty and has one hint, Hint is that one, which the hosts chose.
	Hint string `json:"hint,omitempty"`
	// Said is what hosts reported, each different error and hint with its hosts.
	Said []Said `json:"said,omitempty"`

	advice string // what to do, without the hints of hosts
}

// Kinds of attention in addition to the states of hosts.
const (
	Halted           = "halted rollout"
	Paused           = "paused rollout"
	Stuck            = "stuck rollout"
	WithdrawnRollout = "withdrawn rollout"
	Unseen           = "rollout that cannot be read"
	NoResult         = "no result in a rollout"
	Missing          = "missing in a rollout"
	NoEvidence       = "cannot see its rollout"
	OldAgent         = "old agent"
	Unreadable       = "project that cannot be read"
	WrongKey         = "wrong key"
	NoChannel        = "channel that does not exist"
	Conflict         = "conflict"
	Flooded          = "objects that are not records"
	NoRecord         = "no record"
	Renamed          = "renamed"
	Invalid          = "invalid record"
	Ahead            = "run in the future"
	Silent           = "silent"
	StoreClock       = "wrong clock of the store"
	Copied           = "one key on two machines"
	Withdrawn        = "withdrawn"
	Unregistered     = "unregistered"
)

// ranks returns the kinds of attention, the most urgent first.
func ranks() []string {
	return []string{StoreClock, Unreadable, Halted, Stuck, WithdrawnRollout, Unseen, NoResult, Missing, OldAgent,
		NoEvidence, string(Failed), string(RolledBack), string(Quarantined), NoChannel, WrongKey, Conflict, Copied,
		Flooded, Invalid, NoRecord, Ahead, Withdrawn, Silent, Renamed, Unregistered, Paused, string(Held)}
}

// attention returns what a person should look at, the most urgent first, and then by the number of hosts.
func attention(v *View) []Attention {
	found := map[string]*Attention{}
	add := func(what, hint string, h Host) {
		a := Attention{What: what, Hint: hint, Project: h.Project}
		if place := concerns(what, h); place != nil {
			a.Channel, a.Version = place.Channel, place.Version
		}
		if isFailure(what) && h.blamesBase() && h.tried() {
			a.Project = artifact.Base
		}
		id := fmt.Sprint(what, a.Project, " ", a.Channel, " ", a.Version)
		if found[id] == nil {
			a.Since = h.Seen
			found[id] = &a
		}
		found[id].Hosts = append(found[id].Hosts, h.Host)
		if h.Seen.Before(found[id].Since) {
			found[id].Since = h.Seen
		}
	}
	for _, h := range v.Hosts {
		notice(h, v.now, add)
	}
	for _, i := range v.Ignored {
		record := Host{Listed: hostrecord.Listed{Record: hostrecord.Record{Host: i.Host}, Seen: v.At}}
		if i.Why == hostrecord.Invalid {
			add(Invalid, "find out what writes the objects below fleet/PROJECT/"+i.Host+"/ and remove them; the host writes a "+
				"record with its next report", record)
			continue
		}
		add(WrongKey, forgetOld(i.Host), record)
	}
	for _, host := range v.unrecorded {
		if now := v.renamed[host]; now != "" {
			add(Renamed, fmt.Sprintf("%s has its key: if the host has that name for good: corpus host forget %s", now, host),
				Host{Listed: hostrecord.Listed{Record: hostrecord.Record{Host: host}, Seen: v.At}})
			continue
		}
		add(NoRecord, "let it write below fleet/ in the store (docs/buckets.md), and look at who may remove that; if the "+
			"machine is gone: corpus host forget "+host,
			Host{Listed: hostrecord.Listed{Record: hostrecord.Record{Host: host}, Seen: v.At}})
	}
	out := append(v.clocks(), v.flooded()...)
	for _, a := range found {
		out = append(out, *a)
	}
	order := ranks()
	slices.SortFunc(out, func(a, b Attention) int {
		return cmp.Or(slices.Index(order, a.What)-slices.Index(order, b.What), len(b.Hosts)-len(a.Hosts),
			cmp.Compare(a.Project, b.Project), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Channel, b.Channel))
	})
	return out
}

// flooded returns the hosts below whose names are very many objects that are not records, with the number of the worst.
func (v *View) flooded() []Attention {
	if len(v.Flooded) == 0 {
		return []Attention{}
	}
	hosts := slices.Sorted(maps.Keys(v.Flooded))
	worst := slices.MaxFunc(hosts, func(a, b string) int { return cmp.Compare(v.Flooded[a], v.Flooded[b]) })
	return []Attention{{What: Flooded, Hosts: hosts, Since: v.At,
		Why: fmt.Sprintf("below the name of %s are %s that are not records of it", worst,
			diag.Count(v.Flooded[worst], "object")),
		Hint: "find out what writes them, take its rights to write to the store away, and remove the objects below " +
			"fleet/PROJECT/" + worst + "/"}}
}

// notice adds the kinds of attention that a host needs.
func notice(h Host, now time.Time, add func(what, hint string, h Host)) {
	switch h.State {
	case Failed, RolledBack:
		add(string(h.State), diag.Run.Coded("on the host: corpus-agent why; from here: corpus host show NAME"), h)
	case Quarantined:
		const hint = "publish a corrected version, or on the host: corpus-agent why"
		add(string(h.State), hint, h)
		if base := h; h.AlsoBase && !h.OfBase {
			base.OfBase = true
			add(string(h.State), hint, base)
		}
	case Held:
		add(string(h.State), "on the host: corpus-agent unhold", h)
	}
	if h.Unseeing {
		add(NoEvidence, "on the host: corpus-agent why; it needs the rights of a host in rollouts (docs/buckets.md)", h)
	}
	if h.NoChannel != "" {
		add(NoChannel, Elsewhere(h.NoChannel), h)
	}
	switch {
	case h.Conflicts > 0:
		add(Conflict, "look at both machines: corpus host show "+h.Host+"; "+forgetOld(h.Host), h)
	case h.Replaced:
		add(WrongKey, forgetOld(h.Host), h)
	}
	if h.Copied {
		add(Copied, "one of them is a copy of the other: give it a name of its own, and remove /var/lib/corpus/host.key and "+
			"/var/lib/corpus/registered.json there", h)
	}
	if h.Withdrawn {
		add(Withdrawn, leave(h), h)
	}
	if h.Ahead() {
		add(Ahead, fmt.Sprintf("look at the clock of the host (timedatectl), which was %s; if that is right, the host "+
			"did not write the record: corpus host show %s", h.AheadBy(), h.Host), h)
	}
	switch {
	case !h.Silent || h.Replaced && !h.Foreign: // of a machine that was replaced, the new one reports
	case h.Seen.After(now):
		add(Silent, "its record has a time in the future: look at the clock of the host, and at that of the store "+
			"(timedatectl)", h)
	default:
		add(Silent, "on the host: systemctl status corpus-agent.timer; if it is gone: corpus host forget "+h.Host, h)
	}
	if !h.Signed {
		add(Unregistered, "the host registers its key within a day, or at once without its "+
			"/var/lib/corpus/registered.json; until then every user who may write to the store can write this", h)
	}
}

// OtherKeys returns the hosts whose newest records do not count, since another key than the first one signed them.
func (v *View) OtherKeys() map[string]bool {
	found := map[string]bool{}
	for _, i := range v.Ignored {
		if i.Why != hostrecord.Invalid {
			found[i.Host] = true
		}
	}
	for _, h := range v.Hosts {
		if h.Replaced {
			found[h.Host] = true
		}
	}
	return found
}

// forgetOld returns what to do about a name for which two machines sign.
func forgetOld(host string) string { return "if the machine was replaced: corpus host forget " + host }

// Elsewhere returns how hosts of a channel that does not exist get a release. It is the hint of the fleet and of
// the runs of these hosts.
func Elsewhere(channel string) string {
	project, name, _ := strings.Cut(channel, "/")
	setting, misnamed := "channels.service",
		"; or correct the name of the host, from which the channel follows without that setting"
	if project == artifact.Base {
		setting, misnamed = "channels.base", ""
	}
	return fmt.Sprintf("make the channel %s: corpus point %s %s VERSION; or give each of its hosts another one: "+
		"%s in its /etc/corpus/agent.yaml%s", channel, project, name, setting, misnamed)
}

// leave returns the commands by which the channel of a host leaves a withdrawn release.
func leave(h Host) string {
	of := "PROJECT CHANNEL"
	if place := concerns(Withdrawn, h); place != nil {
		of = h.Project + " " + place.Channel
	}
	if h.Behind {
		return "its channel names another release already, which it takes at its next run or in its turn: corpus rollout " +
			"status " + of
	}
	return "point the channel at another version: corpus promote, or corpus point; while a rollout brings the release: " +
		"corpus rollout abort " + of
}

// concerns returns the release because of which a host needs attention.
func concerns(what string, h Host) *hostrecord.Place {
	switch State(what) {
	case Failed, RolledBack, Quarantined:
		switch {
		case !h.tried():
			return nil // of no release
		case h.blamesBase():
			return cmp.Or(h.WantedBase, h.Base)
		}
		return cmp.Or(h.Wanted, h.Service)
	case Healthy, Held, Drifted:
		return h.Service
	}
	switch what {
	case Silent, Unregistered:
		return nil
	case NoChannel:
		_, channel, _ := strings.Cut(h.NoChannel, "/")
		return &hostrecord.Place{Channel: channel}
	}
	return h.Service
}

// isFailure reports whether a kind of attention is that a release failed on hosts.
func isFailure(what string) bool {
	return slices.Contains([]State{Failed, RolledBack, Quarantined}, State(what))
}
