// Package topfiles examines what the top files of a pair of releases select: it reports which top file applies, and
// notes a release of which no state runs.
package topfiles

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
)

// Run is the part of one run of the agent that examines top files. All of its exported fields have to be set.
type Run struct {
	Host   *inspect.Host
	Test   bool // a dry run, which does not write the ledger
	Ledger *ledger.Ledger
	Record *report.Builder
	Top    func() *report.Top // returns the top files in the report of the run; nil before Report
	// Native reports whether the native engine converges. Other engines may not report where a state is declared.
	Native bool
	// BeforeLinks reports whether the states of a deploy run, before the links move.
	BeforeLinks func() bool
	// Save writes the ledger.
	Save func() error
}

// Origins is an observer that records which releases of a pair declare the states that run.
type Origins struct {
	exec.Observer
	InBase func(file string) bool // reports whether a file is in the release of base

	any, base, service atomic.Bool
}

// StepDone implements exec.Observer.
func (o *Origins) StepDone(result *exec.Result) {
	o.any.Store(true)
	switch {
	case result.Step.SLS() == recipe.Name: // a template, which no top file selects
	case o.InBase(result.Step.Pos.File):
		o.base.Store(true)
	default:
		o.service.Store(true)
	}
	o.Observer.StepDone(result)
}

// Report adds to the report which top files select the states, and which top files have no effect.
func (r *Run) Report(request state.Request) {
	if r.Host.Config.Engine != "native" && r.Host.Config.Engine != "salt-call" {
		return // other engines read no top files
	}
	top := report.Top{}
	for _, root := range request.StateRoots {
		file := filepath.Join(root, "top.sls")
		switch found, err := walk.Exists(r.Host.Layout.Path(file)); {
		case err != nil:
			r.Record.Note("whether %s counts is unknown: %v", file, err)
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
	r.Record.Top(top)
}

// NoteUnused notes, in a deploy, a release of which no state ran although it has states.
func (r *Run) NoteUnused(pair ledger.Pair, seen *Origins) {
	top := r.Top()
	if !r.Native || top == nil || !r.BeforeLinks() && !r.Test {
		return
	}
	if pair.Base != nil && !seen.base.Load() && len(top.Hidden) > 0 {
		r.Record.Note("no state of %s ran: %s has a top.sls of its own, which counts in place of base's; name base's "+
			"states in it, leave it out, or set `top: merge` in agent.yaml", pair.Base, pair.Service)
	}
	const look = "compare its targets with `corpus-agent grains`"
	switch rules := strings.Join(top.Rules, " and "); {
	case seen.service.Load() || r.Ledger.States > 0 && !seen.any.Load(): // Count notes the latter
	case !seen.base.Load():
		r.Record.Note("no state ran: %s gives this host none; %s", rules, look)
	case !pair.BaseAlone() && r.declaresStates(pair) && (len(top.Rules) > 1 || !r.ownTop(pair)):
		r.Record.Note("no state of %s ran: %s names none of its SLS files for this host; %s", pair.Service, rules, look)
	}
}

// Count records the number of states of a converge in the ledger. It returns an error if the number has dropped to zero
// and a top file is not as it was signed.
func (r *Run) Count(ctx context.Context, pair ledger.Pair, outcome state.Outcome) error {
	had, has := r.Ledger.States, len(outcome.Results)
	// the states of another program are not counted, and a converge of base alone has fewer states
	if outcome.Output != "" || r.Host.WithoutPillar {
		return nil
	}
	if has == 0 && had > 0 {
		why, err := r.notSigned(pair)
		if err != nil {
			return err
		}
		if why != "" {
			return exit.WithCode(exit.Failed,
				diag.Top.Hint(fmt.Errorf("no state is meant for this host, which had %d in the last converge: %s", had, why),
					"check the top file; for a host without states deploy a signed release without them, or a state that does "+
						"nothing, such as test.nop"))
		}
		r.Record.Note("no state is meant for this host any more, as its releases were signed; it had %d in the last converge",
			had)
	}
	if r.Test || had == has || ctx.Err() != nil {
		return nil
	}
	r.Ledger.States = has
	return r.Save()
}
