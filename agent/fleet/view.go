package fleet

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// State is the state of a host.
type State string

// The states of a host, the worst first.
const (
	Failed      State = "failed"
	RolledBack  State = "rolled back"
	Quarantined State = "quarantined" // it does not deploy what its channels name, since that failed here
	Held        State = "held"
	Drifted     State = "drifted" // its newest run had to correct it
	Healthy     State = "healthy"
)

// States lists the states, the worst first.
func States() []State { return []State{Failed, RolledBack, Quarantined, Held, Drifted, Healthy} }

// stateOf returns the state of a host from its record.
func stateOf(r hostrecord.Record) State {
	switch {
	case r.Outcome == "rolled-back":
		return RolledBack
	case r.Outcome != "converged" && r.Outcome != "refused" && r.Outcome != "interrupted", r.Unserved:
		return Failed // the next run continues after one that was interrupted
	case r.Quarantined:
		return Quarantined
	case r.Held:
		return Held
	case r.Drifted:
		return Drifted
	}
	return Healthy
}

// Host is a host and its current record.
type Host struct {
	hostrecord.Listed
	ID        string `json:"run,omitempty"` // of its newest run; "" if that could not begin
	State     State  `json:"state"`
	Behind    bool   `json:"behind,omitempty"`     // it does not have the release that its channel names
	Silent    bool   `json:"silent,omitempty"`     // it has not reported for longer than View.SilentAfter
	Withdrawn bool   `json:"withdrawn,omitempty"`  // a release that it has was withdrawn
	NoChannel string `json:"no_channel,omitempty"` // a channel that it follows and that its project no longer has
	Conflicts int    `json:"conflicts,omitempty"`  // other keys that were registered for its name
	Copied    bool   `json:"copied,omitempty"`     // another machine signs with its key at the same time

	storeBehind time.Duration // see Query.storeClock
}

// Row counts the hosts of a channel by version. Hosts, Healthy, Held, Drifted, Behind and Silent count those that have
// the version; Failed, RolledBack and Quarantined those on which it failed, whatever they have now.
type Row struct {
	artifact.Ref
	Version string `json:"version"`
	Digest  string `json:"digest"`
	Named   bool   `json:"named"` // the channel names this version
	// Also has the other versions that records of hosts have for the same bytes as the channel names; "" if there are
	// none.
	Also    string `json:"also,omitempty"`
	Hosts   int    `json:"hosts"`
	Healthy int    `json:"healthy"`

	Failed      int `json:"failed"`
	RolledBack  int `json:"rolled_back"`
	Quarantined int `json:"quarantined"`

	Held    int `json:"held"`
	Drifted int `json:"drifted"`
	Behind  int `json:"behind"`
	Silent  int `json:"silent"`
}

// View is a snapshot of a fleet.
type View struct {
	At          time.Time            `json:"at"`
	SilentAfter time.Duration        `json:"silent_after_ns"`
	Rows        []Row                `json:"rows"`
	Attention   []Attention          `json:"needs_a_person"`
	Hosts       []Host               `json:"hosts"`
	Ignored     []hostrecord.Ignored `json:"ignored,omitempty"` // invalid records

	// Flooded has the number of objects that are not records, of each host that has very many.
	Flooded map[string]int `json:"flooded,omitempty"`

	unrecorded []string          // hosts with a registered key and without a record
	renamed    map[string]string // the present names of those of them that were renamed
	renaming   hostkey.Renaming

	now         time.Time     // by the clock of the store
	storeBehind time.Duration // see Query.storeClock

	Known hostkey.Registry `json:"-"` // the keys of the hosts, as the store has them
	Fresh bool             `json:"-"` // Known was read by this Look
}

// Query selects a part of a fleet.
type Query struct {
	Store    store.Store
	Listings []trust.Listing // what the projects' channels name
	Now      time.Time       // by the clock of the store, if that sends its time
	Viewer   time.Time       // by the clock of this machine; zero for Now
	// SilentAfter is the time without a report or record after which a host counts as silent.
	SilentAfter time.Duration
	// Keys reads the keys of hosts; nil for hostkey.List.
	Keys Keys
	// Known has the keys of hosts from an earlier look. They are read again if they do not explain every record.
	Known hostkey.Registry

	Project, Channel   string // only hosts of these; "" for all
	Host               string // only this host; "" for all
	BehindOnly, Silent bool   // only hosts that are behind, or silent
}

