package language

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// pip is what all states have that go through pip.
type pip struct {
	BinEnv  string `sls:"bin_env"` // a virtual environment, a pip or a python; "" for the system's
	PipBin  string `sls:"pip_bin"` // an old name of it
	User    string `sls:"user"`
	Cwd     string `sls:"cwd"`
	EnvVars any    `sls:"env_vars"`
	Env     string `sls:"__env__"`
	UseVT   any    `sls:"use_vt"` // there is no terminal to use

	sources Sources
}

// program is the pip that is meant, and the arguments that come before all others.
func (p *pip) program(h *host.Host) (host.Program, []string) {
	program := host.Program{Name: p.BinEnv, Package: "python3-pip", RunAs: p.User, Dir: p.Cwd, Hide: withoutPasswords,
		Env: append(module.Environment(p.EnvVars), "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1")}
	if p.Cwd != "" {
		program.Reads = append([]string{"pip", "pip.py"}, pythonProject...) // python -m pip looks in the working directory first
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
	if info, err := h.Following().Files.Stat(program.Name); err == nil && info.IsDir() || err != nil && !strings.HasPrefix(path.Base(program.Name), "pip") {
		program.Name = path.Join(program.Name, "bin/python")
	}
	if strings.HasPrefix(path.Base(program.Name), "python") {
		return program, []string{"-m", "pip"}
	}
	return program, nil
}

// pythonProject are the files of a project in Python that decide what runs where it is installed.
var pythonProject = []string{"setup.py", "setup.cfg", "pyproject.toml"}

func (p *pip) ask(ctx context.Context, h *host.Host, args ...string) (string, error) {
	program, before := p.program(h)
	return program.Ask(ctx, h, append(before, args...)...)
}

func (p *pip) do(ctx context.Context, h *host.Host, program host.Program, args ...string) error {
	_, before := p.program(h)
	_, err := program.Do(ctx, h, append(before, args...)...)
	var failed *host.ProgramError
	switch {
	case errors.As(err, &failed) && strings.Contains(failed.Stderr, "externally-managed-environment"):
		return diag.WithHint(errors.New("the system's package manager looks after this Python, and pip may not change it"),
			"install into a virtual environment (bin_env), take the package of the distribution, or set extra_args: [--break-system-packages]")
	case errors.As(err, &failed) && strings.Contains(failed.Stderr, "No matching distribution"):
		return diag.WithHint(err, "look at the name and the version, and at the index that pip asks (index_url)")
	}
	return err
}

// awaits is what has to be there first.
func (p *pip) awaits(h *host.Host) (string, host.Program, error) {
	program, _ := p.program(h)
	what, err := awaits(h, program)
	return what, program, err
}

// distribution is one that is installed.
type distribution struct {
	Name, Version string
	Location      string `json:"editable_project_location"`
	Latest        string `json:"latest_version"`
}

// list gives what is installed, by normalized name.
func (p *pip) list(ctx context.Context, h *host.Host, options ...string) (map[string]distribution, error) {
	out, err := p.ask(ctx, h, append([]string{"list", "--format=json"}, options...)...)
	if err != nil {
		return nil, err
	}
	var all []distribution
	if i := strings.IndexByte(out, '['); i > 0 { // warnings may come before it
		out = out[i:]
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&all); err != nil {
		return nil, fmt.Errorf("reading what pip list prints: %w", err)
	}
	byName := map[string]distribution{}
	for _, d := range all {
		byName[normal(d.Name)] = d
	}
	return byName, nil
}

// requirements reads a file of requirements and those that it includes. known is false if there is
// something in it that only pip can tell of.
func (p *pip) requirements(ctx context.Context, h *host.Host, file string, depth int) (list []requirement, known bool, err error) {
	text, err := p.text(ctx, h, file)
	if err != nil {
		return nil, false, err
	}
	known = true
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if i := strings.Index(line, " #"); i >= 0 {
			line = line[:i]
		}
		line = strings.TrimSpace(line)
		included, isFile := cutAny(line, "-r ", "--requirement ", "--requirement=", "-r")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isFile && depth < 10:
			if !path.IsAbs(included) && !strings.Contains(included, "://") {
				included = path.Join(path.Dir(file), included)
			}
			more, moreKnown, err := p.requirements(ctx, h, included, depth+1)
			if err != nil {
				return nil, false, err
			}
			list, known = append(list, more...), known && moreKnown
		case strings.HasPrefix(line, "-e"), strings.HasPrefix(line, "-c"), strings.HasPrefix(line, "--editable"), strings.HasPrefix(line, "--constraint"):
			known = false
		case strings.HasPrefix(line, "-"): // where to look
		default:
			line, _, _ = strings.Cut(line, " --hash")
			r := parseRequirement(line)
			known = known && r.name != "" && !strings.Contains(line, ";")
			list = append(list, r)
		}
	}
	return list, known, nil
}

func cutAny(s string, prefixes ...string) (string, bool) {
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(s, prefix); ok && !strings.HasPrefix(s, "--requirement-") {
			return strings.TrimSpace(rest), true
		}
	}
	return s, false
}

// text is a file of the state tree, or of the host.
func (p *pip) text(ctx context.Context, h *host.Host, file string) (string, error) {
	if strings.Contains(file, "://") {
		data, err := p.sources.Source(ctx, file, p.Env)
		return string(data), err
	}
	if !path.IsAbs(file) && p.Cwd != "" {
		file = path.Join(p.Cwd, file)
	}
	data, err := h.Files.ReadFile(file)
	if err != nil {
		return "", diag.WithHint(fmt.Errorf("reading requirements: %w", err), "require the state that makes the file, or write salt://")
	}
	return string(data), nil
}

// withoutPasswords takes passwords out of the URLs in a text.
func withoutPasswords(text string) string {
	var out strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			return out.String() + text
		}
		out.WriteString(text[:i+3])
		text = text[i+3:]
		end := strings.IndexAny(text, "/ \t\n'\"")
		if end < 0 {
			end = len(text)
		}
		if at := strings.LastIndexByte(text[:end], '@'); at >= 0 {
			text = text[at+1:]
		}
	}
}
