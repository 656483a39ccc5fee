package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// listings are what programs of their own list: Python's packages, containers, attributes of files, and processes.
type listings struct{ *Facts }

func listingsTable(f *Facts) Table {
	l := listings{f}
	docker := Table{"docker.ps": Of("filters=None, **kwargs", l.containers)}.through(f.Host, "docker", "docker.io")
	return docker.add(Table{
		"pip.list":    Of("prefix=None, bin_env=None, user=None, cwd=None, env_vars=None, **kwargs", l.pip),
		"pip.freeze":  Of("bin_env=None, user=None, cwd=None, use_vt=False, env_vars=None, **kwargs", l.freeze),
		"file.lsattr": Of("path", l.attributes),
		"ps.top":      Of("num_processes=5, interval=3", l.top),
	})
}

// pipLines are the lines of pip list --format=freeze, without its advice.
func (l listings) pipLines(ctx context.Context, env, user, cwd string) ([]string, error) {
	p := host.Program{Name: "pip3", Package: "python3-pip", RunAs: user, Dir: cwd, Remote: true, Env: []string{"PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1"}}
	if env != "" {
		p.Name = strings.TrimRight(env, "/")
		if !strings.HasPrefix(p.Name[strings.LastIndexByte(p.Name, '/')+1:], "pip") {
			p.Name += "/bin/pip"
		}
	}
	text, err := p.Ask(ctx, l.Host, "list", "--format=freeze")
	return value.SplitLines(text, false), err
}

// pip gives the versions of Python's packages by name, of those that begin with a prefix.
func (l listings) pip(ctx context.Context, prefix, env, user, cwd string, _ any, _ *value.Map) (*value.Map, error) {
	lines, err := l.pipLines(ctx, env, user, cwd)
	all := value.NewMap()
	for _, line := range lines {
		name, version, ok := strings.Cut(line, "==")
		if ok && strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix)) {
			all.Set(name, version)
		}
	}
	return all, err
}

func (l listings) freeze(ctx context.Context, env, user, cwd string, _, _ any, _ *value.Map) ([]string, error) {
	return l.pipLines(ctx, env, user, cwd)
}

// containers are those that run, or all of them with all=True, by identifier.
func (l listings) containers(ctx context.Context, filters *value.Map, options *value.Map) (*value.Map, error) {
	args := []string{"ps", "--no-trunc", "--format", "{{json .}}"}
	if value.Truth(options.Value("all")) {
		args = append(args, "--all")
	}
	for name, v := range filters.All() {
		args = append(args, "--filter", value.Str(name)+"="+value.Str(v))
	}
	text, err := host.Program{Name: "docker", Package: "docker.io", Dir: "/", Limit: time.Minute}.Ask(ctx, l.Host, args...)
	if err != nil {
		return nil, err
	}
	all := value.NewMap()
	for line := range strings.Lines(text) {
		var c struct{ ID, Names, Image, Command, CreatedAt, Status, State, Ports string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, fmt.Errorf("docker answers with what is no JSON: %w", err)
		}
		all.Set(c.ID, value.NewMap("Id", c.ID, "Names", value.Strings(strings.Split(c.Names, ",")...), "Image", c.Image, "Command", strings.Trim(c.Command, `"`),
			"Time_Created_Local", c.CreatedAt, "Status", c.Status, "State", c.State, "Ports", c.Ports))
	}
	return all, nil
}

// attributes are the flags of a file, such as immutable.
func (l listings) attributes(ctx context.Context, path string) (*value.Map, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%s is not an absolute path", path)
	}
	text, err := l.answer(ctx, "lsattr", "-d", path)
	if err != nil {
		return nil, err
	}
	flags := value.NewList()
	first, _, _ := strings.Cut(text, " ")
	for _, r := range first {
		if r != '-' {
			flags.Append(string(r))
		}
	}
	return value.NewMap(path, flags), nil
}

// longestLook is how long ps.top may watch.
const longestLook = time.Minute

