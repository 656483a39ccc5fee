package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Limits of the number of objects of a rollout that are read: some for each host, and some more that do not count. A
// reader that stopped at the limit would miss failures behind it, so it returns an error instead.
const (
	objectsOfHost = 20
	otherObjects  = 20_000
)

// MostIgnored bounds the number of names in Evidence.Ignored.
const MostIgnored = 20

// clockSlack is how far the clock of the store may be behind the clock of a publisher who resumes a rollout. A halt
// that the store received earlier than that does not count: its host may have signed it for a later epoch in advance.
const clockSlack = 5 * time.Minute

// othersTried bounds the number of results of one host with other signatures that are kept for Rekeyed.
const othersTried = 5

// deeper is the name under which flooded counts objects below the results or halts of a host with more path elements
// than hosts write: their names do not show which host wrote them.
const deeper = "names that no host writes"

// Evidence holds the verified results of the hosts of a rollout.
type Evidence struct {
	Results []Entry   // the result that counts of each host, by host
	Halts   []Entry   // of the present epoch, by time
	Past    []Entry   // halts of earlier epochs, by time: a person has resumed the rollout since then
	Ignored []Ignored // the first names that do not count
	Objects int       // the number of objects that were read
	Summary time.Time // when the summary was made from which this was read; zero for a listing

	leases map[string]held // by key below the prefix
	newest time.Time
	tally  *plans.Tally
	others map[string][]Name // results that the keys of the roster did not sign, of hosts without valid results
}

// Ignored is a name that does not count, and why.
type Ignored struct {
	Name string `json:"name"` // below the prefix of the rollout
	Why  string `json:"why"`
}

// held is the entry of a lease in a listing.
type held struct {
	size int64
	at   time.Time
}

// Read reads the results of the hosts of a rollout: with one listing, or from the summary if the store cannot be
// listed. now is the store's time as far as it is known. The error wraps ErrNoEvidence if the store shows no host.
func (r Rollout) Read(ctx context.Context, s store.Store, now time.Time) (Evidence, error) {
	found := r.gathering(now)
	listed := false // the roster is in the listing; it is written first, so a listing without it is not of this rollout
	for info, err := range s.List(ctx, found.prefix) {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, store.ErrForbidden) {
			return r.readSummary(ctx, s, now, err)
		}
		if err != nil {
			return Evidence{}, fmt.Errorf("reading the results of hosts: %w", err)
		}
		listed = listed || info.Key == plans.RosterKey(r.Ref, r.Start.ID)
		if err := found.add(info.Key, info.Size, info.Modified); err != nil {
			return Evidence{}, err
		}
	}
	if !listed {
		return Evidence{}, diag.WithHint(fmt.Errorf("%w: its listing of %s lacks roster.json", ErrNoEvidence, found.prefix),
			"a proxy answers in the place of the store, or the store has lost objects: promote or point the channel again, or "+
				"`corpus rollout abort %s %s`", r.Ref.Project, r.Ref.Channel)
	}
	return found.evidence(), nil
}

// View returns the evidence up to a time. The store has all of it already, so a clock that is behind does not hide any.
func (e Evidence) View(now time.Time) plans.View { return e.tally.AsOf(e.atLeast(now)) }

