package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/project"
)

// The stages at which a release's hooks run.
const (
	preRelease  = "pre-release"
	postRelease = "post-release"
)

// apply makes a pair that is unpacked the one that runs, or leaves the host on the last good one.
func (r *run) apply(ctx context.Context, pair ledger.Pair) error {
	r.acted = true
	before, err := r.open(pair)
	if err != nil {
		return err
	}
	r.watchUnits(ctx)
	if err := r.switchTo(ctx, pair, before); err != nil {
		return r.back(ctx, pair, before, err)
	}
	if pair.BaseAlone() {
		r.ledger.ConvergedAlone(pair)
	} else {
		r.ledger.Deployed(pair, r.Time().UTC())
	}
	r.ledger.Serving = nil
	r.rememberWho()
	if r.leaves != nil {
		r.leave(*r.leaves)
		r.pointPrevious(pair)
	}
	if err := r.save(); err != nil {
		r.record.Note("the deploy is done, but the ledger was not written: %v", err)
	}
	if err := r.project.SaveConfiguration(ctx, pair); err != nil {
		r.record.Note("the project's configuration was not saved: %v", err)
	}
	if err := r.prune(ctx); err != nil {
		r.record.Note("old releases were not all removed: %v", err)
	}
	return nil
}

// open writes into the ledger that a deploy is under way and where its links have to go back to.
// When it takes up one that was cut short, that is where they were before the first attempt.
func (r *run) open(pair ledger.Pair) (map[string]link.Set, error) {
	running := r.underWay(pair)
	running.Leaves = r.leaves
	if cut := r.ledger.Running; cut != nil {
		running.Before = cut.Before
		if cut.Pair.Same(pair) {
			running.Attempts, running.Reboots = cut.Attempts+1, cut.Reboots
			running.Step, running.Cuts = r.cutStep, r.cuts
			r.record.Note("the deploy of %s that run %s began is taken up again", pair, cut.Run)
		}
	}
	if running.Before == nil {
		running.Before = map[string]link.Set{}
	}
	for _, release := range pair.Releases() {
		if _, known := running.Before[release.Project]; known {
			continue
		}
		s, err := r.linksBefore(release.Project)
		if err != nil {
			return nil, err
		}
		running.Before[release.Project] = s
	}
	r.ledger.Running = running
	return running.Before, r.save()
}

// underWay is this run in the ledger, from its first link to its last.
func (r *run) underWay(pair ledger.Pair) *ledger.Running {
	return &ledger.Running{Run: r.id, Command: r.report.Command, Began: &r.report.Started, Pair: pair, Attempts: 1}
}

// linksBefore are the links of a project before a deploy. A `current` that was lost leads to what the ledger says is
// deployed again: the deploy goes back to that, and `previous` is to name it.
func (r *run) linksBefore(project string) (link.Set, error) {
	links := link.Of(r.LayoutOf(project))
	s, err := links.Read()
	if err != nil {
		return s, fmt.Errorf("reading the links: %w", err)
	}
	runs := r.ledger.Runs()
	if runs == nil || s.Current != "" {
		return s, nil
	}
	for _, release := range runs.Releases() {
		if release.Project == project && r.Held().Has(release) {
			s.Current = release.Dir()
			return s, links.SetCurrent(s.Current)
		}
	}
	return s, nil
}

// switchTo is the part of a deploy that a failure undoes.
func (r *run) switchTo(ctx context.Context, pair ledger.Pair, before map[string]link.Set) error {
	if err := r.restoreOthers(pair); err != nil {
		return err
	}
	if err := r.intact(ctx, pair); err != nil {
		return err
	}
	if err := r.project.Sync(ctx, pair); err != nil {
		return err
	}
	if err := r.project.ReleaseSync(ctx, pair); err != nil {
		return err
	}
	if err := r.project.Fixperms(ctx, pair); err != nil {
		return err
	}
	err := r.record.Stage("link", pair.String(), func() error {
		if err := r.serving.Follow(ctx, pair, r.serving.LinkedFirst(pair)); err != nil {
			return err
		}
		defer r.serving.Moved()
		return failure.OfWork(r.link(pair))
	})
	if err != nil {
		return err
	}
	if err := r.hooks(ctx, preRelease, pair); err != nil {
		return err
	}
	r.flips = true
	err = r.convergeAndInstall(ctx, pair)
	r.flips = false
	r.serving.StartPutOffLater()
	if err != nil {
		return err
	}
	r.noteInterpreters(pair) // states had their chance to install them
	if stopped(ctx) {
		return ctx.Err()
	}
	err = r.record.Stage("release", pair.String(), func() error {
		if err := r.serving.Follow(ctx, pair, pair.Releases()); err != nil {
			return err
		}
		defer r.serving.Moved()
		return failure.OfWork(r.promote(pair, before))
	})
	if err != nil {
		return err
	}
	if err := r.serving.Serve(ctx, pair, r.leaves != nil); err != nil {
		return err
	}
	if err := r.hooks(ctx, postRelease, pair); err != nil {
		return err
	}
	if err := r.selfTest(ctx); err != nil {
		return err
	}
	return r.serving.Healthy(ctx, pair)
}