// sample is what a process has used of the processors, in hundredths of a second.
type sample struct {
	pid          int
	user, system int
	state        string
	memory       int // bytes
	virtual      int // bytes
}

// top are the processes that use the processors most, within some seconds.
func (l listings) top(ctx context.Context, count, seconds int) (*value.List, error) {
	wait := time.Duration(seconds) * time.Second
	if wait < 0 || wait > longestLook || count < 0 {
		return nil, errors.New("ps.top counts from 0 on and watches for at most a minute")
	}
	before := map[int]sample{}
	first, err := l.samples()
	if err != nil {
		return nil, err
	}
	for _, s := range first {
		before[s.pid] = s
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
	}
	after, err := l.samples()
	used := func(s sample) int { return s.user + s.system - before[s.pid].user - before[s.pid].system }
	slices.SortStableFunc(after, func(a, b sample) int { return used(b) - used(a) })
	all := value.NewList()
	for _, s := range after[:min(count, len(after))] {
		dir, p := fmt.Sprintf("/proc/%d", s.pid), ps{l.Facts}
		command := p.name(dir, true)
		if command == "" {
			command = p.name(dir, false)
		}
		all.Append(value.NewMap("pid", s.pid, "cmd", command, "user", p.owner(dir), "status", s.state,
			"cpu", value.NewMap("user", float64(s.user)/100, "system", float64(s.system)/100), "mem", value.NewMap("rss", s.memory, "vms", s.virtual)))
	}
	return all, err
}

func (l listings) samples() ([]sample, error) {
	pids, err := ps{l.Facts}.pids()
	var all []sample
	for _, pid := range pids {
		n, _ := pid.(int)
		text, err := readText(l.Host, fmt.Sprintf("/proc/%d/stat", n))
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name may hold spaces and parentheses
		if len(f) < 22 {
			continue
		}
		at := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
		all = append(all, sample{pid: n, user: at(11), system: at(12), state: processState(f[0]), virtual: at(20), memory: at(21) * 4096})
	}
	return all, err
}

func processState(letter string) string {
	names := map[string]string{"R": "running", "S": "sleeping", "D": "disk-sleep", "T": "stopped", "t": "tracing-stop", "Z": "zombie", "X": "dead", "I": "idle"}
	if name, ok := names[letter]; ok {
		return name
	}
	return letter
}

// pipActs install and remove Python's packages as the states of pip do.
func pipActs(f *Facts) Table {
	l := listings{f}
	return Table{
		"pip.install":   Of("pkgs=None, requirements=None, bin_env=None, **kwargs", l.install),
		"pip.uninstall": Of("pkgs=None, requirements=None, bin_env=None, **kwargs", l.uninstall),
	}
}

// install installs packages and gives what changed.
func (l listings) install(ctx context.Context, pkgs, requirements any, env *string, options *value.Map) (*value.Map, error) {
	arguments, names, err := pipArguments(pkgs, requirements, env, options)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		arguments.Set("pkgs", value.Strings(names...))
	} else if requirements == nil && !options.Has("editable") {
		return nil, typeError("pip.install takes pkgs, requirements or editable")
	}
	return l.act(ctx, "pip.installed", arguments)
}

// uninstall removes packages one after the other and gives what changed.
func (l listings) uninstall(ctx context.Context, pkgs, requirements any, env *string, options *value.Map) (*value.Map, error) {
	arguments, names, err := pipArguments(pkgs, requirements, env, options)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, typeError("pip.uninstall takes pkgs")
	}
	all := value.NewMap()
	for _, name := range names {
		arguments.Set("name", name)
		changes, err := l.act(ctx, "pip.removed", arguments)
		if err != nil {
			return all, err
		}
		all.Update(changes)
	}
	return all, nil
}

// pipArguments are the arguments for a state of pip, and the packages that are named in a text or a list.
func pipArguments(pkgs, requirements any, env *string, options *value.Map) (*value.Map, []string, error) {
	if text, isText := pkgs.(string); isText {
		pkgs = value.Strings(strings.Split(text, ",")...)
	}
	names, err := texts(pkgs)
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
