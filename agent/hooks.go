package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state"
)

// The stages at which a release's hooks run.
const (
	preRelease  = "pre-release"
	postRelease = "post-release"
)

// hooks runs the hooks of the service for a stage.
func (r *run) hooks(ctx context.Context, stage string, pair ledger.Pair) error {
	if !r.only.Has(procedure.Hooks) || pair.BaseAlone() {
		return nil
	}
	service, _ := r.PairDirs(pair)
	dir := layout.Hooks(service, stage)
	if some, err := hook.Any(r.Layout.Path(dir)); err != nil || !some {
		return err
	}
	options := hook.Options{Env: r.hookEnv(stage, pair), Dir: service, Timeout: r.Config.HookTimeout, Check: r.CheckScript}
	switch {
	case r.Layout.Relocated() && !r.Chroot:
		r.record.Note("the %s hooks were skipped: they would run on the running system and not below %s", stage,
			r.Layout.Root)
		return nil
	case r.Layout.Relocated():
		options.Root = r.Layout.Root
	}
	if stage == preRelease {
		if err := r.compiles(ctx, pair); err != nil {
			return err
		}
	}
	return r.record.Stage(stage, "", func() error {
		if err := r.releases.Intact(ctx, pair); err != nil {
			return err
		}
		ended, err := r.beforeProgram("hooks", stage, pair)
		if err != nil {
			return err
		}
		r.learnSecrets(ctx, pair)
		results, err := hook.Run(ctx, dir, options)
		ended()
		for i := range results {
			results[i].Release = pair.Service.String()
		}
		r.record.Hooks(stage, results)
		var failed *hook.Failed
		if errors.As(err, &failed) {
			failed.Stage, failed.Dir, failed.Result.Release = stage, service, pair.Service.String()
		}
		return err
	})
}

// beforeProgram writes into the journal that a program of a release runs, which may change anything.
func (r *run) beforeProgram(what, name string, pair ledger.Pair) (ended func(), err error) {
	r.releases.BeforeProgram()
	return r.undo.BeforeProgram(what, name, pair)
}

// hookEnv returns the environment of a hook, which contains nothing else; docs/deploy.md lists it.
func (r *run) hookEnv(stage string, pair ledger.Pair) []string {
	service, base := r.PairDirs(pair)
	project := r.LayoutOf(pair.Own().Project)
	env := process.Clean(
		"CORPUS_STAGE="+stage, "CORPUS_RUN="+r.id,
		"CORPUS_SERVICE="+r.identity.Service, "CORPUS_INSTANCE="+r.identity.Instance,
		"CORPUS_REGION="+r.identity.Region, "CORPUS_NODE="+r.identity.Node,
		"CORPUS_VERSION="+pair.Service.Version, "CORPUS_RELEASE="+service, "CORPUS_BASE_RELEASE="+base,
		"CORPUS_DATA="+r.Layout.Inside(project.Data()),
	)
	if r.left != nil {
		env = append(env, "CORPUS_PREVIOUS_VERSION="+r.left.Service.Version)
	} else if good := r.ledger.Good; good != nil {
		env = append(env, "CORPUS_PREVIOUS_VERSION="+good.Service.Version)
	}
	return env
}

// showActs notes what a run would do besides its states: leave load balancers, run hooks and restart units.
func (r *run) showActs(ctx context.Context, target ledger.Pair) {
	r.balance.Show(target)
	if hooks := r.hooksToRun(target); len(hooks) > 0 {
		r.record.Note("would run the hooks %s", strings.Join(hooks, ", "))
	}
	pairs := []ledger.Pair{target}
	if runs := r.ledger.Runs(); runs != nil {
		pairs = []ledger.Pair{*runs, target}
	}
	if units := r.serving.UnitsToFollow(ctx, pairs...); len(units) > 0 {
		r.record.Note("would restart %s, as far as they run another release then", strings.Join(units, ", "))
	}
}

// hooksToRun returns the hooks of a pair's release that a run starts, each with its stage.
func (r *run) hooksToRun(pair ledger.Pair) (all []string) {
	if !r.only.Has(procedure.Hooks) || pair.BaseAlone() || r.Layout.Relocated() && !r.Chroot {
		return nil
	}
	service, _ := r.PairDirs(pair)
	for _, stage := range []string{preRelease, postRelease} {
		names, err := hook.List(r.Layout.Path(layout.Hooks(service, stage)))
		if err != nil {
			r.record.Note("the %s hooks would fail: %v", stage, err)
		}
		for _, name := range names {
			all = append(all, stage+" "+name)
		}
	}
	return all
}

// compiles returns the error of a pair that does not compile. It is called before the first hook runs, since what a
// hook does cannot be undone.
func (r *run) compiles(ctx context.Context, pair ledger.Pair) error {
	if !r.only.Has(procedure.Converge) {
		return nil
	}
	engine, err := r.engine()
	if err != nil {
		return err
	}
	request, err := r.readOnlyRequest(ctx, pair)
	if err != nil {
		return err
	}
	request.Test = true
	_, err = state.WithTemplates(engine).Compile(ctx, request)
	return err
}
