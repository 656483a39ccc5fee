package language

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// npm is what the states share that go through npm.
type npm struct {
	User string `sls:"user"`
	Dir  string `sls:"dir"` // "" for all of the host
}

func (n *npm) program(env any) host.Program {
	var reads []string
	if n.Dir != "" {
		reads = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", ".npmrc", "node_modules"}
	}
	return host.Program{Name: "npm", RunAs: n.User, Dir: n.Dir, Reads: reads, Hide: withoutPasswords,
		Env: append([]string{"NO_UPDATE_NOTIFIER=1", "npm_config_fund=false", "npm_config_audit=false"}, module.Environment(env)...)}
}

// list gives the versions of what is installed, by name.
func (n *npm) list(ctx context.Context, h *host.Host, env any) (map[string]string, error) {
	args := []string{"list", "--json", "--depth=0"}
	if n.Dir == "" {
		args = append(args, "--global")
	}
	out, err := n.program(env).Ask(ctx, h, args...)
	if err != nil && !host.EndedWith(err, 1) { // which it is when something it depends on is missing
		return nil, err
	}
	var tree struct {
		Dependencies map[string]struct {
			Version string
			Missing bool
		}
	}
	if err := json.Unmarshal([]byte(out), &tree); err != nil {
		return nil, fmt.Errorf("reading what npm list prints: %w", err)
	}
	found := map[string]string{}
	for name, d := range tree.Dependencies {
		if !d.Missing {
			found[name] = d.Version
		}
	}
	return found, nil
}

// split takes name@version apart; a scope begins with an @ too.
func split(text string) (name, version string) {
	if i := strings.LastIndexByte(text, '@'); i > 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// npmInstalled is npm.installed.
type npmInstalled struct {
	npm
	Name           string `sls:"name"`
	Pkgs           any    `sls:"pkgs"`
	ForceReinstall bool   `sls:"force_reinstall"`
	Registry       string `sls:"registry"`
	Env            any    `sls:"env"`

	todo  []string
	login []string // the environment with the logins of what is to be installed
}

func (n *npmInstalled) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, err := awaits(h, n.program(n.Env)); err != nil || what != "" {
		return module.Awaits(what, "install "+withoutPasswords(n.Name)), err
	}
	have, err := n.list(ctx, h, n.Env)
	if err != nil {
		return module.Diff{}, err
	}
	wanted := names(n.Pkgs)
	if n.Pkgs == nil {
		wanted = []string{n.Name}
	}
	wanted, n.login = npmLogins(wanted)
	for _, text := range wanted {
		name, version := split(text)
		is, ok := have[name]
		if !ok || version != "" && version != "latest" && version != is || n.ForceReinstall {
			n.todo = append(n.todo, text)
		}
	}
	if len(n.todo) == 0 {
		return module.Diff{Comment: strings.Join(wanted, ", ") + " is installed"}, nil
	}
	return module.Diff{Changes: value.NewMap("old", value.NewList(), "new", value.Strings(n.todo...)), Comment: "would install " + strings.Join(n.todo, ", ")}, nil
}

func (n *npmInstalled) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	program := n.program(n.Env)
	if what, err := awaits(h, program); err != nil || what != "" {
		return module.Report{}, orMissing(err, program, what)
	}
	args := []string{"install", "--silent"}
	if n.Dir == "" {
		args = append(args, "--global")
	}
	if n.Registry != "" {
		program.Env = append(program.Env, "npm_config_registry="+n.Registry)
	}
	program.Env = append(program.Env, n.login...)
	if _, err := program.Do(ctx, h, append(args, n.todo...)...); err != nil {
		return module.Report{}, diag.WithHint(err, "look at the name and the version, and at the registry that npm asks")
	}
	return done(d, "installed %s", strings.Join(n.todo, ", ")), nil
}

