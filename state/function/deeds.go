package function

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// deed is a function that a state function does as well: what it finds to do is done. The answer is
// what changed, or True where Salt's function answers so.
type deed struct {
	signature string // as far as it differs from **kwargs
	state     string // state.function
	rename    map[string]string
	fixed     map[string]any
	yes       bool                  // the answer is True
	without   []string              // arguments that mean nothing here
	answer    func(a Arguments) any // the answer, where it is another than the changes
}

// deeds are the functions that states stand in for, by name.
func deeds() map[string]deed {
	path := map[string]string{"path": "name"}
	fromSource, cached := map[string]string{"path": "source", "dest": "name"}, []string{"gzip", "verify_ssl", "use_etag"}
	destination := func(a Arguments) any { return a.Value("dest") }
	return map[string]deed{
		"pkg.install":       {signature: "name=None", state: "pkg.installed"},
		"pkg.remove":        {signature: "name=None", state: "pkg.removed"},
		"pkg.purge":         {signature: "name=None", state: "pkg.purged"},
		"pkg.upgrade":       {signature: "name='all'", state: "pkg.uptodate"},
		"pkg.mod_repo":      {signature: "repo", state: "pkgrepo.managed", rename: map[string]string{"repo": "name"}},
		"pkg.del_repo":      {signature: "repo", state: "pkgrepo.absent", rename: map[string]string{"repo": "name"}},
		"pkg.hold":          {signature: "name=None", state: "pkg.held"},
		"pkg.unhold":        {signature: "name=None", state: "pkg.unheld"},
		"user.add":          {signature: "name", state: "user.present", yes: true},
		"user.delete":       {signature: "name, remove=False", state: "user.absent", rename: map[string]string{"remove": "purge"}, yes: true},
		"group.add":         {signature: "name", state: "group.present", yes: true},
		"group.delete":      {signature: "name", state: "group.absent", yes: true},
		"sysctl.persist":    {signature: "name, value", state: "sysctl.present"},
		"timezone.set_zone": {signature: "timezone", state: "timezone.system", rename: map[string]string{"timezone": "name"}, yes: true},
		"locale.set_locale": {signature: "locale", state: "locale.system", rename: map[string]string{"locale": "name"}, yes: true},
		"locale.gen_locale": {signature: "locale", state: "locale.present", rename: map[string]string{"locale": "name"}, yes: true},
		"hosts.add_host":    {signature: "ip, alias", state: "host.present", rename: map[string]string{"alias": "name"}, yes: true},
		"hosts.rm_host":     {signature: "ip, alias", state: "host.absent", rename: map[string]string{"alias": "name"}, yes: true},
		"file.remove":       {signature: "path", state: "file.absent", rename: path, yes: true},
		"file.touch":        {signature: "name, atime=None, mtime=None", state: "file.touch", yes: true},
		"file.symlink":      {signature: "src, path, force=False", state: "file.symlink", rename: map[string]string{"src": "target", "path": "name"}, yes: true},
		"file.mkdir":        {signature: "dir_path, user=None, group=None, mode=None", state: "file.directory", rename: map[string]string{"dir_path": "name"}, yes: true},
		"file.makedirs": {signature: "path, user=None, group=None, mode=None", state: "file.directory", rename: path,
			fixed: map[string]any{"makedirs": true}},
		"file.rename": {signature: "src, dst", state: "file.rename", rename: map[string]string{"src": "source", "dst": "name"},
			fixed: map[string]any{"force": true}, yes: true},
		"file.comment":   {signature: "path, regex, char='#'", state: "file.comment", rename: path},
		"file.uncomment": {signature: "path, regex, char='#'", state: "file.uncomment", rename: path},
		"file.replace":   {signature: "path, pattern, repl", state: "file.replace", rename: path},
		"file.copy": {signature: "src, dst, recurse=False, remove_existing=False", state: "file.copy", rename: map[string]string{"src": "source", "dst": "name"},
			fixed: map[string]any{"force": true}, without: []string{"recurse", "remove_existing"}, yes: true},
		"cp.get_file": {signature: "path, dest, makedirs=False", state: "file.managed", rename: fromSource, without: cached, answer: destination},
		"cp.get_template": {signature: "path, dest, template='jinja', makedirs=False", state: "file.managed", rename: fromSource, without: cached,
			answer: destination},
		"git.clone": {signature: "cwd, url=None, name=None, opts='', git_opts='', user=None, password=None, identity=None, https_user=None, https_pass=None",
			state: "git.cloned", rename: map[string]string{"url": "name", "cwd": "target"}, without: []string{"opts", "git_opts", "password", "ignore_retcode", "saltenv", "output_encoding"}, yes: true},
		"alternatives.install": {signature: "name, link, path, priority", state: "alternatives.install"},
		"alternatives.set":     {signature: "name, path", state: "alternatives.set"},
		"alternatives.remove":  {signature: "name, path", state: "alternatives.remove"},
		"alternatives.auto":    {signature: "name", state: "alternatives.auto"},
	}
}

func stateActs(f *Facts) Table {
	t := Table{}
	for name, d := range deeds() {
		t[name] = Of(d.signature+", **kwargs", d.with(f))
	}
	return t
}

// with is the function that does the deed.
func (d deed) with(f *Facts) func(ctx context.Context, a Arguments) (any, error) {
	return func(ctx context.Context, a Arguments) (any, error) {
		if f.Modules == nil {
			return nil, fmt.Errorf("%s is not to be had here", d.state)
		}
		changes, err := perform(ctx, f.Host, f.Modules(), d.state, d.arguments(a))
		switch {
		case err != nil:
			return nil, err
		case d.answer != nil:
			return d.answer(a), nil
		case d.yes:
			return true, nil
		}
		return changes, nil
	}
}

// arguments are those of the state.
func (d deed) arguments(a Arguments) *value.Map {
	m := value.NewMap()
	for key, v := range a.All() {
		name := value.Str(key)
		if renamed, ok := d.rename[name]; ok {
			name = renamed
		}
		if more, ok := v.(*value.Map); ok && name == "kwargs" {
			m.Update(more)
		} else if v != nil {
			m.Set(name, v)
		}
	}
	for _, name := range d.without {
		m.Delete(name)
	}
	for name, v := range d.fixed {
		m.Set(name, v)
	}
	if !m.Has("name") { // a list of packages, for one
		m.Set("name", d.state)
	}
	return m
}

// perform does what a state asks for, and gives the changes.
func perform(ctx context.Context, h *host.Host, modules module.Registry, function string, arguments *value.Map) (any, error) {
	state, fun, _ := strings.Cut(function, ".")
	resource, ok := modules.New(state, fun)
	if !ok {
		return nil, fmt.Errorf("there is no state %s to do it", function)
	}
	warnings, problems := module.Decode(resource, module.Call{Function: function, Arguments: arguments})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if len(warnings) > 0 {
		return nil, diag.WithHint(typeError("%s", warnings[0]), "the arguments are those of the state %s", function)
	}
	d, err := resource.Check(ctx, h)
	if err != nil || d.Empty() {
		return value.NewMap(), err
	}
	report, err := resource.Apply(ctx, h, d)
	if report.Changes == nil {
		report.Changes = value.NewMap()
	}
	return report.Changes, err
}
