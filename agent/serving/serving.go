// Package serving makes the units of a host run the current releases and proves that they do: units follow the links, a
// pair has to become healthy, and reports repeat the proof while the units still run it.
//
//	Follow        writes into the ledger which links are about to move, and which units run now
//	Moved         notes that the links have moved
//	Serve         restarts, reloads or starts the units that do not run what the links lead to
//	Healthy       watches those units and asks probes, and keeps the proof
//	StillServes   compares later runs with the proof
//
// A rollback does the same in reverse: FollowBack, ServeBack, HealthyBack. The ledger is written before each step, so
// that the next run finishes what a power failure interrupted.
package serving

import (
	"context"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Run is the part of one run of the agent that puts releases into service. All of its exported fields have to be set.
type Run struct {
	Host   *inspect.Host
	ID     string
	Test   bool // a dry run: nothing is restarted, and the ledger is not written
	Ledger *ledger.Ledger
	Record *report.Builder
	Began  time.Duration // when the run began, on the clock of units
	// ProbeAnyRoot runs health probes below a root as well, where they check the running system.
	ProbeAnyRoot bool

	// Save writes the ledger.
	Save func() error
	// Ending reports whether the run was cancelled, or the host is shutting down.
	Ending func(context.Context) bool
	// AsksHealth reports whether the run checks units and probes at all.
	AsksHealth func() bool
	// Intact refuses a pair with a release that is not as it was unpacked.
	Intact func(context.Context, ledger.Pair) error
	// HookEnv returns the environment of the programs of a stage.
	HookEnv func(stage string, pair ledger.Pair) []string
	// Replaced reports whether this run has fetched a release again and replaced its directory.
	Replaced func(artifact.Release) bool

	moves       []string                 // projects whose links are about to move
	movedAt     map[string]time.Duration // on the clock of units, when this run moved the links of a project
	ran         []string                 // units that ran when links were about to move
	served      []service.Result         // what was done about units so far
	watch       *service.Watch           // over the units that were put into service; nil for none
	beforeLinks *delayedUnits            // the units as seen by states that run before the links move; nil otherwise
	delayed     []string                 // units that states could not start before that
	started     []string                 // units that states started before that
	byStatesMu  sync.Mutex
	byStates    []string // units that states of the last converge started or restarted
}
