// Package families joins the state functions and execution functions of all families that a host has, for the sessions
// that converge it. Programs that change no host do not link it.
package families

import (
	"context"
	"io"
	"maps"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/action"
	"github.com/corpus-agent/corpus-agent/state/module/alias"
	"github.com/corpus-agent/corpus-agent/state/module/alternatives"
	"github.com/corpus-agent/corpus-agent/state/module/apache"
	"github.com/corpus-agent/corpus-agent/state/module/archive"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/cmd"
	"github.com/corpus-agent/corpus-agent/state/module/cron"
	"github.com/corpus-agent/corpus-agent/state/module/debconf"
	"github.com/corpus-agent/corpus-agent/state/module/docker"
	"github.com/corpus-agent/corpus-agent/state/module/environ"
	"github.com/corpus-agent/corpus-agent/state/module/event"
	"github.com/corpus-agent/corpus-agent/state/module/file"
	"github.com/corpus-agent/corpus-agent/state/module/firewalld"
	"github.com/corpus-agent/corpus-agent/state/module/gem"
	"github.com/corpus-agent/corpus-agent/state/module/git"
	"github.com/corpus-agent/corpus-agent/state/module/grains"
	"github.com/corpus-agent/corpus-agent/state/module/group"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	hosts "github.com/corpus-agent/corpus-agent/state/module/host"
	"github.com/corpus-agent/corpus-agent/state/module/ini"
	"github.com/corpus-agent/corpus-agent/state/module/iptables"
	"github.com/corpus-agent/corpus-agent/state/module/kmod"
	"github.com/corpus-agent/corpus-agent/state/module/ldap"
	"github.com/corpus-agent/corpus-agent/state/module/locale"
	"github.com/corpus-agent/corpus-agent/state/module/lvm"
	"github.com/corpus-agent/corpus-agent/state/module/mongodb"
	"github.com/corpus-agent/corpus-agent/state/module/mount"
	"github.com/corpus-agent/corpus-agent/state/module/mysql"
	"github.com/corpus-agent/corpus-agent/state/module/network"
	"github.com/corpus-agent/corpus-agent/state/module/npm"
	"github.com/corpus-agent/corpus-agent/state/module/pdbedit"
	"github.com/corpus-agent/corpus-agent/state/module/pecl"
	"github.com/corpus-agent/corpus-agent/state/module/pip"
	"github.com/corpus-agent/corpus-agent/state/module/pkg"
	"github.com/corpus-agent/corpus-agent/state/module/pkgrepo"
	"github.com/corpus-agent/corpus-agent/state/module/postgres"
	"github.com/corpus-agent/corpus-agent/state/module/rabbitmq"
	"github.com/corpus-agent/corpus-agent/state/module/selinux"
	"github.com/corpus-agent/corpus-agent/state/module/service"
	"github.com/corpus-agent/corpus-agent/state/module/sshauth"
	"github.com/corpus-agent/corpus-agent/state/module/sshknownhosts"
	"github.com/corpus-agent/corpus-agent/state/module/stateconf"
	"github.com/corpus-agent/corpus-agent/state/module/supervisord"
	"github.com/corpus-agent/corpus-agent/state/module/sysctl"
	"github.com/corpus-agent/corpus-agent/state/module/test"
	"github.com/corpus-agent/corpus-agent/state/module/timezone"
	"github.com/corpus-agent/corpus-agent/state/module/user"
	"github.com/corpus-agent/corpus-agent/state/module/virt"
	"github.com/corpus-agent/corpus-agent/state/module/virtualenv"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// states returns the registry of all state functions. They read sources, templates and pillar through the session.
func states(s *session.Session) module.Registry {
	in := inputs{file.Inputs{
		Sources: treeSources{s.Sources()}, Templates: fileTemplates{s}, Secret: s.Redactor.In, Cache: s.Option("cachedir"),
		Pillar: func(path, delimiter string) (any, bool) { return s.InPillar(path, delimiter) },
		Grains: func(path, delimiter string) (any, bool) { return value.Lookup(s.Grains, path, delimiter) },
	}}
	all := module.Registry{
		"alias":           alias.Functions(),
		"alternatives":    alternatives.Functions(),
		"archive":         archive.Functions(archives{in.Inputs, s.Sources()}),
		"cmd":             cmd.Functions(in),
		"cron":            cron.Functions(in),
		"debconf":         debconf.Functions(in),
		"environ":         environ.Functions(),
		"file":            file.Functions(in.Inputs),
		"event":           event.Functions(s.Actions()),
		"firewalld":       firewalld.Functions(),
		"gem":             gem.Functions(),
		"grains":          grains.Functions(keptGrains{s}),
		"group":           group.Functions(),
		"guest":           guest.Functions(),
		"host":            hosts.Functions(),
		"ini":             ini.Functions(),
		"iptables":        iptables.Functions(),
		"kmod":            kmod.Functions(),
		"ldap":            ldap.Functions(),
		"locale":          locale.Functions(),
		"lvm":             lvm.Functions(),
		"module":          action.Functions(callee{s.Actions()}),
		"mount":           mount.Functions(),
		"network":         network.Functions(in),
		"npm":             npm.Functions(),
		"pdbedit":         pdbedit.Functions(),
		"pecl":            pecl.Functions(),
		"pip":             pip.Functions(in),
		"pkg":             pkg.Functions(packageSources{s.Sources()}),
		"pkgrepo":         pkgrepo.Functions(packageSources{s.Sources()}),
		"selinux":         selinux.Functions(),
		"service":         service.Functions(),
		"ssh_auth":        sshauth.Functions(in),
		"ssh_known_hosts": sshknownhosts.Functions(),
		"supervisord":     supervisord.Functions(),
		"sysctl":          sysctl.Functions(),
		"stateconf":       stateconf.Functions(),
		"test":            test.Functions(func(path string) (any, bool) { return s.InPillar(path, ":") }),
		"timezone":        timezone.Functions(),
		"user":            user.Functions(),
		"virt":            virt.Functions(virt.Pillar(in.Pillar)),
		"virtualenv":      virtualenv.Functions(in.packages),
	}
	maps.Copy(all, apache.Tables())
	maps.Copy(all, docker.Tables())
	maps.Copy(all, git.Tables())
	maps.Copy(all, mongodb.Tables())
	maps.Copy(all, mysql.Tables(s.Connection))
	maps.Copy(all, postgres.Tables(s.Connection))
	maps.Copy(all, rabbitmq.Tables())
	return all
}

// inputs provides the content of sources to other modules, read as the file states do.
type inputs struct{ file.Inputs }

// Script implements cmd.Scripts.
func (in inputs) Script(ctx context.Context, source, env, template string, vars *value.Map) ([]byte, error) {
	return in.Inputs.Rendered(ctx, file.ContentRequest{URL: source, Env: env, Template: template, Context: vars})
}

// Source implements cron.Sources.
func (in inputs) Source(ctx context.Context, url, env string) ([]byte, error) {
	return in.Inputs.Rendered(ctx, file.ContentRequest{URL: url, Env: env})
}

// Rendered implements cron.Sources.
func (in inputs) Rendered(ctx context.Context, s cron.Source) ([]byte, error) {
	return in.Inputs.Rendered(ctx, file.ContentRequest(s))
}

// Diff implements cron.Sources.
func (in inputs) Diff(before, after string) string { return in.Inputs.Difference(before, after) }

// packages returns the pip that installs packages into a virtual environment.
func (in inputs) packages(p client.EnvironmentPackages) virtualenv.Pip { return pip.Into(p, in) }

// archives finds archives.
type archives struct {
	file.Inputs
	sources *session.Sources
}

// Archive implements archive.Sources.
func (a archives) Archive(ctx context.Context, w archive.Wanted) (archive.Source, error) {
	l, err := a.Locate(ctx, file.SourceRequest(w))
	if err != nil {
		return archive.Source{}, err
	}
	local, ok, err := a.sources.Local(l.URL, l.Env)
	if err != nil {
		return archive.Source{}, err
	}
	if ok {
		err = a.sources.ReceivedFrom(ctx, l.URL, local)
	}
	if err != nil {
		return archive.Source{}, err
	}
	if !ok && l.Cache == "" {
		return archive.Source{}, a.sources.Missing(l.URL, l.Env)
	}
	return archive.Source{Shown: l.Shown, Path: local, Cache: l.Cache, Notes: l.Notes, Sum: l.Sum, Open: l.Open,
		Verified: l.Verified}, nil
}

// packageSources opens package files.
type packageSources struct{ *session.Sources }

// Open implements pkg.Sources.
func (p packageSources) Open(ctx context.Context, url, env string) (io.ReadCloser, error) {
	source, err := p.Sources.Open(ctx, url, env)
	if err != nil {
		return nil, err
	}
	return source.ReadCloser, nil
}

// treeSources opens the sources of file states.
type treeSources struct{ *session.Sources }

// Open implements file.Sources.
func (t treeSources) Open(ctx context.Context, url, env string) (file.Source, error) {
	source, err := t.Sources.Open(ctx, url, env)
	return file.Source{ReadCloser: source.ReadCloser, Mode: source.Mode}, err
}

// List implements file.Sources.
func (t treeSources) List(ctx context.Context, url, env string) ([]file.Entry, error) {
	entries, err := t.Sources.List(ctx, url, env)
	all := make([]file.Entry, len(entries))
	for i, e := range entries {
		all[i] = file.Entry(e)
	}
	return all, err
}

// fileTemplates renders the templates of files.
type fileTemplates struct{ session *session.Session }

// Render implements file.Templates.
func (t fileTemplates) Render(ctx context.Context, f file.Template) ([]byte, error) {
	out, err := t.session.RenderFile(ctx, f.Engine, render.Source{Name: f.Source, Env: f.Env, Text: string(f.Text)},
		f.Vars)
	return []byte(out), err
}
