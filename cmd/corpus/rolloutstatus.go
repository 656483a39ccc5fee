package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// activeRollout is the rollout of a channel: its signed start and plan, and the results in the store.
type activeRollout struct {
	ref     artifact.Ref
	version string // that the channel names
	brings  string // version that is rolled out, also after an abort; "" if the project has removed it
	plan    rollout.Plan
	rollout hosts.Rollout
	signed  rollout.Start // the start as it is signed, also if the plan has another number of waves since
	seen    hosts.Evidence
	now     time.Time       // by the store's clock if the store reports it
	yanked  bool            // the release that the channel names is withdrawn
	lost    error           // why the hosts of a rollout that was aborted are not known: the store has lost its roster
	others  map[string]bool // hosts whose records another key signed than the roster has for them
	flood   error           // why hosts do not read the results: the store has too many objects; nil if they do
}

// Errors about channels without a rollout.
var (
	errNoRollout = errors.New("it has no rollout")
	errNoPlan    = errors.New("its plan was removed, so its hosts take the release at once")
)

// loadRollout reads the rollout of a channel and the results of its hosts. If there is none, the error wraps
// errNoRollout or errNoPlan, and the version that the channel names is set nevertheless.
func loadRollout(ctx context.Context, client *trust.Client, s store.Store, ref artifact.Ref) (*activeRollout, error) {
	_, pointer, err := client.Named(ctx, ref)
	var withdrawn *trust.Withdrawn
	if err != nil && !errors.As(err, &withdrawn) {
		return nil, err
	}
	u := &activeRollout{ref: ref, version: pointer.Version, now: client.StoreTime(), yanked: withdrawn != nil}
	if pointer.Rollout == nil {
		return u, errNoRollout
	}
	u.rollout.Start, u.signed = *pointer.Rollout, *pointer.Rollout
	if u.brings, err = versionOf(ctx, client, ref.Project, pointer); err != nil {
		return u, err
	}
	plan, err := client.Rollout(ref)
	if err != nil {
		return u, err
	}
	if plan == nil {
		return u, errNoPlan
	}
	u.plan = *plan
	err = u.read(ctx, s, *pointer.Rollout)
	if pointer.Rollout.Aborted && (errors.Is(err, store.ErrNotFound) || errors.Is(err, hosts.ErrDamaged)) {
		u.rollout = hosts.New(ref, u.plan, *pointer.Rollout, hosts.Roster{})
		u.lost, err = err, nil
	}
	return u, err
}

// versionOf returns the version that the last rollout of a channel brings, also after an abort; "" if the project has
// removed it.
func versionOf(ctx context.Context, client *trust.Client, project string, pointer trust.Pointer) (string, error) {
	if !pointer.Rollout.Aborted {
		return pointer.Version, nil
	}
	role, err := client.Whole(ctx, project)
	if err != nil {
		return "", err
	}
	for _, r := range trust.Releases(project, role) {
		if string(r.Digest) == pointer.Rollout.Release {
			return r.Version, nil
		}
	}
	return "", nil
}

// read reads the results of the hosts of a rollout.
func (u *activeRollout) read(ctx context.Context, s store.Store, start rollout.Start) error {
	roster, _, err := hosts.FetchRoster(ctx, s, u.ref, start)
	if err != nil {
		return err
	}
	u.rollout = hosts.New(u.ref, u.plan, start, roster)
	u.seen, err = u.rollout.Read(ctx, s, u.now)
	return err
}

// within returns the plan with the limits that count in the rollout.
func (u *activeRollout) within() rollout.Plan {
	return u.plan.Within(u.rollout.Start, u.seen.View(u.now))
}

// arrived reports whether enough hosts of each wave are healthy, and no failures stop the rollout.
func (u *activeRollout) arrived() bool {
	for w, n := range u.rollout.Start.Hosts {
		if u.seen.View(u.now).Healthy(w) < u.within().Healthy.Of(n) && !u.arrivedAsStarted() {
			return false
		}
	}
	return u.stopsAt().IsZero()
}

// arrivedAsStarted reports whether the plan has another number of waves since the start, and enough hosts of each wave
// of the start are healthy: such a rollout has arrived, however the plan divides its hosts now.
func (u *activeRollout) arrivedAsStarted() bool {
	if len(u.signed.Hosts) == 0 || hosts.Divided(u.plan, u.signed) {
		return false
	}
	plan, needs := u.plan, slices.Clone(u.signed.Hosts)
	if u.signed.Limits != nil {
		plan.Healthy = u.signed.Limits.Healthy
	}
	plan.Waves = make([]rollout.Wave, len(needs))
	for w, n := range needs {
		needs[w] = plan.Healthy.Of(n)
	}
	started := hosts.New(u.ref, plan, u.signed, u.rollout.Roster)
	healthy := u.healthy()
	for _, h := range u.rollout.Roster.Places() {
		if healthy[h.Name] {
			needs[started.Wave(h)]--
		}
	}
	return slices.Max(needs) <= 0
}

