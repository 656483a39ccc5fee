// Package ledger defines the record that a host keeps between runs: its identity, what is deployed, what failed, and
// which run was interrupted.
//
// It is one small JSON file that is replaced atomically, so after a power failure the host has the old ledger or the
// new one. The next run can continue from either.
package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// version is the version of the file's form. It stays 1: fields are added and never change their meaning. A file with a
// higher version was written by a newer agent, from which the host was rolled back to this one; see Ledger.Newer.
const version = 1

// Pairs returns the pairs that the host remembers as good, with those deployed before and now. A pair may occur more
// than once. The pointers are to the ledger's own pairs, so changing one changes the ledger.
func (l *Ledger) Pairs() []*Pair {
	var all []*Pair
	for i := range l.History {
		all = append(all, &l.History[i])
	}
	for _, pair := range []*Pair{l.Previous, l.Alone, l.StandsFor, l.Good} {
		if pair != nil {
			all = append(all, pair)
		}
	}
	return all
}

// Withdrawn is a release that its project has withdrawn, and that is on this host or named by its channel.
type Withdrawn struct {
	Release artifact.Release `json:"release"`
	Reason  string           `json:"reason,omitempty"`
	At      time.Time        `json:"at"`
	// Channel is the channel that names the release, while the host keeps another one.
	Channel artifact.Ref `json:"channel,omitzero"`
}

// When returns the day on which the release was withdrawn, and why.
func (w Withdrawn) When() string {
	return strings.TrimSpace(fmt.Sprintf("on %s %s", w.At.Format("2006-01-02"), w.Reason))
}

