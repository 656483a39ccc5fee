package language

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// pipInstalled is pip.installed.
type pipInstalled struct {
	pip
	pipOptions
	Name            string `sls:"name"`
	Pkgs            any    `sls:"pkgs"`
	Requirements    any    `sls:"requirements"`
	Repo            string `sls:"repo"` // a URL for pip, taken instead of the name
	Editable        any    `sls:"editable"`
	Upgrade         bool   `sls:"upgrade"`
	ForceReinstall  bool   `sls:"force_reinstall"`
	IgnoreInstalled bool   `sls:"ignore_installed"`

	todo  []requirement // what is missing
	files []string      // of requirements, of which something is missing
	edit  []string      // what to install to be worked on
}

// pipOptions are handed through to pip.
type pipOptions struct {
	Log                    string `sls:"log"`
	Proxy                  string `sls:"proxy"`
	Timeout                int    `sls:"timeout"` // seconds that the network may take
	FindLinks              any    `sls:"find_links"`
	IndexURL               string `sls:"index_url"`
	ExtraIndexURL          any    `sls:"extra_index_url"`
	NoIndex                bool   `sls:"no_index"`
	Target                 string `sls:"target"`
	ExistsAction           string `sls:"exists_action"`
	NoDeps                 bool   `sls:"no_deps"`
	InstallOptions         any    `sls:"install_options"`
	GlobalOptions          any    `sls:"global_options"`
	PreReleases            bool   `sls:"pre_releases"`
	Cert                   string `sls:"cert"`
	TrustedHost            any    `sls:"trusted_host"`
	NoCacheDir             bool   `sls:"no_cache_dir"`
	CacheDir               string `sls:"cache_dir"`
	NoBinary               any    `sls:"no_binary"`
	ExtraArgs              any    `sls:"extra_args"`
	UseWheel               any    `sls:"use_wheel"`    // pip does without this and what follows
	NoUseWheel             any    `sls:"no_use_wheel"` // for years
	Mirrors                any    `sls:"mirrors"`
	Build                  any    `sls:"build"`
	Download               any    `sls:"download"`
	DownloadCache          any    `sls:"download_cache"`
	Source                 any    `sls:"source"`
	NoInstall              any    `sls:"no_install"`
	NoDownload             any    `sls:"no_download"`
	AllowAllExternal       any    `sls:"allow_all_external"`
	AllowExternal          any    `sls:"allow_external"`
	AllowUnverified        any    `sls:"allow_unverified"`
	ProcessDependencyLinks any    `sls:"process_dependency_links"`
}

// args are the options on the command line. What may have a password in it goes into env instead.
func (o *pipOptions) args() (args, env []string) {
	for _, f := range []struct {
		option string
		on     bool
	}{{"--no-index", o.NoIndex}, {"--no-deps", o.NoDeps}, {"--pre", o.PreReleases}, {"--no-cache-dir", o.NoCacheDir}} {
		if f.on {
			args = append(args, f.option)
		}
	}
	timeout := ""
	if o.Timeout > 0 {
		timeout = fmt.Sprint(o.Timeout)
	}
	for _, f := range []struct{ option, v string }{{"--log", o.Log}, {"--timeout", timeout}, {"--target", o.Target}, {"--exists-action", o.ExistsAction},
		{"--cert", o.Cert}, {"--cache-dir", o.CacheDir}} {
		if f.v != "" {
			args = append(args, f.option, f.v)
		}
	}
	for _, f := range []struct {
		option string
		v      any
	}{{"--install-option", o.InstallOptions}, {"--global-option", o.GlobalOptions}, {"--trusted-host", o.TrustedHost}, {"--no-binary", o.NoBinary}} {
		for _, v := range words(f.v) {
			args = append(args, f.option, v)
		}
	}
	for _, f := range []struct {
		name string
		v    []string
	}{{"PIP_PROXY", words(o.Proxy)}, {"PIP_INDEX_URL", words(o.IndexURL)}, {"PIP_EXTRA_INDEX_URL", words(o.ExtraIndexURL)}, {"PIP_FIND_LINKS", words(o.FindLinks)}} {
		if len(f.v) > 0 {
			env = append(env, f.name+"="+strings.Join(f.v, " "))
		}
	}
	return append(args, words(o.ExtraArgs)...), env
}

