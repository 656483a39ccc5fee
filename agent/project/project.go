// Package project does for the project of a run what is not a state: it enters the project in the host's registry and
// lays out its directories, runs its procedures (archive, release-sync, fixperms, install, rollback, notify), and
// merges the configuration that these see.
package project

import (
	"context"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Run is the part of one run of the agent that works on the project of the run's service. All functions have to be set.
type Run struct {
	Host     *inspect.Host
	ID       string
	Test     bool // a dry run
	Ledger   *ledger.Ledger
	Record   *report.Builder
	Identity *grains.Identity // of the host; known once the run has identified it
	Only     *procedure.Only  // the steps that the user selected

	Entry    *ledger.Project // of the registry; nil for a project without one
	Settings *value.Map      // of the project's configuration, for this run; nil for none

	// Intact refuses a pair with a release that is not as it was unpacked.
	Intact func(context.Context, ledger.Pair) error
	// HookEnv returns the environment of the programs of a stage.
	HookEnv func(stage string, pair ledger.Pair) []string
	// Hooks runs the hooks of a stage.
	Hooks func(ctx context.Context, stage string, pair ledger.Pair) error
	// Request describes what to converge for a pair.
	Request func(context.Context, ledger.Pair) (state.Request, error)
	// Observing adds the journal to an observer of states.
	Observing func(exec.Observer) exec.Observer
	// Synced returns once the records of the journal are on the disk.
	Synced func() error
	// RecordProgram writes into the journal that a program of a release runs, which may change anything. The caller
	// calls ended after the program has ended.
	RecordProgram func(what, name string, pair ledger.Pair) (ended func(), err error)
	// Kept is called with each directory of archives that the run made.
	Kept func(dir string)
}