// healthy returns the hosts that are healthy with the release.
func (u *activeRollout) healthy() map[string]bool {
	all := map[string]bool{}
	for _, said := range u.seen.Results {
		all[said.Host] = said.Outcome == hosts.Healthy
	}
	return all
}

// noRollout adds the exit code and the hint to errors about channels without a rollout.
func noRollout(ref artifact.Ref, err error) error {
	if errors.Is(err, errNoRollout) || errors.Is(err, errNoPlan) {
		return exit.WithCode(exit.Usage, diag.Rollout.Hint(fmt.Errorf("%s: %w", ref, err),
			"`corpus project rollout %s %s` shows its plan; with one, the next promotion starts a rollout", ref.Project,
			ref.Channel))
	}
	return err
}

// waveStatus is the progress of a wave.
type waveStatus struct {
	Name    string        `json:"name"`
	Share   rollout.Share `json:"share"`
	Hosts   int           `json:"hosts"`
	Healthy int           `json:"healthy"`
	Failed  int           `json:"failed"` // or rolled back
	Waiting int           `json:"waiting"`
	Lacking int           `json:"no_result,omitempty"` // of the waiting hosts, those that have the release
	Open    bool          `json:"open"`                // its hosts may take the release
	Why     string        `json:"why"`                 // reason why the hosts may take the release, or may not yet
}

// haltStatus is the first halt that a host recorded.
type haltStatus struct {
	Host  string    `json:"host"`
	At    time.Time `json:"at"`    // when the store received it
	Count int       `json:"count"` // number of halts that the host recorded
	// Grounds has the words of that host, which are not verified.
	Grounds *hosts.Grounds `json:"grounds,omitempty"`
	// NotFailed has the hosts that the grounds name and of which the store has no failed result, or a later healthy one.
	NotFailed []string `json:"not_failed,omitempty"`
	Unread    string   `json:"unread,omitempty"` // reason why its failures are not known
	// Unfounded says that the results in the store do not reach the limit, as for a halt that stands now; "" if they do.
	Unfounded string `json:"unfounded,omitempty"`
}

// failedHost is a host on which the release failed.
type failedHost struct {
	Host    string        `json:"host"`
	Outcome hosts.Outcome `json:"outcome"`
	Wave    string        `json:"wave"`
	Run     string        `json:"run"`
	At      time.Time     `json:"at"`
	// RollbackFailed is true if the record of the host says that the rollback failed, in that run or in a later one.
	RollbackFailed bool `json:"rollback_failed,omitempty"`
}

// what returns how the release failed on the host.
func (f failedHost) what() string {
	if f.RollbackFailed {
		return "rollback failed"
	}
	return string(f.Outcome)
}

// findFailedRollbacks marks the hosts on which the rollback failed as well, by their records: a result has only two
// words for a failure.
func (r *rolloutStatus) findFailedRollbacks(known []fleet.Host) {
	for _, h := range known {
		for i := range r.Failed {
			if f := &r.Failed[i]; f.Host == h.Host && h.Signed && h.Exit == exit.RollbackFailed && h.Run >= f.Run {
				f.RollbackFailed = true
			}
		}
	}
}

// rolloutStatus is the output of `corpus rollout status`.
type rolloutStatus struct {
	Ref     artifact.Ref   `json:"ref"`
	Version string         `json:"version"`          // that the channel names
	Brings  string         `json:"brings,omitempty"` // version that is rolled out, also after an abort
	State   string         `json:"state"`            // none, aborted, finished or as next returns it
	Next    string         `json:"next"`             // the next event, in words
	Start   *rollout.Start `json:"rollout,omitempty"`
	// its start is in the future, since the store's clock was ahead then: hosts do not wait for that time
	Ahead  bool          `json:"starts_in_the_future,omitempty"`
	Plan   *rollout.Plan `json:"plan,omitempty"`
	Waves  []waveStatus  `json:"waves,omitempty"`
	Failed []failedHost  `json:"failed,omitempty"`
	// halts that stop the rollout, and those before the last resume: the first one of each host, of at most mostHalts
	// hosts, with the number of all hosts that recorded one
	Halts     []haltStatus `json:"halts,omitempty"`
	HaltHosts int          `json:"halt_hosts,omitempty"`
	Past      []haltStatus `json:"past_halts,omitempty"`
	PastHosts int          `json:"past_halt_hosts,omitempty"`
	// number of names in the store that are not valid results, at most hosts.MostIgnored
	Ignored int `json:"ignored,omitempty"`
	// these names
	IgnoredNames []hosts.Ignored `json:"ignored_names,omitempty"`
	// hosts whose results are signed with a key that is not in the roster: the rollout waits for them
	Rekeyed []string `json:"rekeyed,omitempty"`
	// hosts that have the release, and of which the store has no result: the rollout waits for them
	NoResult []string `json:"no_result,omitempty"`
	// other hosts that may take the release and have not finished, those with a problem first; at most mostWaiting
	WaitsFor []waitingHost `json:"waits_for,omitempty"`
	// number of further such hosts
	WaitsForMore int       `json:"waits_for_more,omitempty"`
	Summary      time.Time `json:"summary,omitzero"` // when the summary was made, if the results are from one
	// why hosts do not read the results: the store has too many objects, of which the first ones are shown
	Flooded string `json:"flooded,omitempty"`
	// hosts with a result of which the store has no record any more; their results count
	Removed []string `json:"removed,omitempty"`
	// the first hosts that hold places among those of their cluster that deploy at the same time, and how many more
	// places are taken
	Deploying     []hosts.Holder `json:"deploying,omitempty"`
	DeployingMore int            `json:"deploying_more,omitempty"`
	// hosts with a result whose records another key signs than the roster has
	Replaced []string `json:"other_key,omitempty"`
	// hosts of a rollout that was aborted, by their records
	Back *goingBack `json:"back,omitempty"`
	// the store has lost the roster of a rollout that was aborted, so its hosts and their results are not known
	RosterLost bool `json:"roster_lost,omitempty"`
	behind     bool // one of WaitsForMore has a record, and not the release
	over       bool // it has arrived, so the same release does not start it again
}

