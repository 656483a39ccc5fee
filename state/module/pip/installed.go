package pip

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// installed implements pip.installed.
type installed struct {
	pip
	options
	Name            string `sls:"name"`
	Pkgs            any    `sls:"pkgs"`
	Requirements    any    `sls:"requirements"`
	Repo            string `sls:"repo"` // a URL that pip installs instead of the name
	Editable        any    `sls:"editable"`
	Upgrade         bool   `sls:"upgrade"`
	ForceReinstall  bool   `sls:"force_reinstall"`
	IgnoreInstalled bool   `sls:"ignore_installed"`

	todo  []pep440.Requirement // requirements to install
	files []string             // requirements files with missing packages
	edit  []string             // projects to install in editable mode
}

func (p *installed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
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

// what returns a description of the packages for messages.
func (p *installed) what() string {
	switch {
	case p.Pkgs != nil:
		return strings.Join(client.Packages(p.Pkgs), ", ")
	case p.Requirements != nil:
		return "the requirements of " + strings.Join(client.List(p.Requirements), ", ")
	case p.Repo != "":
		return redact.URLs(p.Repo)
	}
	return redact.URLs(p.Name)
}

// missing determines the packages that are not installed as declared. certain reports whether the versions that pip
// would install are known.
func (p *installed) missing(ctx context.Context, h *host.Host,
	have map[string]pep440.Distribution) (certain bool, err error) {
	certain, again := true, p.Upgrade || p.ForceReinstall || p.IgnoreInstalled
	for _, file := range client.List(p.Requirements) {
		list, known, err := p.requirements(ctx, h, file, 0)
		if err != nil {
			return false, err
		}
		if !known || again || slices.ContainsFunc(list, func(r pep440.Requirement) bool { return !fits(r, have) }) {
			p.files = append(p.files, file)
			certain = certain && known && !again
		}
	}
	for _, item := range client.List(p.Editable) {
		r := pep440.ParseRequirement(item)
		if d, ok := have[r.Name]; !ok || r.Name == "" || d.Location == "" || again {
			p.edit = append(p.edit, item)
		}
	}
	for _, text := range p.wanted() {
		if r := pep440.ParseRequirement(text); again || !fits(r, have) {
			p.todo = append(p.todo, r)
			certain = certain && r.Exact() != "" && !again
		}
	}
	return certain, nil
}

// wanted returns the requirements in the declaration.
func (p *installed) wanted() []string {
	switch {
	case p.Pkgs != nil:
		return client.Packages(p.Pkgs)
	case p.Requirements != nil, p.Editable != nil:
		return nil
	case p.Repo != "":
		return []string{p.Repo}
	}
	return []string{p.Name}
}

// fits reports whether an installed distribution meets a requirement.
func fits(r pep440.Requirement, have map[string]pep440.Distribution) bool {
	d, ok := have[r.Name]
	return ok && r.Name != "" && (!r.Plain || r.Met(d.Version))
}

// changes returns the changes in Salt's form: the new distributions as name==version. If after is nil, it
// returns the predicted changes.
func (p *installed) changes(before, after map[string]pep440.Distribution) *value.Map {
	m := value.NewMap()
	if len(p.files) > 0 {
		m.Set("requirements", true)
	}
	if len(p.edit) > 0 {
		m.Set("editable", true)
	}
	for _, r := range p.todo {
		is, ok := after[r.Name]
		switch {
		case after == nil && r.Name != "":
			m.Set(r.Name+"=="+r.Exact(), "Installed")
		case ok && (is.Version != before[r.Name].Version || p.ForceReinstall || p.IgnoreInstalled):
			m.Set(pep440.Normal(is.Name)+"=="+is.Version, "Installed")
		case !ok:
			m.Set(redact.URLs(r.Text)+"==???", "Installed")
		}
	}
	return m
}

func (p *installed) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	what, program, err := p.awaits(h)
	if err != nil || what != "" {
		return module.Report{}, client.OrMissing(err, program, what)
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
	program = program.Trusting(append(p.sourcesOnDisk(), p.options.files()...)...)
	if err := p.do(ctx, h, program, args...); err != nil {
		return module.Report{}, err
	}
	after, err := p.list(ctx, h, list...)
	return module.Report{Changes: p.changes(before, after), Comment: "installed " + p.what()}, err
}

// sourcesOnDisk returns the files on the host that determine what is installed: requirements files, packages,
// and the build files of projects.
func (p *installed) sourcesOnDisk() (files []string) {
	files = slices.Clone(p.files)
	for _, r := range p.todo {
		files = append(files, r.Text)
	}
	for _, dir := range p.edit {
		for _, name := range pythonProject {
			files = append(files, path.Join(dir, name))
		}
	}
	return files
}
