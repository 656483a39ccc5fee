package agent

import (
	"path/filepath"
	"sync/atomic"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
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

// noteHiddenBase says, when a pair is deployed, that no state of base ran since the service has a top file of its own:
// of the top files of both only the service's counts.
func (r *run) noteHiddenBase(pair ledger.Pair, seen *fromBase) {
	service, base := r.pairDirs(pair)
	native := r.Engine == nil && r.Config.Engine == "native" // another engine may not say where a state is declared
	if !native || base == "" || seen.ran.Load() || !r.flips && !r.test {
		return
	}
	hides, err := r.topHides(service, base)
	switch {
	case err != nil:
		r.record.Note("whether a top.sls of %s counts in place of base's is unknown: %v", pair.Service, err)
	case hides:
		r.record.Note("no state of %s ran: %s has a top.sls of its own, which counts in place of base's; name base's states in it, or leave it out", pair.Base, pair.Service)
	}
}

// topHides reports whether both a service and base have a top file.
func (r *run) topHides(service, base string) (bool, error) {
	found, err := walk.Exists(r.Layout.Path(filepath.Join(base, "states", "top.sls")))
	if err != nil || !found {
		return false, err
	}
	for _, root := range layout.StateRoots(service, "") {
		if found, err := walk.Exists(r.Layout.Path(filepath.Join(root, "top.sls"))); err != nil || found {
			return found, err
		}
	}
	return false, nil
}