// Look returns a View of the hosts of a fleet. It takes one request for a thousand hosts, and as many for their keys if
// these are not known from an earlier look.
func Look(ctx context.Context, q Query) (*View, error) {
	if q.Keys == nil {
		q.Keys = hostkey.List
	}
	v := &View{At: q.Now.UTC(), SilentAfter: q.SilentAfter, Rows: []Row{}, Attention: []Attention{}, Hosts: []Host{},
		Known: q.Known}
	records, listed, err := q.records(ctx, v)
	if err != nil {
		return nil, err
	}
	v.unrecorded, v.Flooded = q.unrecorded(v.Known, records), records.Flooded()
	if err := v.findRenamed(ctx, q.Store, listed); err != nil {
		return nil, err
	}
	v.now, v.storeBehind = q.storeClock(listed)
	named, copied := channels(q.Listings), copies(listed, v.Known)
	for _, r := range listed {
		h := named.host(r, q, v.now)
		h.storeBehind = v.storeBehind
		h.Copied = r.Twice || copied[r.Host]
		h.Conflicts = v.Known.Others(r.Host)
		h.Replaced = h.Replaced && v.Flooded[r.Host] == 0 // among very many other objects, one with another key shows nothing
		if q.wants(h) {
			v.Hosts = append(v.Hosts, h)
		}
	}
	v.Rows = rows(v.Hosts, named, q)
	v.Attention = attention(v)
	return v, nil
}

// copies returns the hosts whose key another host, which runs at the same time, registered under its own name.
func copies(listed []hostrecord.Listed, known hostkey.Registry) map[string]bool {
	byKey, found := map[hostkey.Public][]hostrecord.Listed{}, map[string]bool{}
	for _, r := range listed {
		if !r.Signed {
			continue
		}
		key := known[r.Host][0].Key
		for _, other := range byKey[key] {
			if r.Overlap(other) {
				found[r.Host], found[other.Host] = true, true
			}
		}
		if len(byKey[key]) < mostSharing {
			byKey[key] = append(byKey[key], r)
		}
	}
	return found
}

// mostSharing bounds the hosts of the same key with which another one is compared.
const mostSharing = 20

func (q Query) wants(h Host) bool {
	if q.BehindOnly && !h.Behind || q.Silent && !h.Silent {
		return false
	}
	if q.Channel == "" {
		return true
	}
	return h.Service != nil && h.Service.Channel == q.Channel
}

// pointers holds what channels name and what was withdrawn.
type pointers struct {
	named     map[artifact.Ref]trust.Pointer
	withdrawn map[string]string // "project digest" -> why; the digest as a record has it
	projects  map[string]bool   // those whose channels are known
}

func channels(listings []trust.Listing) pointers {
	p := pointers{map[artifact.Ref]trust.Pointer{}, map[string]string{}, map[string]bool{}}
	for _, l := range listings {
		p.projects[l.Project] = l.Err == nil
		for name, pointer := range l.Channels {
			p.named[artifact.Ref{Project: l.Project, Channel: name}] = pointer
		}
		for _, yank := range l.Yanked {
			p.withdrawn[l.Project+" "+yank.Digest.Short()] = yank.Reason
		}
	}
	return p
}

func (p pointers) host(r hostrecord.Listed, q Query, now time.Time) Host {
	h := Host{Listed: r, State: stateOf(r.Record)}
	if !r.Unbegun {
		h.ID = r.Run
	}
	// A record with a time in the future does not show that the host has reported recently.
	h.Silent = q.SilentAfter > 0 && now.Sub(r.Seen).Abs() > q.SilentAfter
	for project, place := range places(r.Record) {
		h.Behind = h.Behind || p.behind(project, place)
		if ref := (artifact.Ref{Project: project, Channel: place.Channel}); p.lacks(ref) && h.NoChannel == "" {
			h.NoChannel = ref.String()
		}
		_, withdrawn := p.withdrawn[project+" "+place.Digest]
		h.Withdrawn = h.Withdrawn || withdrawn && place.Digest != ""
	}
	return h
}

// lacks reports whether a project no longer has a channel.
func (p pointers) lacks(ref artifact.Ref) bool {
	_, there := p.named[ref]
	return ref.Channel != "" && p.projects[ref.Project] && !there
}

func (p pointers) behind(project string, place *hostrecord.Place) bool {
	pointer, ok := p.named[artifact.Ref{Project: project, Channel: place.Channel}]
	return ok && !place.Is(pointer.Digest)
}

// places returns the deployed releases of a host by project.
func places(r hostrecord.Record) map[string]*hostrecord.Place {
	all := map[string]*hostrecord.Place{}
	if r.Base != nil {
		all[artifact.Base] = r.Base
	}
	if r.Service != nil {
		all[r.Project] = r.Service
	}
	return all
}

