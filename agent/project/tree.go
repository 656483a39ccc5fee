package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/procedure/git"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"golang.org/x/sys/unix"
)

// Tree is a release that did not come from the store, with the function that installs it in a directory.
type Tree struct {
	Local   trust.Local
	Install func(dir string) error
}

// Allow returns an error for an unsigned release in an environment that does not run unsigned ones.
func (r *Run) Allow(release artifact.Release) error {
	if slices.Contains(r.Host.Config.AllowUnsigned, release.Project) {
		return nil
	}
	switch env := r.Environment(); {
	case env == Prod:
		return exit.WithCode(
			exit.Refused,
			diag.Project.Hint(
				fmt.Errorf("%s came by %s: no key signed it, and this is a prod environment", release, release.Local),
				"publish it to the store, or let allow_unsigned in agent.yaml name %s",
				release.Project,
			),
		)
	case env != Dev && release.Local == trust.ByEditable:
		return exit.WithCode(
			exit.Refused,
			diag.Project.Hint(fmt.Errorf("a tree that is edited runs in dev environments alone, and this is %s", env),
				"corpus-agent project switchmode %s dev", release.Project),
		)
	}
	return nil
}

// Pushed returns the tree of a commit of the project's repository.
func (r *Run) Pushed(ctx context.Context, ref string) (Tree, error) {
	p := r.Host.LayoutOf(r.Identity.Service)
	if err := r.CheckRepositories(p); err != nil {
		return Tree{}, err
	}
	repository := p.Git("project")
	tree, err := git.Find(ctx, repository, ref)
	if err != nil {
		return Tree{}, exit.WithCode(exit.Usage, err)
	}
	local, err := trust.NewLocal(r.Identity.Service, tree.Version(), trust.ByPush, tree.Digest())
	return Tree{
		Local:   local,
		Install: func(release string) error { return export(ctx, repository, tree, release) },
	}, err
}

// export creates the directory of a commit, atomically.
func export(ctx context.Context, repository string, tree git.Tree, to string) (err error) {
	temp, err := durable.TempDir(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, durable.RemoveTemp(ctx, temp))
		}
	}()
	if err := git.Export(ctx, repository, tree, temp); err != nil {
		return err
	}
	if err := closeLinked(temp); err != nil {
		return err
	}
	if err := os.Chmod(temp, site.ReleaseMode); err != nil {
		return err
	}
	return durable.Install(temp, to)
}

// closeLinked removes the permissions of other users from the targets of links of a tree.
func closeLinked(dir string) error {
	root, err := walk.OpenTree(dir)
	if err != nil {
		return err
	}
	return errors.Join(manifest.CloseLinked(root), root.Close())
}

// NoCommit is the start of the hash that git writes if there is no commit.
const NoCommit = "0000000000"

// Pillar is a pushed pillar in a directory of its own, beside the project's pillar.
type Pillar struct{ temp, place string }

// PushedPillar exports a commit of the pillar's repository. The caller calls Remove.
func (r *Run) PushedPillar(ctx context.Context, commit string) (*Pillar, error) {
	p := r.Host.LayoutOf(r.Identity.Service)
	if err := r.CheckRepositories(p); err != nil {
		return nil, err
	}
	repository := p.Git("pillar")
	tree, err := git.Find(ctx, repository, commit)
	if err != nil {
		return nil, err
	}
	temp, err := durable.TempDir(p.Dir)
	if err != nil {
		return nil, err
	}
	pillar := &Pillar{temp: temp, place: p.Pillar()}
	if err := git.Export(ctx, repository, tree, temp); err != nil {
		pillar.Remove(ctx)
		return nil, err
	}
	return pillar, nil
}

// Exchange swaps the pushed pillar and the project's atomically: both paths exist at every moment. A second call swaps
// them back.
func (p *Pillar) Exchange() error {
	err := unix.Renameat2(unix.AT_FDCWD, p.temp, unix.AT_FDCWD, p.place, unix.RENAME_EXCHANGE)
	return errors.Join(err, durable.SyncDir(filepath.Dir(p.place)))
}

// Remove removes the directory beside the project's pillar. A later run sweeps what stays.
func (p *Pillar) Remove(ctx context.Context) { _ = durable.RemoveTemp(ctx, p.temp) }
