package language

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// gem is what the states share that go through gem.
type gem struct {
	Name   string `sls:"name"`
	Ruby   string `sls:"ruby"`
	GemBin string `sls:"gem_bin"`
	User   string `sls:"user"`
}

func (g *gem) program() host.Program {
	p := host.Program{Name: g.GemBin, Package: "ruby", RunAs: g.User, Hide: withoutPasswords}
	if p.Name == "" {
		p.Name = "gem"
	}
	return p
}

func (g *gem) valid() error {
	if g.Ruby == "" || g.GemBin != "" {
		return nil
	}
	return diag.WithHint(errors.New("the rubies of rvm and rbenv are not looked for"), "name the gem program of that ruby in gem_bin")
}

// versions are those of the gem that are installed, none if it is not.
func (g *gem) versions(ctx context.Context, h *host.Host) ([]string, error) {
	out, err := g.program().Ask(ctx, h, "list", "--local", "--exact", g.Name)
	for line := range strings.Lines(out) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " (")
		if !ok || name != g.Name {
			continue
		}
		var versions []string
		for v := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
			v = strings.TrimPrefix(strings.TrimSpace(v), "default: ")
			v, _, _ = strings.Cut(v, " ") // a platform may follow
			versions = append(versions, v)
		}
		return versions, err
	}
	return nil, err
}

// gemInstalled is gem.installed.
type gemInstalled struct {
	gem
	Version     string `sls:"version"`
	RDoc        bool   `sls:"rdoc"`
	RI          bool   `sls:"ri"`
	PreReleases bool   `sls:"pre_releases"`
	Proxy       string `sls:"proxy"`
	Source      string `sls:"source"`
}

func (g *gemInstalled) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := g.valid(); err != nil {
		return module.Diff{}, err
	}
	if what, err := awaits(h, g.program()); err != nil || what != "" {
		return module.Awaits(what, "install "+g.Name), err
	}
	have, err := g.versions(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	if len(have) > 0 && (g.Version == "" || slices.ContainsFunc(have, g.met)) {
		return module.Diff{Comment: g.Name + " is installed"}, nil
	}
	return module.Diff{Changes: value.NewMap(g.Name, "Installed"), Comment: strings.TrimSpace("would install " + g.Name + " " + g.Version)}, nil
}

// met reports whether a version is the one that is asked for, or fits `>= 1.2`, `~> 1.2` and the like.
func (g *gemInstalled) met(installed string) bool {
	for spec := range strings.SplitSeq(g.Version, ",") {
		spec = strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(spec), " ", ""), "~>", "~=")
		if strings.HasPrefix(spec, "=") && !strings.HasPrefix(spec, "==") {
			spec = "=" + spec
		}
		if spec != "" && spec != installed && !holds(spec, installed) {
			return false
		}
	}
	return true
}

func (g *gemInstalled) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	program := g.program()
	if what, err := awaits(h, program); err != nil || what != "" {
		return module.Report{}, orMissing(err, program, what)
	}
	login, remove, err := g.login(h, program)
	if err != nil {
		return module.Report{}, err
	}
	defer remove()
	program.Env = append(program.Env, login...)
	args := []string{"install", g.Name, "--no-document"}
	if documents := g.documents(); documents != "" {
		args[2] = "--document=" + documents
	}
	for _, f := range []struct{ option, v string }{{"--version", g.Version}, {"--http-proxy", g.Proxy}, {"--source", g.Source}} {
		if f.v != "" && !hasLogin(f.v) {
			args = append(args, f.option, f.v)
		}
	}
	if g.PreReleases {
		args = append(args, "--pre")
	}
	if _, err := program.Do(ctx, h, args...); err != nil {
		return module.Report{}, diag.WithHint(err, "look at the name and the version, and at the source that gem asks")
	}
	return module.Report{Changes: value.NewMap(g.Name, "Installed"), Comment: "installed " + g.Name}, nil
}

// login is the environment that names a file of settings, in which gem finds the URLs with a login: every user can read
// its arguments. The caller calls remove, which deletes the file.
func (g *gemInstalled) login(h *host.Host, program host.Program) (env []string, remove func(), err error) {
	settings := ""
	if hasLogin(g.Source) {
		settings += ":sources:\n- " + quoted(g.Source) + "\n"
	}
	if hasLogin(g.Proxy) {
		settings += "http_proxy: " + quoted(g.Proxy) + "\n"
	}
	if settings == "" {
		return nil, func() {}, nil
	}
	user, err := program.Runner(h)
	if err != nil {
		return nil, nil, err
	}
	file, err := h.TempFor(user, "gemrc-*", []byte("---\n"+settings), 0o600)
	return []string{"GEMRC=" + file}, func() { _ = h.Files.Remove(file) }, err // what is left of it is its user's alone
}