// Follows reports whether the record of the host names a channel.
func (h Host) Follows(ref artifact.Ref) bool {
	place := places(h.Record)[ref.Project]
	return place != nil && ref.Channel != "" && place.Channel == ref.Channel
}

// rows counts hosts by project, channel and version. The releases that channels name have a row even without hosts.
func rows(hosts []Host, p pointers, q Query) []Row {
	t := table{}
	for ref, pointer := range p.named {
		if (q.Project == "" || ref.Project == q.Project) && (q.Channel == "" || ref.Channel == q.Channel) {
			t.row(ref, &hostrecord.Place{Version: pointer.Version, Digest: pointer.Digest.Short()}).Named = true
		}
	}
	for _, h := range hosts {
		for project, place := range places(h.Record) {
			wanted := h.Wanted
			if project == artifact.Base {
				wanted = h.WantedBase
			}
			ref := artifact.Ref{Project: project, Channel: place.Channel}
			place, wanted = t.named(ref, place, p), t.named(ref, wanted, p)
			t.row(ref, place).count(h, p.behind(project, place))
			t.blame(ref, h, cmp.Or(wanted, place), project)
		}
	}
	out := []Row{}
	for _, r := range t {
		if !r.empty() {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Channel, b.Channel),
			-boolean(a.Named)+boolean(b.Named), compareVersions(b.Version, a.Version))
	})
	return out
}

// compareVersions compares versions by their numbers, and equal ones as strings.
func compareVersions(a, b string) int {
	return cmp.Or(artifact.CompareVersions(a, b), strings.Compare(a, b))
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

type table map[string]*Row

func (t table) row(ref artifact.Ref, place *hostrecord.Place) *Row {
	id := ref.String() + " " + place.Version + " " + place.Digest
	if t[id] == nil {
		t[id] = &Row{Ref: ref, Version: place.Version, Digest: place.Digest}
	}
	return t[id]
}

// named returns a release under the version that its channel names, if the host has another version of the same bytes.
func (t table) named(ref artifact.Ref, place *hostrecord.Place, p pointers) *hostrecord.Place {
	pointer, ok := p.named[ref]
	if !ok || place == nil || !place.Is(pointer.Digest) || place.Version == pointer.Version {
		return place
	}
	as := *place
	as.Version = pointer.Version
	row := t.row(ref, &as)
	if also := strings.Split(row.Also, ", "); row.Also == "" {
		row.Also = place.Version
	} else if !slices.Contains(also, place.Version) {
		row.Also += ", " + place.Version
	}
	return &as
}

// empty reports whether no host has the version of a row, none failed on it and the channel does not name it. The
// records of hosts that waited for a release have it also after an abort.
func (r *Row) empty() bool {
	return !r.Named && r.Hosts+r.Failed+r.RolledBack+r.Quarantined == 0
}

// count counts a host that has the row's version.
func (r *Row) count(h Host, behind bool) {
	r.Hosts++
	r.Behind += boolean(behind)
	r.Silent += boolean(h.Silent)
	r.Held += boolean(h.Held)
	r.Drifted += boolean(h.State == Drifted)
	r.Healthy += boolean(h.State != Failed && !h.Silent && r.Version != "")
}

// blamesBase reports whether what failed on a host, or is in quarantine there, is base. Older agents do not record
// that: it is base then if the run was to change base and not the service.
func (h Host) blamesBase() bool {
	return h.Project != artifact.Base && (h.OfBase || h.WantedBase != nil && h.Wanted == nil)
}

// tried reports whether the newest run of a host tried a release. It did not if it could not begin, if it did not reach
// the store, or if it refused what the store has.
func (h Host) tried() bool {
	stopped := h.State == Failed && !h.Unserved && (h.Exit == exit.Unreachable || h.Exit == exit.Refused)
	return !h.Unbegun && !stopped
}

// blame counts a host on which the wanted version of a project failed. A run that could not begin is a failure of no
// version.
func (t table) blame(ref artifact.Ref, h Host, wanted *hostrecord.Place, project string) {
	base := project == artifact.Base && h.Project != artifact.Base
	also := base && h.AlsoBase && h.State == Quarantined
	if !h.tried() || h.blamesBase() != base && !also {
		return
	}
	r := t.row(ref, wanted)
	r.Failed += boolean(h.State == Failed)
	r.RolledBack += boolean(h.State == RolledBack)
	r.Quarantined += boolean(h.State == Quarantined)
}