// mostHalts is the maximum number of hosts whose halts a status has, with one request each.
const mostHalts = 20

// status returns the state of a rollout with the progress of its waves. known are the hosts of its project by their
// records.
func (u *activeRollout) status(ctx context.Context, s store.Store, known []fleet.Host) rolloutStatus {
	start := u.rollout.Start
	if u.lost != nil {
		r := rolloutStatus{Ref: u.ref, Version: u.version, Brings: u.brings, Start: &start, Plan: &u.plan, RosterLost: true}
		r.State, r.Next = u.next(0, 0)
		return r
	}
	r := rolloutStatus{Ref: u.ref, Version: u.version, Brings: u.brings, Start: &start, Plan: &u.plan,
		Ignored: len(u.seen.Ignored), IgnoredNames: u.seen.Ignored, Summary: u.seen.Summary, over: u.isOver()}
	if rekeyed, err := u.rollout.Rekeyed(ctx, s, u.seen); err == nil {
		r.Rekeyed = rekeyed // without the registered keys, the rest of the status is still right
	}
	for i, w := range u.plan.Waves {
		r.Waves = append(r.Waves, waveStatus{Name: u.plan.WaveName(i), Share: w.Share})
	}
	for _, h := range u.rollout.Roster.Places() {
		r.Waves[u.rollout.Wave(h)].Hosts++
	}
	for _, said := range u.seen.Results {
		w := &r.Waves[said.Wave]
		if said.Outcome == hosts.Healthy {
			w.Healthy++
			continue
		}
		w.Failed++
		r.Failed = append(r.Failed, failedHost{Host: said.Host, Outcome: said.Outcome, Wave: w.Name, Run: said.RunID(),
			At: said.At})
	}
	waiting, failed := 0, 0
	for i := range r.Waves {
		w := &r.Waves[i]
		w.Waiting = w.Hosts - w.Healthy - w.Failed
		waiting, failed = waiting+w.Waiting, failed+w.Failed
		v := u.verdict(i)
		w.Open, w.Why = v.Take, v.String()
		switch {
		case u.yanked && v.Take:
			w.Open, w.Why = false, "the release is withdrawn"
		case u.flood != nil && v.Take:
			w.Open, w.Why = false, "hosts do not read so many objects"
		}
	}
	r.Halts, r.HaltHosts = u.standing(ctx, s)
	r.Past, r.PastHosts = u.halts(ctx, s, u.seen.Past)
	r.findFailedRollbacks(known)
	u.addWaiting(&r, known)
	u.nameReplaced(ctx, s, &r, known)
	u.nameRenamed(ctx, s, &r)
	u.addRemoved(&r, known)
	if waiting > 0 {
		// without them, the rest of the status is still right
		r.Deploying, r.DeployingMore, _ = u.rollout.Holders(ctx, s, u.seen, u.now)
	}
	u.addFlood(&r)
	r.State, r.Next = u.next(waiting, failed)
	u.arrivedWithout(&r, waiting, known)
	u.addBack(&r, known, r.Deploying)
	r.Ahead = r.State == "running" && u.rollout.Start.Ahead(u.now)
	if r.State == "running" && len(r.NoResult) > 0 && u.waitsAt() == len(u.plan.Waves) {
		r.Next = nextWithoutResults(waiting, len(r.NoResult))
	}
	if next := u.nextWithoutPlaces(r.Deploying, waiting); r.State == "running" && len(r.NoResult) == 0 && next != "" {
		r.Next = next
	}
	return r
}

// publisherRollout is like loadRollout, for a publisher that is about to change the rollout.
func publisherRollout(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) (*activeRollout, error) {
	n, err := publisher.View(ctx)
	if err != nil {
		return nil, err
	}
	u, err := loadRollout(ctx, n.Client, publisher.Store, ref)
	return u, noRollout(ref, err)
}
