// Package pip implements pip.installed, pip.removed and pip.uptodate, which manage Python distributions with
// pip.
//
// A state lists the installed distributions with a single call of pip and runs pip again only if something is
// missing. Only pip.uptodate queries an index for newer versions.
package pip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Functions returns the functions of pip.
func Functions(sources client.Sources) module.Table {
	return module.Table{
		"installed": func() module.Resource { return &installed{pip: pip{sources: sources}} },
		"removed":   func() module.Resource { return &removed{pip: pip{sources: sources}} },
		"uptodate":  func() module.Resource { return &uptodate{pip: pip{sources: sources}} },
	}
}

// pip holds the arguments that the states have in common.
type pip struct {
	BinEnv  string `sls:"bin_env"` // a virtual environment, or the path of a pip or python; "" for the system's pip
	PipBin  string `sls:"pip_bin"` // an old alias of bin_env
	User    string `sls:"user"`
	Cwd     string `sls:"cwd"`
	EnvVars any    `sls:"env_vars"`
	Env     string `sls:"__env__"`
	UseVT   any    `sls:"use_vt"` // no effect: there is no terminal

	sources client.Sources
}

// program returns the pip program and the arguments that precede all others.
func (p *pip) program(h *host.Host) (program.Program, []string) {
	program := program.Program{Name: p.BinEnv, Package: "python3-pip", RunAs: p.User, Dir: p.Cwd, Remote: true,
		Hide: redact.URLs,
		Env:  append(module.Environment(p.EnvVars), "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1")}
	if p.Cwd != "" {
		program.Reads = append([]string{"pip", "pip.py"},
			pythonProject...) // python -m pip searches the working directory first
	}
	if program.Name == "" {
		program.Name = p.PipBin
	}
	if program.Name == "" {
		program.Name = "pip3"
		if _, ok := h.Which("pip3"); !ok {
			if _, ok := h.Which("pip"); ok {
				program.Name = "pip"
			}
		}
		return program, nil
	}
	if info, err := h.Following().Files.Stat(program.Name); err == nil && info.IsDir() ||
		err != nil && !strings.HasPrefix(path.Base(program.Name), "pip") {
		program.Name = path.Join(program.Name, "bin/python")
	}
	if strings.HasPrefix(path.Base(program.Name), "python") {
		return program, []string{"-m", "pip"}
	}
	return program, nil
}

// pythonProject lists the files of a Python project that determine the code that runs during its installation.
var pythonProject = []string{"setup.py", "setup.cfg", "pyproject.toml"}

func (p *pip) ask(ctx context.Context, h *host.Host, args ...string) (string, error) {
	program, before := p.program(h)
	return program.Ask(ctx, h, append(before, args...)...)
}

func (p *pip) do(ctx context.Context, h *host.Host, python program.Program, args ...string) error {
	_, before := p.program(h)
	_, err := python.Do(ctx, h, append(before, args...)...)
	var failed *program.Error
	switch {
	case errors.As(err, &failed) && strings.Contains(failed.Stderr, "externally-managed-environment"):
		return diag.Library.Hint(
			errors.New("the system's package manager looks after this Python, and pip may not change it"),
			"install into a virtual environment (bin_env), take the package of the distribution, or set extra_args: "+
				"[--break-system-packages]")
	case errors.As(err, &failed) && strings.Contains(failed.Stderr, "No matching distribution"):
		return diag.Library.Hint(err, "look at the name and the version, and at the index that pip asks (index_url)")
	}
	return err
}

// awaits returns the missing prerequisite of pip, or "".
func (p *pip) awaits(h *host.Host) (string, program.Program, error) {
	program, _ := p.program(h)
	what, err := client.Awaits(h, program)
	return what, program, err
}

// list returns the installed distributions by normalized name.
func (p *pip) list(ctx context.Context, h *host.Host, options ...string) (map[string]pep440.Distribution, error) {
	out, err := p.ask(ctx, h, append([]string{"list", "--format=json"}, options...)...)
	if err != nil {
		return nil, err
	}
	var all []pep440.Distribution
	if i := strings.IndexByte(out, '['); i > 0 { // warnings may precede it
		out = out[i:]
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&all); err != nil {
		return nil, fmt.Errorf("reading what pip list prints: %w", err)
	}
	byName := map[string]pep440.Distribution{}
	for _, d := range all {
		byName[pep440.Normal(d.Name)] = d
	}
	return byName, nil
}
