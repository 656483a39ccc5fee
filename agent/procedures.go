package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// tree is the service's release of a pair on this machine.
func (r *run) tree(pair ledger.Pair) string {
	return r.LayoutOf(pair.Service.Project).Release(pair.Service.Dir())
}

// follows reports whether a part of the run was asked for, and the service of a pair, where it has one, follows the
// convention of procedures.
func (r *run) follows(pair ledger.Pair, part string) (bool, error) {
	if !r.only.Has(part) || pair.BaseAlone() {
		return false, nil
	}
	return procedure.Has(r.tree(pair))
}

// named runs the steps that were asked for by name on what is deployed. No link moves, so there is
// nothing to go back to: a step that fails ends the run.
func (r *run) named(ctx context.Context) error {
	on := r.ledger.Good
	if r.ledger.Failing != nil {
		on = r.ledger.Failing
	}
	if on == nil {
		return inspect.ErrNothingDeployed()
	}
	pair := *on
	r.report.To, r.acted = &pair, true
	if r.test {
		return exit.WithCode(exit.Usage, diag.WithHint(errors.New("steps by name have no dry run"), "`corpus-agent deploy --test` shows what states would change"))
	}
	if r.only.Has(procedure.Archive) {
		if err := r.archiveTree(ctx, pair); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		name string
		part func() error
	}{
		{procedure.Sync, func() error { return r.sync(ctx, pair) }},
		{procedure.Fixperms, func() error { return r.fixperms(ctx, pair) }},
		{procedure.Converge, func() error { return r.converge(ctx, pair) }},
		{procedure.Install, func() error { return r.install(ctx, pair) }},
		{procedure.Health, func() error { return r.serving.HealthyNow(ctx, pair) }},
		{procedure.Rollback, func() error { return r.rollbackProcedure(ctx, pair) }},
	} {
		if !r.only.Has(step.name) {
			continue
		}
		if err := errors.Join(ctx.Err(), step.part()); err != nil {
			return failed(err)
		}
	}
	return nil
}

// failed gives an error without a code of its own that of a run that failed.
func failed(err error) error {
	if exit.Code(err) == exit.Internal {
		return exit.WithCode(exit.Failed, err)
	}
	return err
}

// install runs the project's SLS files, or its own install. A project that has neither, and no top file, is put in place
// alone, and the run says so; an install that was asked for by name fails.
func (r *run) install(ctx context.Context, pair ledger.Pair) error {
	if follows, err := r.follows(pair, procedure.Install); err != nil || !follows {
		return err
	}
	own, err := procedure.Find(r.tree(pair), procedure.Install)
	if err != nil {
		return err
	}
	if own.Executable != "" {
		return r.record.Stage(procedure.Install, pair.Service.String(), func() error { return r.program(ctx, procedure.Install, own, pair) })
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
		err := r.record.Stage(procedure.Install, name, func() error { return r.sls(ctx, name, pair, r.record) })
		if err != nil {
			return fmt.Errorf("install of %s: %w", name, err)
		}
	}
	return nil
}

// nothingToInstall notes that a release is in place and that no state of it ran. An install that was asked for by name fails.
func (r *run) nothingToInstall(pair ledger.Pair) error {
	const add = "put SLS files into .salt, such as .salt/00_install.sls"
	if !r.only.All() {
		return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("%s has nothing to install", pair.Service), add))
	}
	current := filepath.Join(r.LayoutOf(pair.Service.Project).Dir, "current")
	r.record.Note("%s has no states: its files are in place at %s, and nothing else was done; %s, to install something",
		pair.Service, r.Layout.Inside(current), add)
	return nil
}

func (r *run) hasTop(pair ledger.Pair) (bool, error) {
	service, _ := r.PairDirs(pair)
	return walk.Named(filepath.Join(r.Layout.Path(layout.StateRoots(service, "")[0]), "top.sls"))
}

// sls runs one of the project's SLS files, by the native engine whatever converges.
func (r *run) sls(ctx context.Context, name string, pair ledger.Pair, o exec.Observer) error {
	if err := r.intact(ctx, pair); err != nil {
		return err
	}
	cfg, err := r.configuration(ctx, pair)
	if err != nil {
		return err
	}
	request, err := r.request(ctx, pair)
	if err != nil {
		return err
	}
	if err := r.checkSalt(); err != nil {
		return err
	}
	own := filepath.Join(r.Layout.Inside(r.tree(pair)), procedure.Dir)
	request.StateRoots = append([]string{own, r.Layout.Inside(r.Layout.Path("/srv/salt"))}, request.StateRoots...)
	request.Vars = value.NewMap("cfg", cfg)
	ctx, cancel := context.WithTimeout(ctx, r.Config.ConvergeTimeout)
	defer cancel()
	program, err := state.SLS(ctx, request, name)
	if err != nil {
		return err
	}
	_, err = program.Apply(ctx, r.observing(o))
	err = errors.Join(err, r.synced())
	var states *state.Failure
	if errors.As(err, &states) {
		return exit.WithCode(exit.Failed, err)
	}
	return err
}

