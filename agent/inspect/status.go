package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Status is the state of a host as its own records show it.
type Status struct {
	Bootstrapped bool         `json:"bootstrapped"` // it has a root of trust
	Host         ledger.Host  `json:"host"`
	Deployed     *ledger.Pair `json:"deployed,omitempty"`
	Since        *time.Time   `json:"since,omitempty"`
	// the pair that Deployed, an earlier one, stands in for, because its files were missing on the disk and could not
	// be fetched
	StandsFor *ledger.Pair `json:"stands_for,omitempty"`
	// base that converged alone, since nothing of the service could be deployed
	BaseAlone *ledger.Pair        `json:"base_alone,omitempty"`
	Previous  *ledger.Pair        `json:"previous,omitempty"` // the pair that `rollback` deploys
	Links     map[string]link.Set `json:"links"`
	CutShort  *ledger.Running     `json:"cut_short,omitempty"`
	Cut       *Cut                `json:"cut,omitempty"` // when the run that was interrupted began, and where it was
	Hold      *ledger.Hold        `json:"hold,omitempty"`
	Turns     []ledger.Turn       `json:"turns,omitempty"` // in rollouts of the channels
	// load balancers that a deploy left and no run has entered again
	Away        *ledger.Away       `json:"away,omitempty"`
	Quarantined []ledger.Bad       `json:"quarantined"`
	Postponed   *ledger.Postponed  `json:"postponed,omitempty"` // a deploy that the host failed
	Withdrawn   []ledger.Withdrawn `json:"withdrawn,omitempty"` // on this host, or named by its channels
	// until when signatures of the store are good, the first to expire first
	Expires  []trust.Expiry `json:"expires,omitempty"`
	Expiring []trust.Expiry `json:"expiring,omitempty"` // those of which less than a third of the lifetime is left
	Running  *lock.Holder   `json:"running,omitempty"`
	Doing    string         `json:"doing,omitempty"` // the step of the run in progress, and for how long
	// why every run is refused with exit code 4, with what to do about it
	Uncontrolled []string          `json:"uncontrolled,omitempty"`
	Damaged      []Damage          `json:"damaged,omitempty"` // records of the agent that could not be read
	Refused      *records.Refusals `json:"refused,omitempty"` // runs since the last one that got the lock
	LastRun      *report.Report    `json:"last_run,omitempty"`
	Hidden       bool              `json:"hidden,omitempty"` // only root may see the last run and a run in progress
	Channels     []artifact.Ref    `json:"channels,omitempty"`
	NextRun      *time.Time        `json:"next_run,omitempty"`  // of the timer; see Agent.NextRun
	TimerOff     string            `json:"timer_off,omitempty"` // see Agent.TimerOff
	Drift        []string          `json:"drift"`               // differences between the host and the ledger
	Always       []string          `json:"always,omitempty"`    // states of the last run that act at every run: no drift
	Failing      *ledger.Pair      `json:"failing,omitempty"`   // the failed pair that a dev host stays on
	// of the deployed pair, with what they run; see Agent.RunningUnits
	Units      []service.Unit `json:"units,omitempty"`
	Unreported *Unreported    `json:"unreported,omitempty"` // a run of the unit since the last report; see Host.AskUnit
	// jobs of systemd that wait while a run is under way; see Host.AskUnit
	Waiting []string `json:"waiting,omitempty"`
	// why runs cannot be remembered: the state directory is full or read-only
	Unwritable string `json:"unwritable,omitempty"`
	// the key that is registered first for the name of this host, if it signs with another one
	Rekeyed   string  `json:"rekeyed,omitempty"`
	RekeyedAs string  `json:"rekeyed_as,omitempty"` // that name
	Others    []Other `json:"projects,omitempty"`   // that are not the host's service
	Store     string  `json:"store,omitempty"`      // that the next run uses; Host.Store is the one that the last run used

	linked map[string]ledger.Linked // when the links were moved
	before *ledger.Pair             // the previous pair in the ledger
	lost   *ledger.Pair             // what a deploy has to fetch again; nil for nothing
}