func (p *pipInstalled) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	what, _, err := p.awaits(h)
	if err != nil || what != "" {
		return module.Awaits(what, "install "+p.what()), err
	}
	list := []string{}
	if p.Target != "" {
		list = []string{"--path", p.Target}
	}
	have, err := p.list(ctx, h, list...)
	if err != nil {
		return module.Diff{}, err
	}
	certain, err := p.missing(ctx, h, have)
	switch {
	case err != nil:
		return module.Diff{}, err
	case len(p.todo)+len(p.files)+len(p.edit) == 0:
		return module.Diff{Comment: p.what() + " is installed"}, nil
	case !certain:
		return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: "would install " + p.what()}, nil
	}
	return module.Diff{Changes: p.changes(have, nil), Comment: "would install " + p.what()}, nil
}

// what is what there is to install, for people.
func (p *pipInstalled) what() string {
	switch {
	case p.Pkgs != nil:
		return strings.Join(names(p.Pkgs), ", ")
	case p.Requirements != nil:
		return "the requirements of " + strings.Join(words(p.Requirements), ", ")
	case p.Repo != "":
		return withoutPasswords(p.Repo)
	}
	return withoutPasswords(p.Name)
}

// missing finds what is not installed as it is asked for; certain says that its versions are known.
func (p *pipInstalled) missing(ctx context.Context, h *host.Host, have map[string]distribution) (certain bool, err error) {
	certain, again := true, p.Upgrade || p.ForceReinstall || p.IgnoreInstalled
	for _, file := range words(p.Requirements) {
		list, known, err := p.requirements(ctx, h, file, 0)
		if err != nil {
			return false, err
		}
		if !known || again || slices.ContainsFunc(list, func(r requirement) bool { return !installed(r, have) }) {
			p.files = append(p.files, file)
			certain = certain && known && !again
		}
	}
	for _, item := range words(p.Editable) {
		r := parseRequirement(item)
		if d, ok := have[r.name]; !ok || r.name == "" || d.Location == "" || again {
			p.edit = append(p.edit, item)
		}
	}
	for _, text := range p.wanted() {
		if r := parseRequirement(text); again || !installed(r, have) {
			p.todo = append(p.todo, r)
			certain = certain && r.exact() != "" && !again
		}
	}
	return certain, nil
}

// wanted are the requirements that stand in the declaration.
func (p *pipInstalled) wanted() []string {
	switch {
	case p.Pkgs != nil:
		return names(p.Pkgs)
	case p.Requirements != nil, p.Editable != nil:
		return nil
	case p.Repo != "":
		return []string{p.Repo}
	}
	return []string{p.Name}
}

func installed(r requirement, have map[string]distribution) bool {
	d, ok := have[r.name]
	return ok && r.name != "" && (!r.plain || r.met(d.Version))
}

// changes are in Salt's words: what is new, name==version by name==version. Without an after they are
// those that are foreseen.
func (p *pipInstalled) changes(before, after map[string]distribution) *value.Map {
	m := value.NewMap()
	if len(p.files) > 0 {
		m.Set("requirements", true)
	}
	if len(p.edit) > 0 {
		m.Set("editable", true)
	}
	for _, r := range p.todo {
		is, ok := after[r.name]
		switch {
		case after == nil && r.name != "":
			m.Set(r.name+"=="+r.exact(), "Installed")
		case ok && (is.Version != before[r.name].Version || p.ForceReinstall || p.IgnoreInstalled):
			m.Set(normal(is.Name)+"=="+is.Version, "Installed")
		case !ok:
			m.Set(withoutPasswords(r.text)+"==???", "Installed")
		}
	}
	return m
}