// program runs a project's own executable. It finds the configuration as JSON where CORPUS_CFG says.
func (r *run) program(ctx context.Context, name string, own procedure.Own, pair ledger.Pair) error {
	if r.Layout.Relocated() && !r.Chroot {
		r.record.Note("the procedure %s was skipped: it would run on the running system and not below %s", name, r.Layout.Root)
		return nil
	}
	if err := r.intact(ctx, pair); err != nil {
		return err
	}
	cfg, err := r.configuration(ctx, pair)
	if err != nil {
		return err
	}
	data, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	file, err := durable.TempFile(r.Layout.State()) // what a kill leaves of it is swept
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
	options := hook.Options{Env: append(r.hookEnv(name, pair), "CORPUS_CFG="+r.Layout.Inside(file.Name())), Dir: r.Layout.Inside(r.tree(pair)), Timeout: r.Config.HookTimeout, Check: r.CheckScript}
	if r.Layout.Relocated() {
		options.Root = r.Layout.Root
	}
	ended, err := r.ran("procedure "+name, own.Executable, pair)
	if err != nil {
		return err
	}
	result, err := hook.Program(ctx, r.Layout.Inside(own.Executable), options)
	ended()
	result.Release = pair.Service.String()
	r.record.Hooks(name, []hook.Result{result})
	if err != nil {
		return &hook.Failed{Stage: name, Dir: options.Dir, Result: result, Err: err}
	}
	return nil
}

// own runs a project's own procedure, and reports whether there is one.
func (r *run) own(ctx context.Context, name string, pair ledger.Pair, o exec.Observer) (bool, error) {
	own, err := procedure.Find(r.tree(pair), name)
	switch {
	case err != nil || !own.Found():
		return false, err
	case own.Executable != "":
		return true, r.program(ctx, name, own, pair)
	}
	return true, r.sls(ctx, own.SLS, pair, o)
}

// fixperms runs the project's own fixperms, or else gives the data and what is writable of the
// release to the project's user.
func (r *run) fixperms(ctx context.Context, pair ledger.Pair) error {
	if follows, err := r.follows(pair, procedure.Fixperms); err != nil || !follows {
		return err
	}
	return r.record.Stage(procedure.Fixperms, pair.Service.String(), func() error {
		done, err := r.own(ctx, procedure.Fixperms, pair, r.record)
		if done || err != nil {
			return err
		}
		return r.giveToUser(ctx, pair)
	})
}

// releaseSync runs what a project does of its own in a tree that has just come, such as building it.
func (r *run) releaseSync(ctx context.Context, pair ledger.Pair) error {
	if follows, err := r.follows(pair, procedure.ReleaseSync); err != nil || !follows {
		return err
	}
	own, err := procedure.Find(r.tree(pair), procedure.ReleaseSync)
	if err != nil || !own.Found() {
		return err
	}
	return r.record.Stage(procedure.ReleaseSync, pair.Service.String(), func() error {
		_, err := r.own(ctx, procedure.ReleaseSync, pair, r.record)
		return err
	})
}

// rollbackProcedure runs what a project does after a rollback of its own; links and releases were
// put back before.
func (r *run) rollbackProcedure(ctx context.Context, good ledger.Pair) error {
	if follows, err := r.follows(good, procedure.Rollback); err != nil || !follows {
		return err
	}
	return r.record.Stage(procedure.Rollback, good.Service.String(), func() error {
		_, err := r.own(ctx, procedure.Rollback, good, r.record)
		return err
	})
}

// notifyProcedure runs the project's own notify. It cannot change how the run ended.
func (r *run) notifyProcedure(ctx context.Context) {
	if !r.acted || !r.only.Has(procedure.Notify) {
		return
	}
	pair := r.report.To
	if pair == nil || !r.Held().Has(pair.Releases()...) {
		pair = r.ledger.Good // what failed was moved away
	}
	if pair == nil {
		return
	}
	if follows, err := r.follows(*pair, procedure.Notify); err != nil || !follows {
		if err != nil {
			r.record.Note("the procedure notify was not run: %v", err)
		}
		return
	}
	if _, err := r.own(ctx, procedure.Notify, *pair, quiet{}); err != nil {
		r.record.Note("the procedure notify failed: %v", err)
	}
}

// quiet is for states whose results are not the run's.
type quiet struct{}

func (quiet) StepStarted(*compile.Step) {}
func (quiet) StepDone(*exec.Result)     {}

