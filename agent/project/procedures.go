package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// tree returns the directory of a pair's service release.
func (r *Run) tree(pair ledger.Pair) string {
	return r.Host.LayoutOf(pair.Service.Project).Release(pair.Service.Dir())
}

// follows reports whether a step of the run was asked for and the service of a pair has a directory of procedures. It
// is false for a pair without a service.
func (r *Run) follows(pair ledger.Pair, part string) (bool, error) {
	if !r.Only.Has(part) || pair.BaseAlone() {
		return false, nil
	}
	return procedure.Has(r.tree(pair))
}

// Install runs the project's SLS files, or its own install program. A project that has neither, and no top file, needs
// no install, which is noted; it is an error if install was asked for by name.
func (r *Run) Install(ctx context.Context, pair ledger.Pair) error {
	if follows, err := r.follows(pair, procedure.Install); err != nil || !follows {
		return err
	}
	own, err := procedure.Find(r.tree(pair), procedure.Install)
	if err != nil {
		return err
	}
	if own.Executable != "" {
		return r.Record.Stage(
			procedure.Install,
			pair.Service.String(),
			func() error { return r.program(ctx, procedure.Install, own, pair) },
		)
	}
	names, err := procedure.InstallSLS(r.tree(pair))
	if err != nil {
		return err
	}
	hasTop, err := r.hasTop(pair)
	if err != nil {
		return err
	}
	if len(names) == 0 && !hasTop {
		return r.nothingToInstall(pair)
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := r.Record.Stage(procedure.Install, name, func() error { return r.sls(ctx, name, pair, r.Record) })
		if err != nil {
			return fmt.Errorf("install of %s: %w", name, err)
		}
	}
	return nil
}

// nothingToInstall notes that the release has no states. It fails if install was asked for by name.
func (r *Run) nothingToInstall(pair ledger.Pair) error {
	const add = "put SLS files into .salt, such as .salt/00_install.sls"
	if !r.Only.All() {
		return exit.WithCode(exit.Usage, diag.Project.Hint(fmt.Errorf("%s has nothing to install", pair.Service), add))
	}
	current := filepath.Join(r.Host.LayoutOf(pair.Service.Project).Dir, "current")
	r.Record.Note("%s has no states: its files are in place at %s, and nothing else was done; %s, to install something",
		pair.Service, r.Host.Layout.Inside(current), add)
	return nil
}

func (r *Run) hasTop(pair ledger.Pair) (bool, error) {
	service, _ := r.Host.PairDirs(pair)
	return walk.Named(filepath.Join(r.Host.Layout.Path(layout.StateRoots(service, "")[0]), "top.sls"))
}

// sls runs one of the project's SLS files with the native engine, whichever engine converges.
func (r *Run) sls(ctx context.Context, name string, pair ledger.Pair, o exec.Observer) error {
	if err := r.Intact(ctx, pair); err != nil {
		return err
	}
	cfg, err := r.Configuration(ctx, pair)
	if err != nil {
		return err
	}
	request, err := r.Request(ctx, pair)
	if err != nil {
		return err
	}
	if err := r.checkSalt(); err != nil {
		return err
	}
	own := filepath.Join(r.Host.Layout.Inside(r.tree(pair)), procedure.Dir)
	salt := r.Host.Layout.Inside(r.Host.Layout.Path("/srv/salt"))
	request.StateRoots = append([]string{own, salt}, request.StateRoots...)
	request.Vars = value.NewMap("cfg", cfg)
	err = failure.Within(ctx, "converge.timeout", r.Host.Config.ConvergeTimeout, func(ctx context.Context) error {
		program, err := state.SLS(ctx, request, name)
		if err != nil {
			return err
		}
		_, err = program.Apply(ctx, r.Observing(o))
		return errors.Join(err, r.Synced())
	})
	var states *state.Failure
	if errors.As(err, &states) {
		return exit.WithCode(exit.Failed, err)
	}
	return err
}

