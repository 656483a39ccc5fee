package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Project returns the agent of one project. The host's own service shares the host's ledger. Any other project has a
// ledger of its own, and a run for it moves only its links.
func (a *Agent) Project(ctx context.Context, name string) (*Agent, error) {
	if err := artifact.CheckProject(name); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if name == artifact.Base {
		return nil,
			exit.WithCode(exit.Usage, diag.Project.Hint(
				errors.New("base is deployed together with the service and not by itself"),
				"`corpus-agent deploy` brings both"))
	}
	book, err := a.ReadLedger()
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if id, _, err := a.Who(ctx, grains.Identity{}, book); err == nil && id.Service == name {
		return a, nil
	}
	other := *a
	other.Alone = name
	return &other, nil
}

// known returns the agent of a project that was initialised or deployed, and an error for any other.
func (a *Agent) known(ctx context.Context, name string) (*Agent, error) {
	own, err := a.Project(ctx, name)
	if err != nil {
		return nil, err
	}
	entered, err := a.Registered(name)
	if err != nil {
		return nil, err
	}
	if book, err := own.ReadLedger(); !entered && (err != nil || book.Good == nil || book.Good.Service.Project != name) {
		return nil,
			exit.WithCode(exit.Usage,
				errors.Join(err, diag.Project.Hint(fmt.Errorf("this host has no project %q", name), "%s", a.otherProjects(name))))
	}
	return own, nil
}

func (a *Agent) otherProjects(name string) string {
	var names []string
	dirs, _ := a.ProjectDirs() // those that can be read are enough for a hint
	for _, dir := range dirs {
		if n := filepath.Base(dir); n != artifact.Base {
			names = append(names, n)
		}
	}
	if hint := diag.DidYouMean(name, names); hint != "" {
		return hint
	}
	return "corpus-agent project init " + name
}

// Init holds the options of InitProject.
type Init struct {
	Git    bool   // make repositories to push to
	Branch string // the branch that is deployed
	Env    string // dev, staging or prod; "" for that of the instance
	User   string // "" for a user named after the project
	Hook   string // command line of this program, for the repositories' hooks
}

// InitProject prepares the host for a project, and returns the repositories to push to. If it is called again, it does
// only what is missing.
func (a *Agent) InitProject(ctx context.Context, name string, init Init) (remotes []string, err error) {
	own, err := a.Project(ctx, name)
	if err != nil {
		return nil, err
	}
	if entered, err := a.Registered(name); err != nil || !entered && !recipe.IsName(name) {
		return nil,
			exit.WithCode(exit.Usage,
				cmp.Or(err, diag.Project.Hint(fmt.Errorf("%q cannot be the name of a project in %s", name, recipe.Name),
					"a name is lower-case letters, digits and hyphens, and begins with a letter")))
	}
	if err := errors.Join(project.CheckEnvironment(init.Env), project.CheckUser(init.User),
		project.CheckBranch(init.Branch)); err != nil {
		return nil, err
	}
	_, err = own.pass(ctx, "project init", false, func(r *run) error {
		if err := r.identify(ctx, grains.Identity{}); err != nil && own.Alone == "" {
			return err
		}
		r.project.Register(name)
		if init.User != "" {
			r.project.Entry.User, r.project.Entry.Group = init.User, init.User
		}
		if init.Env != "" {
			r.project.Entry.Env = init.Env
		}
		if err := r.project.Prepare(ctx); err != nil {
			return err
		}
		if init.Git {
			if remotes, err = r.project.Repositories(ctx, init.Branch, init.Hook); err != nil {
				return err
			}
		}
		if r.ledger.Good != nil {
			return r.project.SaveConfiguration(ctx, *r.ledger.Good)
		}
		return r.project.SaveConfiguration(ctx, ledger.Pair{Service: artifact.Release{Project: name}})
	})
	return remotes, err
}

// SwitchMode sets the environment of a project; "" sets it back to that of the instance.
func (a *Agent) SwitchMode(ctx context.Context, name, env string) error {
	if err := project.CheckEnvironment(env); err != nil {
		return err
	}
	return a.editProject(ctx, name, func(p *ledger.Project) error {
		p.Env = env
		return nil
	})
}

// SetConfiguration merges settings into a project's configuration, from the next deploy on.
func (a *Agent) SetConfiguration(ctx context.Context, name string, settings *value.Map) error {
	return a.editProject(ctx, name, func(p *ledger.Project) error {
		before := p.Settings
		if before == nil {
			before = value.NewMap()
		}
		merged, err := value.Merge(before, settings, value.Recurse, false)
		p.Settings = merged
		return err
	})
}

func (a *Agent) editProject(ctx context.Context, name string, change func(*ledger.Project) error) error {
	if _, err := a.known(ctx, name); err != nil {
		return err
	}
	return a.Edit("project", func(*ledger.Ledger) error {
		entry, _, err := a.Entry(name, false)
		if err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		if entry == nil {
			entry = &ledger.Project{Name: name, User: records.UserName(name), Group: records.UserName(name)}
		}
		if err := change(entry); err != nil {
			return err
		}
		return a.SaveEntry(entry)
	})
}

// Configuration returns a project's configuration as a deploy would see it now, with secrets redacted.
func (a *Agent) Configuration(ctx context.Context, name string) (*value.Map, error) {
	own, err := a.known(ctx, name)
	if err != nil {
		return nil, err
	}
	book, err := own.ReadLedger()
	if err != nil {
		return nil, err
	}
	rep := &report.Report{}
	r := own.newRun(true, book, rep, report.Record(rep, own.Secrets()))
	if err := r.identify(ctx, grains.Identity{}); err != nil {
		return nil, err
	}
	pair := ledger.Pair{Service: artifact.Release{Project: name}}
	if book.Good != nil {
		pair = *book.Good
	}
	cfg, err := r.project.Configuration(ctx, pair)
	if err != nil {
		return nil, err
	}
	return r.Secrets().Value(cfg).(*value.Map), nil
}

// RunProject runs steps of a project's deploy on its deployed release. If release-sync is among them, it deploys what
// the channels name for the host's service, or the head of the branch for a project with repositories.
func (a *Agent) RunProject(ctx context.Context, name string, given Given) (*report.Report, error) {
	own, err := a.known(ctx, name)
	if err != nil {
		return nil, err
	}
	entry, _, err := a.Entry(name, false)
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if !given.Only.Has(procedure.ReleaseSync) || own.Alone == "" && (entry == nil || entry.Branch == "" || own.pulls()) {
		return own.Deploy(ctx, given, false)
	}
	if entry == nil || entry.Branch == "" {
		return nil,
			exit.WithCode(exit.Usage,
				diag.Project.Hint(fmt.Errorf("%s is not this host's service and has no repository to deploy from", name),
					"corpus-agent project init %s --git, or project deploy %s --editable DIR", name, name))
	}
	return own.deployLocal(ctx, "project deploy", given,
		func(r *run) (project.Tree, error) { return r.project.Pushed(ctx, entry.Branch) })
}

// pulls reports whether the host's service comes from a store.
func (a *Agent) pulls() bool {
	book, err := a.ReadLedger()
	return err == nil && (a.Config.Store != "" || book.Host.Store != "") && book.Hold == nil
}

// RollbackProject calls RollbackTo for a project, or ShowRollback if test is set.
func (a *Agent) RollbackProject(ctx context.Context, name, version string, test bool) (*report.Report, error) {
	own, err := a.known(ctx, name)
	if err != nil {
		return nil, err
	}
	if test {
		return own.ShowRollback(ctx, version)
	}
	return own.RollbackTo(ctx, version)
}