// npmLogins takes the logins out of URLs of packages. The environment gives them to git, for repositories, and to npm, for
// archives: every user can read the arguments of a program.
func npmLogins(packages []string) (plain, env []string) {
	plain, env = host.GitLogins(packages...)
	for i, text := range packages {
		if text == plain[i] {
			continue
		}
		_, rest, _ := strings.Cut(text, "://")
		at, path, _ := strings.Cut(rest, "/")
		login, server := at[:strings.LastIndexByte(at, '@')], at[strings.LastIndexByte(at, '@')+1:]
		if plain, err := url.PathUnescape(login); err == nil {
			login = plain
		}
		key := "npm_config_//" + server + "/"
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			key += path[:i+1]
		}
		env = append(env, key+":_auth="+base64.StdEncoding.EncodeToString([]byte(login)))
	}
	return plain, env
}

// npmRemoved is npm.removed.
type npmRemoved struct {
	npm
	Name string `sls:"name"`
}

func (n *npmRemoved) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if what, err := awaits(h, n.program(nil)); err != nil || what != "" {
		return module.Diff{Comment: what + " is not there, so nothing is installed"}, err
	}
	have, err := n.list(ctx, h, nil)
	if err != nil {
		return module.Diff{}, err
	}
	if _, ok := have[n.Name]; !ok {
		return module.Diff{Comment: n.Name + " is not installed"}, nil
	}
	return module.Diff{Changes: value.NewMap(n.Name, "Removed"), Comment: "would remove " + n.Name}, nil
}

func (n *npmRemoved) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	args := []string{"uninstall", n.Name}
	if n.Dir == "" {
		args = append(args, "--global")
	}
	if _, err := n.program(nil).Do(ctx, h, args...); err != nil {
		return module.Report{}, err
	}
	return done(d, "removed %s", n.Name), nil
}

// npmBootstrap is npm.bootstrap: what the package.json of a directory asks for is installed in it.
type npmBootstrap struct {
	Name   string `sls:"name"`
	User   string `sls:"user"`
	Silent bool   `sls:"silent"`
}

func (n *npmBootstrap) program() host.Program { return (&npm{User: n.User, Dir: n.Name}).program(nil) }

func (n *npmBootstrap) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if _, err := h.Files.Stat(n.Name + "/package.json"); err != nil {
		return module.Awaits(n.Name+"/package.json", "install what it asks for"), nil
	}
	if what, err := awaits(h, n.program()); err != nil || what != "" {
		return module.Awaits(what, "install what "+n.Name+" asks for"), err
	}
	out, err := n.program().Ask(ctx, h, "install", "--dry-run", "--json", "--no-package-lock")
	if err != nil {
		return module.Diff{}, diag.WithHint(err, "look at %s/package.json", n.Name)
	}
	var plan struct{ Added, Changed, Removed int }
	if i := strings.IndexByte(out, '{'); i < 0 || json.Unmarshal([]byte(out[i:]), &plan) != nil {
		return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: "would install what " + n.Name + " asks for"}, nil
	}
	if plan.Added+plan.Changed+plan.Removed == 0 {
		return module.Diff{Comment: n.Name + " has what it asks for"}, nil
	}
	return module.Diff{Changes: value.NewMap(n.Name, "Bootstrapped"), Comment: "would install what " + n.Name + " asks for"}, nil
}

func (n *npmBootstrap) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if _, err := h.Files.Stat(n.Name + "/package.json"); err != nil {
		return module.Report{}, diag.WithHint(err, "require the state that makes it")
	}
	if what, err := awaits(h, n.program()); err != nil || what != "" {
		return module.Report{}, orMissing(err, n.program(), what)
	}
	if _, err := n.program().Do(ctx, h, "install", "--json"); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: value.NewMap(n.Name, "Bootstrapped"), Comment: "installed what " + n.Name + " asks for"}, nil
}

func sortedList(items []string) *value.List {
	slices.Sort(items)
	return value.Strings(items...)
}