// archiveTree keeps the project's tree as it is before a deploy changes anything. A release that is
// read-only is kept as it is under releases; what is writable is copied.
func (r *run) archiveTree(ctx context.Context, pair ledger.Pair) error {
	good := r.ledger.Good
	asked := !r.only.All() // by name, which counts in dev too
	if good == nil || good.Service.Project != pair.Service.Project || !r.only.Has(procedure.Archive) || r.environment() == envDev && !asked {
		return nil
	}
	says, err := r.Recipe(good.Service)
	if err != nil || good.Service.Local == trust.ByEditable {
		return err
	}
	if len(says.Writable) == 0 {
		if asked {
			r.record.Note("%s is read-only and stays under releases, so there is nothing to archive", good.Service)
		}
		return nil
	}
	return r.record.Stage(procedure.Archive, good.Service.String(), func() error { return r.keepTree(ctx, *good, asked) })
}

// keepTree archives the tree of a pair's service, with its hooks and its procedure. A user fills what is writable, and must
// not keep a release from the host by that: a tree that does not fit is not archived, and the run goes on and notes it. It
// fails where the archive was asked for by name, or the configuration requires archives.
func (r *run) keepTree(ctx context.Context, good ledger.Pair, asked bool) error {
	project := r.LayoutOf(good.Service.Project)
	if err := durable.MkdirAll(project.Archives(), 0o700); err != nil {
		return diag.WithHint(fmt.Errorf("archiving: %w", err), "the archives directory must be writable for root; nothing on the host was changed")
	}
	root, err := r.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	tree := procedure.Tree{Root: root, Path: r.Layout.Inside(r.tree(good)), Note: r.record.Note}
	missing := r.makeRoom(ctx, tree, project)
	if missing != nil && (!noRoom(missing) || asked || r.Config.ArchiveRequired) {
		return missing
	}
	if err := r.hooks(ctx, "pre-archive", good); err != nil {
		return err
	}
	if _, err := r.own(ctx, procedure.Archive, good, r.record); err != nil {
		return err
	}
	to := filepath.Join(project.Archives(), r.id)
	if missing == nil {
		if missing = tree.Archive(ctx, filepath.Join(to, layout.ArchivedTree)); missing == nil {
			r.kept = append(r.kept, to)
		}
	}
	switch {
	case missing == nil:
	case !noRoom(missing) || asked || r.Config.ArchiveRequired:
		return fetch.ExplainSpace(missing)
	default:
		r.record.Note("%s was not archived: %v; the deploy goes on without the archive. %s", good.Service, missing, diag.HintOf(missing))
	}
	return r.hooks(ctx, "post-archive", good)
}

// noRoom reports whether an error says that there is no room for an archive.
func noRoom(err error) bool {
	var none *procedure.NoRoom
	return errors.As(err, &none) || fetch.Full(err)
}

// makeRoom removes the oldest archived trees of a project where the tree fits then, and reports as a *procedure.NoRoom
// that it does not. The newest archive stays, so that no user can remove all of them by writing much.
func (r *run) makeRoom(ctx context.Context, tree procedure.Tree, project layout.Project) error {
	takes, err := tree.Measure(ctx)
	if err != nil {
		return err
	}
	missing := takes.Fits(project.Archives())
	if missing == nil || !noRoom(missing) {
		return missing
	}
	older, err := fetch.ArchivedTrees(project)
	if err != nil || len(older) < 2 {
		return errors.Join(missing, err)
	}
	older = older[1:]
	var held procedure.Takes
	for _, path := range older {
		one, err := r.measured(ctx, path)
		if err != nil {
			return errors.Join(missing, err)
		}
		held.Bytes, held.Files = held.Bytes+one.Bytes, held.Files+one.Files
	}
	if takes.FitsAfter(project.Archives(), held) != nil {
		return missing
	}
	for missing != nil && len(older) > 0 {
		oldest := older[len(older)-1]
		if err := fetch.RemoveArchivedTree(oldest); err != nil {
			return errors.Join(missing, err)
		}
		r.record.Note("the archive of run %s was removed to make room for a newer one", filepath.Base(filepath.Dir(oldest)))
		older, missing = older[:len(older)-1], takes.Fits(project.Archives())
	}
	return missing
}

// measured is what a tree in a directory of root's takes.
func (r *run) measured(ctx context.Context, path string) (procedure.Takes, error) {
	root, err := walk.Open(walk.Options{Dir: path})
	if err != nil {
		return procedure.Takes{}, err
	}
	defer root.Close()
	return procedure.Tree{Root: root, Path: "/"}.Measure(ctx)
}

// The environments, by which a project is treated.
const (
	envDev     = "dev"
	envStaging = "staging"
	envProd    = "prod"
)

// environment is what the project was switched to, or what its instance is.
func (r *run) environment() string {
	if r.entry != nil && r.entry.Env != "" {
		return r.entry.Env
	}
	switch {
	case slices.Contains(r.Config.Dev, r.identity.Instance):
		return envDev
	case slices.Contains(r.Config.Prod, r.identity.Instance):
		return envProd
	}
	return envStaging
}
