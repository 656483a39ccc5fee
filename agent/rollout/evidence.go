package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// clockSlack is how far times in the store may be ahead of its present time before they count as those of a clock that
// was ahead.
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

	leases map[string]held    // by key below the prefix
	said   map[string][]Entry // all results, by host
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
// listed. now is the store's time as far as it is known. The error wraps ErrNoEvidence if the store shows no host, and
// is a Flooded if the store has more objects than hosts can have written.
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
		return Evidence{}, diag.Evidence.Hint(fmt.Errorf("%w: its listing of %s lacks roster.json", ErrNoEvidence,
			found.prefix),
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
	names   map[string]int // number of names with the form of a result or a halt, by host
	others  map[string][]Name
	sizes   map[string]int // number of hosts in each cluster of the roster; nil until a lease is read
	objects int
	// limits of the number of objects, and of the names of a host whose signatures are verified
	most, mostOfHost int
}

func (r Rollout) gathering(now time.Time) *gathering {
	most := otherObjects + objectsOfHost*len(r.Roster.Hosts)
	return &gathering{rollout: r, now: now, prefix: r.prefix(), leases: map[string]held{}, of: map[string]int{},
		names: map[string]int{}, others: map[string][]Name{}, most: most, mostOfHost: most}
}

// count counts a name below results or halts for the host to which it belongs.
func (g *gathering) count(name string) {
	switch parts := strings.Split(name, "/"); {
	case len(parts) > 3:
		g.of[deeper]++
	case len(parts) == 3:
		if m, member := g.rollout.Roster.find(parts[1]); member {
			g.of[m.Name]++
		}
	}
}

func (g *gathering) add(key string, size int64, at time.Time) error {
	name := strings.TrimPrefix(key, g.prefix)
	if g.objects++; g.objects > g.most {
		return g.flooded()
	}
	if strings.HasPrefix(name, leasesDir) {
		g.lease(name, size, at)
		return nil
	}
	g.count(name)
	n, ok := ParseName(name)
	why := "it is not a name of a result"
	if ok {
		if g.names[n.Host]++; g.names[n.Host] > g.mostOfHost {
			return nil
		}
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
	why := notLease(name, size)
	there := false
	if why == "" {
		there, why = g.hasPlace(name)
	}
	if why != "" {
		g.ignore(name, why)
	}
	if there && len(g.leases) < g.mostOfHost {
		g.leases[name] = held{size, at}
	}
}

// hasPlace reports whether a cluster of the roster has the place of a lease under the present plan, and why no plan
// makes such a place; "" if one may, so that the lease may be of an earlier plan.
func (g *gathering) hasPlace(name string) (there bool, why string) {
	if g.sizes == nil {
		g.sizes = map[string]int{}
		for _, m := range g.rollout.Roster.Hosts {
			g.sizes[cmp.Or(m.Cluster, "-")]++
		}
	}
	cluster, slot := placeOf(name)
	switch size := g.sizes[cluster]; {
	case size == 0:
		return false, "no host of this rollout is in that cluster"
	case slot >= uint64(size):
		return false, "the cluster has fewer hosts than this place would need"
	default:
		return g.rollout.Plan.AtOnce < plans.All && slot < uint64(g.rollout.Plan.Slots(size)), ""
	}
}

// placeOf returns the cluster and the number in the name of a lease.
func placeOf(name string) (cluster string, slot uint64) {
	cluster, file, _ := strings.Cut(strings.TrimPrefix(name, leasesDir), "/")
	slot, _ = strconv.ParseUint(strings.TrimSuffix(file, suffix), 10, 32) // notLease has checked it
	return cluster, slot
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
	e.said = byHost
	for host, all := range byHost {
		e.Results = append(e.Results, counting(all, g.rollout.Start.Resumed))
		delete(g.others, host)
	}
	for _, at := range slices.Concat(timesOf(g.results), g.rollout.haltTimes(e.Halts)) {
		if at.After(e.newest) {
			e.newest = at
		}
	}
	slices.SortFunc(e.Results, func(a, b Entry) int { return cmp.Compare(a.Host, b.Host) })
	e.tally = g.rollout.tally(e)
	return e
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
	return plans.NewTally(len(r.Plan.Waves), results, r.haltTimes(e.Halts))
}