func (p *pipInstalled) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	what, program, err := p.awaits(h)
	if err != nil || what != "" {
		return module.Report{}, orMissing(err, program, what)
	}
	list := []string{}
	if p.Target != "" {
		list = []string{"--path", p.Target}
	}
	before, err := p.list(ctx, h, list...)
	if err != nil {
		return module.Report{}, err
	}
	args, env := p.args()
	program.Env = append(program.Env, env...)
	args = append([]string{"install"}, args...)
	for _, f := range []struct {
		option string
		on     bool
	}{{"--upgrade", p.Upgrade}, {"--force-reinstall", p.ForceReinstall}, {"--ignore-installed", p.IgnoreInstalled}} {
		if f.on {
			args = append(args, f.option)
		}
	}
	more, env, remove, err := p.handed(ctx, h, program)
	defer remove()
	if err != nil {
		return module.Report{}, err
	}
	args, program.Env = append(args, more...), append(program.Env, env...)
	program.Reads = append(program.Reads, p.sourcesOnDisk()...)
	if err := p.do(ctx, h, program, args...); err != nil {
		return module.Report{}, err
	}
	after, err := p.list(ctx, h, list...)
	return module.Report{Changes: p.changes(before, after), Comment: "installed " + p.what()}, err
}

// sourcesOnDisk are the files on the host that decide what is installed, or are: files of requirements, packages, and what
// builds a project in a directory.
func (p *pipInstalled) sourcesOnDisk() (files []string) {
	files = slices.Clone(p.files)
	for _, r := range p.todo {
		files = append(files, r.text)
	}
	for _, dir := range p.edit {
		for _, name := range pythonProject {
			files = append(files, path.Join(dir, name))
		}
	}
	return slices.DeleteFunc(files, func(f string) bool { return !path.IsAbs(f) })
}

func orMissing(err error, program host.Program, what string) error {
	if err != nil {
		return err
	}
	return absent(program, what)
}

// handed are the arguments by which pip gets what is to be installed, and the environment with the logins of repositories,
// which pip would show in the arguments of git. Other URLs with a login, and requirements of the state tree, are put into
// files that the user who runs pip can read alone. The caller calls remove, with an error too, which deletes them.
func (p *pipInstalled) handed(ctx context.Context, h *host.Host, program host.Program) (args, env []string, remove func(), err error) {
	var temporary []string
	remove = func() {
		for _, file := range temporary {
			_ = h.Files.Remove(file) // what is left of it is its user's alone
		}
	}
	var lines, fetched []string
	for _, file := range p.files {
		if !strings.Contains(file, "://") {
			args = append(args, "--requirement", file)
			continue
		}
		text, err := p.text(ctx, h, file)
		if err != nil {
			return nil, nil, remove, err
		}
		fetched = append(fetched, text)
	}
	for _, item := range p.edit {
		lines = append(lines, "--editable "+item)
	}
	for _, r := range p.todo {
		lines = append(lines, r.text)
	}
	texts, env := withoutGitLogins(append(fetched, lines...))
	fetched, lines = texts[:len(fetched)], texts[len(fetched):]
	hidden := ""
	for _, line := range lines {
		item, editable := strings.CutPrefix(line, "--editable ")
		switch {
		case hasLogin(line):
			hidden += line + "\n"
		case editable:
			args = append(args, "--editable", item)
		default:
			args = append(args, item)
		}
	}
	if hidden != "" {
		fetched = append(fetched, hidden)
	}
	user, err := program.Runner(h)
	for _, text := range fetched {
		if err != nil {
			break
		}
		var file string
		if file, err = h.TempFor(user, "requirements-*.txt", []byte(text), 0o600); err == nil {
			temporary, args = append(temporary, file), append(args, "--requirement", file)
		}
	}
	return args, env, remove, err
}