// Hold prevents the deploy of new releases on a host.
type Hold struct {
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// With returns the reason of a hold together with another one; texts that are equal are kept once.
func (h Hold) With(reason string) string {
	if h.Reason == "" || reason == "" || slices.Contains(strings.Split(h.Reason, "; "), reason) {
		return cmp.Or(h.Reason, reason)
	}
	return h.Reason + "; " + reason
}

// Running is a deploy between the move of its first link and its end. A run that finds one knows that the deploy was
// interrupted.
type Running struct {
	Run      string              `json:"run"`
	Command  string              `json:"command,omitempty"`
	Began    *time.Time          `json:"began,omitempty"`
	Pair     Pair                `json:"pair"`
	Before   map[string]link.Set `json:"before"` // links by project, to restore
	Attempts int                 `json:"attempts"`
	Leaves   *Pair               `json:"leaves,omitempty"` // the pair that a user rolls back, which is quarantined with it
	// Back is true while the changes of converging are being undone. UndoTo is then the last run whose changes are
	// kept; "" to undo all changes since the target pair.
	Back   bool   `json:"back,omitempty"`
	UndoTo string `json:"undo_to,omitempty"`
	// Failed is true if the deploy failed and is being rolled back.
	Failed bool `json:"failed,omitempty"`
	// Reboots counts the attempts that ended because the host shut down or a step stopped the run itself.
	Reboots int `json:"reboots,omitempty"`
	// Step is the step in which the attempts before this one were interrupted, and Cuts is how many of them in a row
	// were. Step is "" if the last one was interrupted before its first change.
	Step string `json:"step,omitempty"`
	Cuts int    `json:"cuts,omitempty"`
	// EndedIn is the state that the last attempt cancelled because the run was cancelled. It may have changed nothing.
	EndedIn string `json:"ended_in,omitempty"`
}

// Unfinished is a rollback that could not undo everything.
type Unfinished struct {
	Pair Pair   `json:"pair"` // the pair whose changes are left
	Run  string `json:"run"`  // the run that could not undo them
	// UndoTo is the last run whose changes stay; "" to undo all changes since the target pair.
	UndoTo string `json:"undo_to,omitempty"`
}

// Host has the identity and the store that the host was given.
type Host struct {
	Store    string `json:"store,omitempty"`
	Service  string `json:"service,omitempty"`
	Instance string `json:"instance,omitempty"`
	Region   string `json:"region,omitempty"`
	Node     string `json:"node,omitempty"`
}

// As is the identity of a host, with the machine that had it.
type As struct {
	Service  string `json:"service"`
	Instance string `json:"instance"`
	Region   string `json:"region,omitempty"`
	Node     string `json:"node,omitempty"`
	// Machine identifies the machine: a digest of /etc/machine-id, of which a clone of an image gets a new one; "" if
	// the host has none.
	Machine string `json:"machine,omitempty"`
}

// Is reports whether an identity is of the same service and instance.
func (a As) Is(id grains.Identity) bool { return a.Service == id.Service && a.Instance == id.Instance }

// Identity returns the identity, in a domain.
func (a As) Identity(domain string) grains.Identity {
	return grains.Identity{Service: a.Service, Instance: a.Instance, Region: a.Region, Node: a.Node, Domain: domain}
}

// Ledger is the content of the file. The zero Ledger is that of a host on which nothing has run.
type Ledger struct {
	Version int `json:"version"`
	// how often it was saved: of the file and its copy, the one with the higher number is newer
	Saved    int64      `json:"saved,omitempty"`
	Host     Host       `json:"host"`
	Good     *Pair      `json:"good,omitempty"`     // what is deployed
	Since    *time.Time `json:"since,omitempty"`    // when Good was deployed
	Previous *Pair      `json:"previous,omitempty"` // what was deployed before
	// StandsFor is the pair that was deployed until its files were missing on the disk and could not be fetched:
	// Good, an earlier pair, stands in for it until the next deploy.
	StandsFor *Pair `json:"stands_for,omitempty"`
	// Alone is the pair of base alone on a host for whose service nothing could be deployed yet. A deploy of both
	// ends it.
	Alone   *Pair    `json:"base_alone,omitempty"`
	Running *Running `json:"running,omitempty"`
	Bad     []Bad    `json:"bad,omitempty"`
	Hold    *Hold    `json:"hold,omitempty"`
	// Unfinished is the last rollback that could not undo everything; nil if there is none.
	Unfinished *Unfinished `json:"unfinished,omitempty"`
	// Postponed is the deploy that failed because of the host and is retried.
	Postponed *Postponed `json:"postponed,omitempty"`
	// As is the identity of the host when Good was deployed, or last converged.
	As *As `json:"as,omitempty"`

	// the failed pair that a dev host stays on; Good is the last one that worked
	Failing  *Pair          `json:"failing,omitempty"`
	Channels []artifact.Ref `json:"channels,omitempty"` // the channels of the last resolve
	History  []Pair         `json:"history,omitempty"`  // what was good, newest last

	// FirstRuns has the first runs of the pairs in the history. Older agents did not write it.
	FirstRuns []FirstRun `json:"first_runs,omitempty"`

	// Withdrawn has the releases in Good, Previous and History, and those that the channels name, that the store, when
	// it was last reached, reported as withdrawn.
	Withdrawn []Withdrawn `json:"withdrawn,omitempty"`

	// Serving is set while links have moved and not all units have followed them. A run that finds it set without an
	// attempt restarts the units with the deployed releases.
	Serving *Serving `json:"serving,omitempty"`

	// Proven is the last run that checked the units and probes of Good, all of which passed.
	Proven *Proven `json:"proven,omitempty"`

	// Announced has the signatures that expire soon and that notifications have named.
	Announced []trust.Expiry `json:"announced,omitempty"`

	// ReadyGuests has the IDs of the disks of this node's guests of which a notification was sent when they were ready.
	ReadyGuests []string `json:"ready_guests,omitempty"`

	// Away has the load balancers that the host left before a deploy and has not entered again; nil if there are
	// none.
	Away *Away `json:"away,omitempty"`

	// Linked has the time since which `current` of a project leads to its release, by project.
	Linked map[string]Linked `json:"linked,omitempty"`

	// States is the number of states in the last converge; 0 if unknown.
	States int `json:"states,omitempty"`

	// Turns has the turns of the host in the rollouts of the channels that it follows.
	Turns []Turn `json:"turns,omitempty"`

	read []byte // the file that it was loaded from, for the fields that only a newer agent knows
}

// Away names the load balancers that the host was deregistered from before a deploy, and with which a run that ends
// healthy registers it again.
type Away struct {
	Run          string    `json:"run"`
	Since        time.Time `json:"since"`
	Instance     string    `json:"instance"` // of EC2
	Names        []string  `json:"names,omitempty"`
	TargetGroups []string  `json:"target_groups,omitempty"`
}

// Serving has the units that must follow links that move.
type Serving struct {
	Run      string   `json:"run"`
	Units    []string `json:"units,omitempty"`    // units that ran before, and must run afterwards
	Projects []string `json:"projects,omitempty"` // whose links move
	// Retry has units that were restarted during a rollback and still do not run the deployed pair.
	Retry []string `json:"retry,omitempty"`
	// Since is set when wrong links were corrected: units in Retry that were started before it may run another
	// release, regardless of when the release was deployed.
	Since time.Time `json:"since,omitzero"`
}

// Linked is the release to which `current` of a project leads, by the name of its directory, and the time at which the
// link was moved there. The modification time of the link is the same only until another program writes the link again.
type Linked struct {
	Release string    `json:"release"`
	At      time.Time `json:"at"`
	// Boot is the ID of the boot in which the link was moved, and Clock the time on the monotonic clock, since the
	// wall clock may have been set. Boot is "" if unknown.
	Boot  string        `json:"boot,omitempty"`
	Clock time.Duration `json:"clock_ns,omitempty"`
}

// Corrupt is the error of a ledger that cannot be read. It does not affect the releases on the disk.
type Corrupt struct {
	Path string
	Err  error
}

func (c *Corrupt) Error() string { return fmt.Sprintf("reading the ledger %s: %v", c.Path, c.Err) }

func (c *Corrupt) Unwrap() error { return c.Err }

// Hint describes what the next run does with the file.
func (c *Corrupt) Hint() string {
	return diag.Records.Coded(
		"the next run keeps the file aside and restores the ledger from its copy, or from links and reports")
}

// Load reads the ledger. It returns an empty one if the file does not exist. It reads a ledger of a newer agent as far
// as this agent understands it.
func Load(path string) (*Ledger, error) {
	var l Ledger
	data, err := read(path, "ledger", &l)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return &Ledger{Version: version}, nil
	}
	l.read = data
	l.dropHostFailures()
	return &l, nil
}

// Newer reports whether the file that this ledger was loaded from has the form of a newer agent.
func (l *Ledger) Newer() bool { return l.Version > version }

// Content returns the content of the file for this ledger. It keeps fields that a newer agent wrote into the file from
// which it was loaded.
func (l *Ledger) Content() ([]byte, error) {
	l.Version = version
	return encode(l, l.read)
}

// Save replaces the file.
func (l *Ledger) Save(path string) error {
	l.Version = version
	return write(path, "ledger", l, l.read, 0o700, 0o600)
}

// IsWithdrawn reports whether a release of a pair was withdrawn, and why.
func (l *Ledger) IsWithdrawn(p Pair) (Withdrawn, bool) {
	for _, w := range l.Withdrawn {
		for _, r := range p.Releases() {
			if r.Is(w.Release) {
				return w, true
			}
		}
	}
	return Withdrawn{}, false
}
