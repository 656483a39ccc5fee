package agent

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// deployLocal deploys an unsigned tree.
func (a *Agent) deployLocal(ctx context.Context, command string, given Given,
	bring func(*run) (project.Tree, error)) (*report.Report, error) {
	return a.pass(ctx, command, false, func(r *run) error {
		r.only, r.project.Settings = given.Only, given.Settings
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		if err := r.orBlocker(nil); err != nil {
			return err
		}
		if err := r.settleInterrupted(ctx); err != nil {
			return err
		}
		b, err := bring(r)
		if err != nil {
			return err
		}
		release := b.Local.Release()
		if err := r.project.Allow(release); err != nil {
			return err
		}
		pair := ledger.Pair{Service: release}
		if runs := r.ledger.Runs(); r.Alone == "" && runs != nil {
			pair.Base = runs.Base
		}
		r.report.To = &pair
		if err := r.linking.SetAside(site.ProjectsOf(pair)); err != nil {
			return err
		}
		if err := r.addRelease(release, b); err != nil {
			return err
		}
		// A person who deploys a tree that failed before wants it tried again.
		r.ledger.Forgive(pair)
		if err := r.project.Archive(ctx, pair); err != nil {
			return err
		}
		if err := r.apply(ctx, pair); err != nil {
			return err
		}
		return r.keepFromStore(release)
	})
}

// addRelease creates the directory of the release, unless it exists.
func (r *run) addRelease(release artifact.Release, b project.Tree) error {
	return r.record.Stage(procedure.ReleaseSync, release.String(), func() error {
		p := r.LayoutOf(release.Project)
		if err := durable.MkdirAll(p.Releases(), 0o755); err != nil {
			return err
		}
		if has, err := r.Held().Holds(release); has || err != nil {
			return err
		}
		return fetch.ExplainSpace(b.Install(p.Release(release.Dir())))
	})
}

// keepFromStore holds a host whose service did not come from the store, since the next run of the timer would replace
// it by what its channel names.
func (r *run) keepFromStore(release artifact.Release) error {
	if r.Alone != "" || r.connection.URL() == "" || r.ledger.Hold != nil {
		return nil
	}
	r.ledger.Hold = &ledger.Hold{Since: r.Time().UTC(), Reason: release.String() + " came by " + release.Local}
	r.record.Note("this host is held, so that its channel does not replace it; `corpus-agent unhold` returns to the " +
		"channel")
	return r.save()
}

// DeployEditable links a working tree as a release, so that the host runs what is edited there.
func (a *Agent) DeployEditable(ctx context.Context, name, dir string, given Given) (*report.Report, error) {
	if name == "" {
		book, err := a.ReadLedger()
		if err != nil {
			return nil, err
		}
		id, _, err := a.Who(ctx, given.Identity, book)
		if err != nil {
			return nil, err
		}
		name = id.Service
	}
	own, err := a.Project(ctx, name)
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if is, err := walk.Directory(dir); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	} else if !is {
		return nil, exit.WithCode(exit.Usage, fmt.Errorf("there is no directory %s to link", dir))
	}
	return own.deployLocal(ctx, "deploy", given, func(r *run) (project.Tree, error) {
		if r.Layout.Relocated() && !strings.HasPrefix(dir+"/", filepath.Clean(r.Layout.Root)+"/") {
			return project.Tree{},
				exit.WithCode(exit.Usage, diag.Project.Hint(fmt.Errorf("%s is outside of the root %s", dir, r.Layout.Root),
					"put the working tree below the root"))
		}
		local, err := trust.NewLocal(name, "editable", trust.ByEditable,
			artifact.NewDigest(sha256.Sum256([]byte(r.Layout.Inside(dir)))))
		return project.Tree{Local: local, Install: func(release string) error {
			target, err := filepath.Rel(filepath.Dir(release), dir)
			if err != nil {
				return err
			}
			return durable.Symlink(target, release)
		}}, err
	})
}

// Receive deploys what is pushed to one of a project's repositories. The repository's hook calls it before any ref
// moves, with the updates of the refs: an error refuses the push. Pushes to branches other than the deployed one are
// accepted and not deployed.
func (a *Agent) Receive(ctx context.Context, name, which string, refs io.Reader) (*report.Report, error) {
	own, err := a.known(ctx, name)
	if err != nil {
		return nil, err
	}
	entry, _, err := a.Entry(name, false)
	if err != nil || entry == nil || entry.Branch == "" {
		return nil,
			exit.WithCode(exit.Usage,
				errors.Join(err, diag.Project.Hint(fmt.Errorf("%s does not accept pushes", name),
					"corpus-agent project init %s --git", name)))
	}
	commit := ""
	lines := bufio.NewScanner(refs)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 3 && f[2] == "refs/heads/"+entry.Branch && !strings.HasPrefix(f[1], project.NoCommit) {
			commit = f[1]
		}
	}
	if err := lines.Err(); err != nil || commit == "" {
		return nil, err
	}
	if which == "pillar" {
		return own.receivePillar(ctx, commit)
	}
	return own.deployLocal(ctx, "push", Given{}, func(r *run) (project.Tree, error) {
		return r.project.Pushed(ctx, commit)
	})
}

// receivePillar replaces the pillar by a pushed one, and converges and installs the deployed pair. If that fails, it
// restores the previous pillar.
func (a *Agent) receivePillar(ctx context.Context, commit string) (*report.Report, error) {
	return a.pass(ctx, "push pillar", false, func(r *run) error {
		if err := r.identify(ctx, grains.Identity{}); err != nil {
			return err
		}
		pillar, err := r.project.PushedPillar(ctx, commit)
		if err != nil {
			return err
		}
		defer pillar.Remove(ctx)
		if err := pillar.Exchange(); err != nil {
			return fmt.Errorf("replacing the pillar of %s: %w", r.identity.Service, err)
		}
		if r.ledger.Good == nil {
			return nil
		}
		r.acted, r.report.To = true, r.ledger.Good
		if err := r.convergeAndInstall(ctx, *r.ledger.Good); err != nil {
			r.record.Note("the previous pillar is restored")
			if back := pillar.Exchange(); back != nil {
				return r.stuck(err, back)
			}
			if again := r.convergeAndInstall(ctx, *r.ledger.Good); again != nil {
				return r.stuck(err, again)
			}
			return exit.WithCode(exit.RolledBack, err)
		}
		return r.project.SaveConfiguration(ctx, *r.ledger.Good)
	})
}