// runs returns the deployed pair, or base alone.
func (s Status) runs() *ledger.Pair { return cmp.Or(s.Deployed, s.BaseAlone) }

// RootLost reports whether the host has deployed from a store and has lost its root of trust.
func (s Status) RootLost() bool {
	if s.Bootstrapped || s.runs() == nil {
		return false
	}
	return slices.ContainsFunc(s.runs().Releases(), func(r artifact.Release) bool { return r.Local == "" })
}

// Status reads the state of this host. It takes no lock and changes nothing.
func (h *Host) Status() (Status, error) {
	s, err := h.status()
	return s, h.forLook(err)
}

func (h *Host) status() (Status, error) {
	book, err := h.ReadLedger()
	if err != nil {
		return Status{}, exit.WithCode(exit.Usage, err)
	}
	s := Status{
		Channels: book.Channels, Failing: book.Failing, Drift: []string{}, Host: book.Host,
		Deployed: book.Good, BaseAlone: book.Alone, Since: book.Since, StandsFor: book.StandsFor,
		Previous: h.LastKeptOf(book),
		Links:    map[string]link.Set{}, CutShort: book.Running, Hold: book.Hold, Turns: book.Turns, Away: book.Away,
		Quarantined: book.Bad, Postponed: book.Postponed, Withdrawn: book.Withdrawn,
		Store: redact.URLs(cmp.Or(h.Config.Store, book.Host.Store)), linked: book.Linked,
		before: book.Previous,
	}
	s.Host.Store = redact.URLs(s.Host.Store) // it may have a login
	for _, err := range diag.Parts(h.Damage()) {
		h.damaged(&s, err)
	}
	h.trusted(&s)
	if runs := book.Runs(); runs != nil {
		s.Expires, s.Expiring = h.Expiries(runs.Service.Project)
	}
	s.Refused = h.Refused()
	misplaced := h.CheckPlace(h.Layout.Projects())
	h.damaged(&s, misplaced)
	for _, err := range h.CheckControl() {
		s.Uncontrolled = append(s.Uncontrolled, withHint(err))
	}
	if first, name := hostkey.Replaced(h.Layout.HostKey(), h.Layout.HostRegistered()); first != "" {
		s.Rekeyed, s.RekeyedAs = string(first), name
	}
	if err := h.Unwritable(); err != nil {
		s.Unwritable = withHint(err)
	}
	if holder, ok := lock.Current(h.Layout.Lock()); ok {
		s.Running, s.Doing = &holder, h.doing(holder.Since)
		s.CutShort = nil // it is in progress, not interrupted
	}
	for _, name := range records.ProjectsIn(book) {
		set, err := link.Of(h.LayoutOf(name)).Read()
		h.damaged(&s, records.IgnoreNoLink(err)) // what is not a link is drift
		s.Links[name] = set
	}
	if s.LastRun, err = h.Reports().Last(); errors.Is(err, fs.ErrPermission) {
		s.Hidden, s.CutShort, err = true, nil, nil // whether that run is still in progress is not known
	}
	h.damaged(&s, err)
	if s.Running == nil && !s.Hidden {
		s.Cut = h.cutRun(s)
	}
	s.Always = actingAlways(s.LastRun)
	if misplaced == nil { // otherwise everything below is missing, for one reason
		s.lost, s.Drift = h.lost(s), append(s.Drift, h.drift(s)...)
	}
	s.Others, err = h.others()
	h.damaged(&s, err)
	return s, nil
}

// withHint returns the text of an error with its hint.
func withHint(err error) string { return fmt.Sprintf("%v; %s", err, diag.HintOf(err)) }

// Recent returns the entries of the quarantine to show to a person, the newest last, and the number of the others.
// Shown are those of the releases that the channels named last, which are nil if unknown, and the three newest.
func (s Status) Recent(named *ledger.Pair) (shown []ledger.Bad, others int) {
	const newest = 3
	for i, b := range s.Quarantined {
		if i >= len(s.Quarantined)-newest || named != nil && b.Covers(*named) {
			shown = append(shown, b)
		}
	}
	return shown, len(s.Quarantined) - len(shown)
}