// Rekeyed returns the hosts of the roster without valid results whose results are signed with another key that is
// registered under their names. A result with any other signature may come from any user who can write to the store.
func (r Rollout) Rekeyed(ctx context.Context, s store.Store, e Evidence) (hosts []string, err error) {
	for _, host := range slices.Sorted(maps.Keys(e.others)) {
		if len(hosts) == MostIgnored {
			break
		}
		keys, err := hostkey.Of(ctx, s, host)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(e.others[host], func(n Name) bool {
			return slices.ContainsFunc(keys, func(k hostkey.Registered) bool { return k.Key.Signed(r.text(n), n.Sig) })
		}) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// Decide returns whether a host takes the release now.
func (r Rollout) Decide(h plans.Host, e Evidence, now time.Time) plans.Verdict {
	return e.Decide(r.Plan, r.Start, r.Wave(h), now)
}

// gathering collects the valid names of a rollout.
type gathering struct {
	rollout Rollout
	now     time.Time // the store's
	prefix  string
	results []Entry
	halts   []Entry // of all epochs
	ignored []Ignored
	leases  map[string]held
	of      map[string]int // number of objects, by host of the roster
	others  map[string][]Name
	objects int
}

func (r Rollout) gathering(now time.Time) *gathering {
	return &gathering{rollout: r, now: now, prefix: r.prefix(), leases: map[string]held{}, of: map[string]int{},
		others: map[string][]Name{}}
}

func (g *gathering) add(key string, size int64, at time.Time) error {
	name := strings.TrimPrefix(key, g.prefix)
	if g.objects++; g.objects > otherObjects+objectsOfHost*len(g.rollout.Roster.Hosts) {
		return g.flooded()
	}
	if strings.HasPrefix(name, leasesDir) {
		g.lease(name, size, at)
		return nil
	}
	n, ok := ParseName(name)
	switch parts := strings.Split(name, "/"); {
	case len(parts) > 3:
		g.of[deeper]++
	case len(parts) == 3:
		if m, member := g.rollout.Roster.find(parts[1]); member {
			g.of[m.Name]++
		}
	}
	why := "it is not a name of a result"
	if ok {
		why = g.rollout.holds(n)
	}
	if why == wrongSignature && n.Outcome != "" {
		if len(g.others[n.Host]) < othersTried {
			g.others[n.Host] = append(g.others[n.Host], n)
		}
	}
	switch top := !strings.Contains(name, "/"); {
	case why == "" && n.Outcome == "":
		g.halts = append(g.halts, g.entries(n, at))
	case why == "":
		g.results = append(g.results, g.entries(n, at))
	case !top:
		g.ignore(name, why)
	}
	return nil
}

// lease adds an object below leasesDir.
func (g *gathering) lease(name string, size int64, at time.Time) {
	if why := notLease(name, size); why != "" {
		g.ignore(name, why)
		return
	}
	g.leases[name] = held{size, at}
}

// entries returns a valid name with its time and the wave of its host.
func (g *gathering) entries(n Name, at time.Time) Entry {
	m, _ := g.rollout.Roster.find(n.Host)
	return Entry{n, at.UTC(), g.rollout.Wave(m.host())}
}

// ignore records a name that does not count.
func (g *gathering) ignore(name, why string) {
	if len(g.ignored) < MostIgnored {
		g.ignored = append(g.ignored, Ignored{name, why})
	}
}

// flooded returns the error of a rollout with more objects than its hosts can have written.
func (g *gathering) flooded() error {
	worst, most := "hosts that the rollout does not know", g.objects
	for _, n := range g.of {
		most -= n
	}
	for host, n := range g.of {
		if n > most || n == most && host < worst {
			worst, most = host, n
		}
	}
	return diag.WithHint(fmt.Errorf("%w: below %s there are more than %s, at least %d of them of %s", ErrNoEvidence,
		strings.TrimSuffix(g.prefix, "/"), diag.Count(g.objects-1, "object"), most, worst),
		"a host, or a user with its rights, floods the store: revoke the rights, and remove what was written below %s; the "+
			"server's log says who writes", g.prefix)
}

// evidence returns the evidence from the collected names.
func (g *gathering) evidence() Evidence {
	e := Evidence{Objects: g.objects, leases: g.leases, others: g.others}
	e.Halts, e.Past = g.sortHalts()
	e.Ignored = g.ignored
	byHost := map[string][]Entry{}
	for i, said := range g.results {
		said = g.rollout.sinceResume(g.notAhead(said))
		g.results[i] = said
		byHost[said.Host] = append(byHost[said.Host], said)
	}
	for host, all := range byHost {
		e.Results = append(e.Results, counting(all, g.rollout.Start.Resumed))
		delete(g.others, host)
	}
	for _, said := range slices.Concat(g.results, e.Halts) {
		if said.At.After(e.newest) {
			e.newest = said.At
		}
	}
	slices.SortFunc(e.Results, func(a, b Entry) int { return cmp.Compare(a.Host, b.Host) })
	e.tally = g.rollout.tally(e)
	return e
}

// sortHalts returns the halts that count and those of earlier epochs, by time. It ignores all halts of a host that has
// signed one of a later epoch, since such a host would stop the rollout again after each resume.
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
		case h.At.Before(g.rollout.Start.Resumed.Add(-clockSlack)):
			g.ignore(h.String(), "it was recorded before the rollout was resumed")
		default:
			present = append(present, h)
		}
	}
	return present, past
}

// counting returns the result of a host that counts, from all its results: the newest one and, of consecutive results
// of the same kind, the first. A failure after the rollout was resumed counts as a new one. A result that is written
// again has the same name, so the time at which the store received it counts.
func counting(all []Entry, resumed time.Time) Entry {
	slices.SortFunc(all, func(a, b Entry) int { // of the same time, the failure is the newer one
		return cmp.Or(a.At.Compare(b.At), a.severity()-b.severity(), cmp.Compare(a.Run, b.Run))
	})
	counts := all[0]
	for _, said := range all[1:] {
		if (counts.Outcome == Healthy) != (said.Outcome == Healthy) || said.Outcome != Healthy && !counts.At.After(resumed) {
			counts = said
		}
	}
	return counts
}

func (s Entry) severity() int {
	if s.Outcome == Healthy {
		return 0
	}
	return 1
}

func (r Rollout) tally(e Evidence) *plans.Tally {
	results := make([]plans.Result, len(e.Results))
	for i, said := range e.Results {
		results[i] = plans.Result{Host: said.Host, Wave: said.Wave, Failed: said.Outcome != Healthy, At: said.At}
	}
	halts := make([]time.Time, len(e.Halts))
	for i, h := range e.Halts {
		halts[i] = h.At
		if !h.At.After(r.Start.Resumed) { // its epoch is signed, which the store's clock is not
			halts[i] = r.Start.Resumed.Add(time.Second)
		}
	}
	return plans.NewTally(len(r.Plan.Waves), results, halts)
}