// quoted is a text in YAML.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (g *gemInstalled) documents() string {
	var kinds []string
	if g.RDoc {
		kinds = append(kinds, "rdoc")
	}
	if g.RI {
		kinds = append(kinds, "ri")
	}
	return strings.Join(kinds, ",")
}

// gemRemoved is gem.removed.
type gemRemoved struct{ gem }

func (g *gemRemoved) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := g.valid(); err != nil {
		return module.Diff{}, err
	}
	if what, err := awaits(h, g.program()); err != nil || what != "" {
		return module.Diff{Comment: what + " is not there, so nothing is installed"}, err
	}
	have, err := g.versions(ctx, h)
	if err != nil || len(have) == 0 {
		return module.Diff{Comment: g.Name + " is not installed"}, err
	}
	return module.Diff{Changes: value.NewMap(g.Name, "Removed"), Comment: "would remove " + g.Name}, nil
}

func (g *gemRemoved) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if _, err := g.program().Do(ctx, h, "uninstall", g.Name, "--all", "--executables"); err != nil {
		return module.Report{}, err
	}
	return done(d, "removed %s", g.Name), nil
}

// pecl is what the states share that go through pecl.
type pecl struct {
	Name string `sls:"name"`
}

func (*pecl) program() host.Program { return host.Program{Name: "pecl", Package: "php-pear"} }

// version is the one that is installed, "" for none.
func (p *pecl) version(ctx context.Context, h *host.Host) (string, error) {
	out, err := p.program().Ask(ctx, h, "list")
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == p.Name {
			return f[1], err
		}
	}
	return "", err
}

// peclInstalled is pecl.installed.
type peclInstalled struct {
	pecl
	Version        string `sls:"version"`
	Defaults       bool   `sls:"defaults"` // answer its questions as it suggests
	Force          bool   `sls:"force"`
	PreferredState string `sls:"preferred_state"`
}

func (p *peclInstalled) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, err := awaits(h, p.program()); err != nil || what != "" {
		return module.Awaits(what, "install "+p.Name), err
	}
	have, err := p.version(ctx, h)
	if err != nil || have != "" && (p.Version == "" || p.Version == have) {
		return module.Diff{Comment: p.Name + " is installed"}, err
	}
	return module.Diff{Changes: value.NewMap(p.Name, "Installed"), Comment: strings.TrimSpace("would install " + p.Name + " " + p.Version)}, nil
}

func (p *peclInstalled) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	program, name := p.program(), p.Name
	if what, err := awaits(h, program); err != nil || what != "" {
		return module.Report{}, orMissing(err, program, what)
	}
	if p.Version != "" {
		name += "-" + p.Version
	}
	args := []string{"-d", "preferred_state=" + p.PreferredState, "install"}
	if p.Force {
		args = append(args, "--force")
	}
	if p.Defaults {
		program.Stdin = strings.Repeat("\n", 100)
	}
	if _, err := program.Do(ctx, h, append(args, name)...); err != nil {
		return module.Report{}, diag.WithHint(err, "building an extension takes php-dev and a compiler")
	}
	// pecl may end well without having installed anything.
	if have, err := p.version(ctx, h); err != nil || have == "" {
		return module.Report{}, errors.Join(err, fmt.Errorf("pecl says nothing of %s after having installed it", p.Name))
	}
	return module.Report{Changes: value.NewMap(p.Name, "Installed"), Comment: "installed " + p.Name}, nil
}

// peclRemoved is pecl.removed.
type peclRemoved struct{ pecl }

func (p *peclRemoved) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, err := awaits(h, p.program()); err != nil || what != "" {
		return module.Diff{Comment: what + " is not there, so nothing is installed"}, err
	}
	have, err := p.version(ctx, h)
	if err != nil || have == "" {
		return module.Diff{Comment: p.Name + " is not installed"}, err
	}
	return module.Diff{Changes: value.NewMap(p.Name, "Removed"), Comment: "would remove " + p.Name}, nil
}

func (p *peclRemoved) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if _, err := p.program().Do(ctx, h, "uninstall", p.Name); err != nil {
		return module.Report{}, err
	}
	return done(d, "removed %s", p.Name), nil
}
