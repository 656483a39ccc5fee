// Package pip implements pip.*: the packages of Python.
package pip

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// pip lists and changes the packages of Python.
type pip struct{ *function.Facts }

// Functions returns the functions of pip that templates may call.
func Functions(f *function.Facts) function.Table {
	p := pip{f}
	return function.Table{
		"pip.list":   function.Of("prefix=None, bin_env=None, user=None, cwd=None, env_vars=None, **kwargs", p.list),
		"pip.freeze": function.Of("bin_env=None, user=None, cwd=None, use_vt=False, env_vars=None, **kwargs", p.freeze),
	}
}

// Acting returns the functions that install and remove Python packages, as the states of pip do.
func Acting(f *function.Facts) function.Table {
	p := pip{f}
	return function.Table{
		"pip.install":   function.Of("pkgs=None, requirements=None, bin_env=None, **kwargs", p.install),
		"pip.uninstall": function.Of("pkgs=None, requirements=None, bin_env=None, **kwargs", p.uninstall),
	}
}

// lines returns the lines of pip list --format=freeze, without pip's notices.
func (p pip) lines(ctx context.Context, env, user, cwd string) ([]string, error) {
	python := program.Program{Name: "pip3", Package: "python3-pip", RunAs: user, Dir: cwd, Remote: true,
		Env: []string{"PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1"}}
	if env != "" {
		python.Name = strings.TrimRight(env, "/")
		if !strings.HasPrefix(python.Name[strings.LastIndexByte(python.Name, '/')+1:], "pip") {
			python.Name += "/bin/pip"
		}
	}
	text, err := python.Ask(ctx, p.Host, "list", "--format=freeze")
	return value.SplitLines(text, false), err
}

// list returns the versions of Python packages by name, of those with a prefix.
func (p pip) list(ctx context.Context, prefix, env, user, cwd string, _ any, _ *value.Map) (*value.Map, error) {
	lines, err := p.lines(ctx, env, user, cwd)
	all := value.NewMap()
	for _, line := range lines {
		name, version, ok := strings.Cut(line, "==")
		if ok && strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix)) {
			all.Set(name, version)
		}
	}
	return all, err
}

func (p pip) freeze(ctx context.Context, env, user, cwd string, _, _ any, _ *value.Map) ([]string, error) {
	return p.lines(ctx, env, user, cwd)
}

// install installs packages and returns the changes.
func (p pip) install(ctx context.Context, pkgs, requirements any, env *string, options *value.Map) (*value.Map, error) {
	arguments, names, err := pipArguments(pkgs, requirements, env, options)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		arguments.Set("pkgs", value.Strings(names...))
	} else if requirements == nil && !options.Has("editable") {
		return nil, function.TypeError("pip.install takes pkgs, requirements or editable")
	}
	return p.RunState(ctx, "pip.installed", arguments)
}

// uninstall removes packages one by one and returns the changes.
func (p pip) uninstall(ctx context.Context, pkgs, requirements any, env *string, options *value.Map) (*value.Map,
	error) {
	arguments, names, err := pipArguments(pkgs, requirements, env, options)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, function.TypeError("pip.uninstall takes pkgs")
	}
	all := value.NewMap()
	for _, name := range names {
		arguments.Set("name", name)
		changes, err := p.RunState(ctx, "pip.removed", arguments)
		if err != nil {
			return all, err
		}
		all.Update(changes)
	}
	return all, nil
}

// pipArguments returns the arguments for a state of pip, and the packages that are named in a text or a list.
func pipArguments(pkgs, requirements any, env *string, options *value.Map) (*value.Map, []string, error) {
	if text, isText := pkgs.(string); isText {
		pkgs = value.Strings(strings.Split(text, ",")...)
	}
	names, err := function.Texts(pkgs)
	arguments := value.NewMap("name", "pip")
	arguments.Update(options)
	if requirements != nil {
		arguments.Set("requirements", requirements)
	}
	if env != nil {
		arguments.Set("bin_env", *env)
	}
	return arguments, names, err
}
