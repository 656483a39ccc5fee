package agent

import (
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/exec"
)

// fromBase is an observer that notices whether states of base run.
type fromBase struct {
	exec.Observer
	inBase func(file string) bool
	ran    atomic.Bool
}

// StepDone is part of exec.Observer.
func (f *fromBase) StepDone(result *exec.Result) {
	if f.inBase(result.Step.Pos.File) {
		f.ran.Store(true)
	}
	f.Observer.StepDone(result)
}

// reportTop writes into the report which top file decides which states run, and which one does not count.
func (r *run) reportTop(request state.Request) {
	if r.Config.Engine != "native" && r.Config.Engine != "salt-call" {
		return // the others read no top files
	}
	top := report.Top{}
	for _, root := range request.StateRoots {
		file := filepath.Join(root, "top.sls")
		switch found, err := walk.Exists(r.Layout.Path(file)); {
		case err != nil:
			r.record.Note("whether %s counts is unknown: %v", file, err)
		case found && len(top.Rules) > 0 && !request.TopRoots:
			top.Hidden = append(top.Hidden, file)
		case found:
			top.Rules = append(top.Rules, file)
		}
	}
	if len(top.Rules) == 0 {
		return
	}
	if request.TopRoots {
		slices.Reverse(top.Rules)
	}
	r.record.Top(top)
}

// noteHiddenBase says, when a pair is deployed, that no state of base ran since the service has a top file of its own:
// of the top files of both only the service's counts. Reports of all runs have that as Report.Top.
func (r *run) noteHiddenBase(pair ledger.Pair, seen *fromBase) {
	native := r.Engine == nil && r.Config.Engine == "native" // another engine may not say where a state is declared
	top := r.report.Top
	if !native || pair.Base == nil || seen.ran.Load() || !r.flips && !r.test || top == nil || len(top.Hidden) == 0 {
		return
	}
	r.record.Note("no state of %s ran: %s has a top.sls of its own, which counts in place of base's; name base's states in it, leave it out, or set `top: merge` in agent.yaml", pair.Base, pair.Service)
}