// program runs a procedure that is a program. CORPUS_CFG names a file with the configuration as JSON.
func (r *Run) program(ctx context.Context, name string, own procedure.Own, pair ledger.Pair) error {
	if r.Host.Layout.Relocated() && !r.Host.Chroot {
		r.Record.Note(
			"the procedure %s was skipped: it would run on the running system and not below %s",
			name,
			r.Host.Layout.Root,
		)
		return nil
	}
	if err := r.Intact(ctx, pair); err != nil {
		return err
	}
	cfg, err := r.Configuration(ctx, pair)
	if err != nil {
		return err
	}
	data, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	file, err := durable.TempFile(r.Host.Layout.State()) // a later run sweeps it if this one is killed
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(append(data, '\n')); err != nil { // a shell reads lines
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	options := hook.Options{
		Env:     append(r.HookEnv(name, pair), "CORPUS_CFG="+r.Host.Layout.Inside(file.Name())),
		Dir:     r.Host.Layout.Inside(r.tree(pair)),
		Timeout: r.Host.Config.HookTimeout,
		Check:   r.Host.CheckScript,
	}
	if r.Host.Layout.Relocated() {
		options.Root = r.Host.Layout.Root
	}
	ended, err := r.RecordProgram("procedure "+name, own.Executable, pair)
	if err != nil {
		return err
	}
	result, err := hook.Program(ctx, r.Host.Layout.Inside(own.Executable), options)
	ended()
	result.Release = pair.Service.String()
	r.Record.Hooks(name, []hook.Result{result})
	if err != nil {
		return &hook.Failed{Stage: name, Dir: options.Dir, Result: result, Err: err}
	}
	return nil
}

// own runs the project's own procedure, and reports whether it has one.
func (r *Run) own(ctx context.Context, name string, pair ledger.Pair, o exec.Observer) (bool, error) {
	own, err := procedure.Find(r.tree(pair), name)
	switch {
	case err != nil || !own.Found():
		return false, err
	case own.Executable != "":
		return true, r.program(ctx, name, own, pair)
	}
	return true, r.sls(ctx, own.SLS, pair, o)
}

// Fixperms runs the project's own fixperms, or else the built-in one, giveToUser.
func (r *Run) Fixperms(ctx context.Context, pair ledger.Pair) error {
	if follows, err := r.follows(pair, procedure.Fixperms); err != nil || !follows {
		return err
	}
	return r.Record.Stage(procedure.Fixperms, pair.Service.String(), func() error {
		done, err := r.own(ctx, procedure.Fixperms, pair, r.Record)
		if done || err != nil {
			return err
		}
		return r.giveToUser(ctx, pair)
	})
}

// ReleaseSync runs the project's own release-sync in a release that was just unpacked, such as a build.
func (r *Run) ReleaseSync(ctx context.Context, pair ledger.Pair) error {
	if follows, err := r.follows(pair, procedure.ReleaseSync); err != nil || !follows {
		return err
	}
	own, err := procedure.Find(r.tree(pair), procedure.ReleaseSync)
	if err != nil || !own.Found() {
		return err
	}
	return r.Record.Stage(procedure.ReleaseSync, pair.Service.String(), func() error {
		_, err := r.own(ctx, procedure.ReleaseSync, pair, r.Record)
		return err
	})
}

// Rollback runs the project's own rollback procedure, after the links were put back.
func (r *Run) Rollback(ctx context.Context, good ledger.Pair) error {
	if follows, err := r.follows(good, procedure.Rollback); err != nil || !follows {
		return err
	}
	return r.Record.Stage(procedure.Rollback, good.Service.String(), func() error {
		_, err := r.own(ctx, procedure.Rollback, good, r.Record)
		return err
	})
}

// Notify runs the project's own notify at the end of a run that deployed pair, or tried to; nil means the deployed
// pair. Its errors are noted, and do not change the result of the run.
func (r *Run) Notify(ctx context.Context, pair *ledger.Pair) {
	if !r.Only.Has(procedure.Notify) {
		return
	}
	if pair == nil || !r.Host.Held().Has(pair.Releases()...) {
		pair = r.Ledger.Good // the failed release was moved away
	}
	if pair == nil {
		return
	}
	if follows, err := r.follows(*pair, procedure.Notify); err != nil || !follows {
		if err != nil {
			r.Record.Note("the procedure notify was not run: %v", err)
		}
		return
	}
	if _, err := r.own(ctx, procedure.Notify, *pair, quiet{}); err != nil {
		r.Record.Note("the procedure notify failed: %v", err)
	}
}

// quiet is an observer that records nothing, for states that are not part of the run's results.
type quiet struct{}

func (quiet) StepStarted(*compile.Step) {}
func (quiet) StepDone(*exec.Result)     {}

// checkSalt returns an error if another user can change /srv/salt, from which SLS files of procedures may include
// files.
func (r *Run) checkSalt() error {
	return failure.OfWork(r.Host.CheckAbove(r.Host.Layout.Path("/srv/salt/_")))
}