// convergeAndInstall is what makes the host what the pair says, by top files and then by the
// project's own SLS files.
func (r *run) convergeAndInstall(ctx context.Context, pair ledger.Pair) error {
	if r.only.Has(procedure.Converge) {
		if err := r.converge(ctx, pair); err != nil {
			return err
		}
	}
	if err := r.project.Install(ctx, pair); err != nil {
		return err
	}
	return r.project.Fixperms(ctx, pair)
}

// link points base at its new release and next at the service's. States are read from both.
func (r *run) link(pair ledger.Pair) error {
	for _, release := range pair.Releases() {
		if err := project.LayOut(r.LayoutOf(release.Project)); err != nil {
			return err
		}
	}
	if r.ledger.Runs() != nil {
		if err := r.clearNames(); err != nil {
			return err
		}
	}
	if pair.Base != nil {
		base := r.LayoutOf(pair.Base.Project)
		links := link.Of(base)
		if err := links.SetNext(pair.Base.Dir()); err != nil {
			return err
		}
		if err := links.SetCurrent(pair.Base.Dir()); err != nil {
			return err
		}
		if err := link.Name(r.Layout.BaseLink(), base); err != nil {
			return err
		}
	}
	if pair.BaseAlone() {
		return nil
	}
	service := r.LayoutOf(pair.Service.Project)
	if r.Alone == "" {
		if err := link.Name(r.Layout.ServiceLink(), service); err != nil {
			return err
		}
	}
	return link.Of(service).SetNext(pair.Service.Dir())
}

// promote makes the pair current, and what was current previous. A next that a person removed or moved since states
// began leads to the pair again.
func (r *run) promote(pair ledger.Pair, before map[string]link.Set) error {
	for _, release := range pair.Releases() {
		links := link.Of(r.LayoutOf(release.Project))
		if now, err := links.Read(); err == nil && now.Next != release.Dir() {
			if err := links.SetNext(release.Dir()); err != nil {
				return err
			}
			r.record.Note("next of %s was changed during the run, by another program or a person; it leads to %s again", release.Project, release)
		}
		if err := links.Promote(release.Dir(), before[release.Project]); err != nil {
			return err
		}
	}
	return nil
}

// hooks runs the service's programs of a stage.
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
		r.record.Note("the %s hooks were skipped: they would run on the running system and not below %s", stage, r.Layout.Root)
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
		if err := r.intact(ctx, pair); err != nil {
			return err
		}
		ended, err := r.undo.BeforeProgram("hooks", stage, pair)
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

// hookEnv is all that a hook sees of its surroundings; docs/deploy.md lists it.
func (r *run) hookEnv(stage string, pair ledger.Pair) []string {
	service, base := r.PairDirs(pair)
	project := r.LayoutOf(pair.Own().Project)
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LANG=C.UTF-8",
		"CORPUS_STAGE=" + stage, "CORPUS_RUN=" + r.id,
		"CORPUS_SERVICE=" + r.identity.Service, "CORPUS_INSTANCE=" + r.identity.Instance,
		"CORPUS_REGION=" + r.identity.Region, "CORPUS_NODE=" + r.identity.Node,
		"CORPUS_VERSION=" + pair.Service.Version, "CORPUS_RELEASE=" + service, "CORPUS_BASE_RELEASE=" + base,
		"CORPUS_DATA=" + r.Layout.Inside(project.Data()),
	}
	if r.left != nil {
		env = append(env, "CORPUS_PREVIOUS_VERSION="+r.left.Service.Version)
	} else if good := r.ledger.Good; good != nil {
		env = append(env, "CORPUS_PREVIOUS_VERSION="+good.Service.Version)
	}
	return env
}