// withoutGitLogins takes the logins out of the URLs of git repositories in some texts, of one line or more.
func withoutGitLogins(texts []string) (plain, env []string) {
	var words []string
	for _, text := range texts {
		for _, word := range strings.Fields(text) {
			if strings.Contains(word, "git+http") && hasLogin(word) && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	bare, env := host.GitLogins(words...)
	for _, text := range texts {
		for i, word := range words {
			text = strings.ReplaceAll(text, word, bare[i])
		}
		plain = append(plain, text)
	}
	return plain, env
}

// hasLogin reports whether there is a URL with a user or a password in a text.
func hasLogin(text string) bool { return withoutPasswords(text) != text }

// pipRemoved is pip.removed.
type pipRemoved struct {
	pip
	Name         string `sls:"name"`
	Requirements any    `sls:"requirements"`
	Log          string `sls:"log"`
	Proxy        any    `sls:"proxy"`
	Timeout      any    `sls:"timeout"`

	todo []string
}

func (p *pipRemoved) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, _, err := p.awaits(h); err != nil || what != "" {
		return module.Diff{Comment: what + " is not there, so nothing is installed"}, err
	}
	have, err := p.list(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	wanted := []requirement{parseRequirement(p.Name)}
	if p.Requirements != nil {
		wanted = nil
	}
	for _, file := range words(p.Requirements) {
		list, _, err := p.requirements(ctx, h, file, 0)
		if err != nil {
			return module.Diff{}, err
		}
		wanted = append(wanted, list...)
	}
	for _, r := range wanted {
		if _, ok := have[r.name]; ok {
			p.todo = append(p.todo, r.name)
		}
	}
	if len(p.todo) == 0 {
		return module.Diff{Comment: p.Name + " is not installed"}, nil
	}
	return module.Diff{Changes: value.NewMap(p.Name, "Removed"), Comment: "would remove " + strings.Join(p.todo, ", ")}, nil
}

func (p *pipRemoved) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	program, _ := p.program(h)
	if err := p.do(ctx, h, program, append([]string{"uninstall", "--yes"}, p.todo...)...); err != nil {
		return module.Report{}, err
	}
	return done(d, "removed %s", strings.Join(p.todo, ", ")), nil
}

// pipUptodate is pip.uptodate: what is installed is the newest that the index has.
type pipUptodate struct {
	pip
	Name string `sls:"name"`

	todo map[string]distribution
}

func (p *pipUptodate) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, _, err := p.awaits(h); err != nil || what != "" {
		return module.Awaits(what, "upgrade what is old"), err
	}
	var err error
	if p.todo, err = p.list(ctx, h, "--outdated"); err != nil {
		return module.Diff{}, diag.WithHint(err, "look at the index that pip asks, and at the network")
	}
	if len(p.todo) == 0 {
		return module.Diff{Comment: "all is the newest there is"}, nil
	}
	m := value.NewMap()
	for _, name := range slices.Sorted(maps.Keys(p.todo)) {
		d := p.todo[name]
		m.Set(d.Name, value.NewMap("old", d.Version, "new", d.Latest))
	}
	return module.Diff{Changes: m, Comment: "would upgrade " + strings.Join(m.Names(), ", ")}, nil
}

func (p *pipUptodate) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	what, program, err := p.awaits(h)
	if err != nil || what != "" {
		return module.Report{}, orMissing(err, program, what)
	}
	if err := p.do(ctx, h, program, append([]string{"install", "--upgrade"}, d.Changes.Names()...)...); err != nil {
		return module.Report{}, err
	}
	after, err := p.list(ctx, h)
	m := value.NewMap()
	for _, name := range d.Changes.Names() {
		if is := after[normal(name)]; is.Version != p.todo[normal(name)].Version {
			m.Set(name, value.NewMap("old", p.todo[normal(name)].Version, "new", is.Version))
		}
	}
	return module.Report{Changes: m, Comment: "upgraded " + strings.Join(m.Names(), ", ")}, err
}
