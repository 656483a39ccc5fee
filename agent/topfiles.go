package agent

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
)

// origins is an observer that notices of which releases states of SLS files run.
type origins struct {
	exec.Observer
	inBase             func(file string) bool
	any, base, service atomic.Bool
}

// StepDone is part of exec.Observer.
func (o *origins) StepDone(result *exec.Result) {
	o.any.Store(true)
	switch {
	case result.Step.SLS() == recipe.Name: // a template, which no top file gives
	case o.inBase(result.Step.Pos.File):
		o.base.Store(true)
	default:
		o.service.Store(true)
	}
	o.Observer.StepDone(result)
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

// noteUnused says, when a pair is deployed, of which release no state ran though it has states.
func (r *run) noteUnused(pair ledger.Pair, seen *origins) {
	native := r.Engine == nil && r.Config.Engine == "native" // another engine may not say where a state is declared
	top := r.report.Top
	if !native || top == nil || !r.beforeLinks && !r.test {
		return
	}
	if pair.Base != nil && !seen.base.Load() && len(top.Hidden) > 0 {
		r.record.Note("no state of %s ran: %s has a top.sls of its own, which counts in place of base's; name base's "+
			"states in it, leave it out, or set `top: merge` in agent.yaml", pair.Base, pair.Service)
	}
	const look = "compare its targets with `corpus-agent grains`"
	switch rules := strings.Join(top.Rules, " and "); {
	case seen.service.Load() || r.ledger.States > 0 && !seen.any.Load(): // emptied says the latter
	case !seen.base.Load():
		r.record.Note("no state ran: %s gives this host none; %s", rules, look)
	case !pair.BaseAlone() && r.declaresStates(pair) && (len(top.Rules) > 1 || !r.ownTop(pair)):
		r.record.Note("no state of %s ran: %s names none of its SLS files for this host; %s", pair.Service, rules, look)
	}
}

// ownTop reports whether the service of a pair has a top file.
func (r *run) ownTop(pair ledger.Pair) bool {
	return r.hasState(pair, func(name string) bool { return name == "top.sls" })
}

// declaresStates reports whether the service of a pair has SLS files.
func (r *run) declaresStates(pair ledger.Pair) bool {
	return r.hasState(pair, func(name string) bool { return name != "top.sls" && path.Ext(name) == ".sls" })
}

// hasState reports whether a file below the state roots of a pair's service has a name, relative to its root.
func (r *run) hasState(pair ledger.Pair, is func(name string) bool) (found bool) {
	service, _ := r.PairDirs(pair)
	for _, root := range layout.StateRoots(service, "") {
		_ = fs.WalkDir(walk.Files(r.Layout.Path(root)), ".", func(name string, _ fs.DirEntry, err error) error {
			if err == nil && is(name) {
				found = true
				return fs.SkipAll
			}
			return nil // what cannot be read brings no note
		})
	}
	return found
}

// emptied judges a converge by how many states it had. One that has none, on a host that had some, fails unless the top
// files that say so are as they were signed.
func (r *run) emptied(ctx context.Context, pair ledger.Pair, outcome state.Outcome) error {
	had, has := r.ledger.States, len(outcome.Results)
	// another program's states are not counted, and those of base alone are some of them
	if outcome.Output != "" || r.WithoutPillar {
		return nil
	}
	if has == 0 && had > 0 {
		why, err := r.notSigned(pair)
		if err != nil {
			return err
		}
		if why != "" {
			return exit.WithCode(exit.Failed,
				diag.WithHint(fmt.Errorf("no state is meant for this host, which had %d in the last converge: %s", had, why),
					"check the top file; for a host without states deploy a signed release without them, or a state that does "+
						"nothing, such as test.nop"))
		}
		r.record.Note("no state is meant for this host any more, as its releases were signed; it had %d in the last converge",
			had)
	}
	if r.test || had == has || ctx.Err() != nil {
		return nil
	}
	r.ledger.States = has
	return r.save()
}

// notSigned says why the top files of a pair are not as they were signed, or "".
func (r *run) notSigned(pair ledger.Pair) (string, error) {
	for _, release := range pair.Releases() {
		list, err := r.Held().List(release)
		if err != nil {
			return "", err
		}
		if list == nil {
			return fmt.Sprintf("%s is not signed", release), nil
		}
		tree := walk.Files(r.LayoutOf(release.Project).Release(release.Dir()))
		for _, top := range []string{"salt/config/states/top.sls", "states/top.sls"} {
			regular := func(e manifest.Entry) bool { return e.Name == top && e.Kind.Regular() }
			if slices.ContainsFunc(list.Entries, regular) && !list.Holds(tree, top) {
				return fmt.Sprintf("%s of %s is not as it was signed", top, release), nil
			}
		}
	}
	return "", nil
}
