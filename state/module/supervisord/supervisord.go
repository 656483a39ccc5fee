// Package supervisord implements supervisord.running and supervisord.dead, which manage programs run by
// supervisor.
//
// A name is a program, or a group with a colon at its end (group: or group:*). An unknown program is added
// first, so a state can directly follow the one that writes the program's configuration.
package supervisord

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of supervisord.
func Functions() module.Table {
	return module.Table{
		"running": func() module.Resource { return &running{} },
		"dead":    func() module.Resource { return &dead{} },
	}
}

// control holds the arguments that the states have in common.
type control struct {
	Name     string `sls:"name"`
	User     string `sls:"user"`
	ConfFile string `sls:"conf_file"`
	BinEnv   string `sls:"bin_env"` // path of supervisorctl, or of a virtual environment with it
}

func (c *control) program(h *host.Host) program.Program {
	p := program.Program{Name: "supervisorctl", Package: "supervisor", RunAs: c.User, Limit: 5 * time.Minute}
	if c.BinEnv != "" {
		p.Name = c.BinEnv
		if info, err := h.Files.Stat(c.BinEnv); err == nil && info.IsDir() {
			p.Name = path.Join(c.BinEnv, "bin/supervisorctl")
		}
	}
	return p.Trusting(c.ConfFile)
}

// target returns the name in supervisor's notation.
func (c *control) target() string {
	if strings.HasSuffix(c.Name, ":") {
		return c.Name + "*"
	}
	return c.Name
}

func (c *control) call(ctx context.Context, h *host.Host, args ...string) (string, error) {
	if c.ConfFile != "" {
		args = append([]string{"-c", c.ConfFile}, args...)
	}
	out, err := c.program(h).Do(ctx, h, args...)
	if err == nil && strings.Contains(out, "ERROR") { // older versions exit with 0 after an error
		err = fmt.Errorf("supervisorctl: %s", strings.TrimSpace(out))
	}
	return out, err
}

// processes returns the states of the processes that the name denotes, such as RUNNING or STOPPED.
func (c *control) processes(ctx context.Context, h *host.Host) (map[string]string, error) {
	args := []string{"status"}
	if c.ConfFile != "" {
		args = []string{"-c", c.ConfFile, "status"}
	}
	out, err := c.program(h).Ask(ctx, h, args...)
	if err != nil && (!program.EndedWith(err, 3) || out == "") { // the exit code if a process is not running
		return nil, diag.Server.Hint(fmt.Errorf("supervisor does not answer: %w", err),
			"start it, in a service.running state that this one requires")
	}
	group := strings.TrimSuffix(c.target(), "*")
	found := map[string]string{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) > 1 && (f[0] == c.Name || strings.HasSuffix(group, ":") && strings.HasPrefix(f[0], group)) {
			found[f[0]] = f[1]
		}
	}
	return found, nil
}

func up(state string) bool { return state == "RUNNING" || state == "STARTING" }

func anyStopped(states map[string]string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(states)), func(s string) bool { return !up(s) })
}

// running implements supervisord.running.
type running struct {
	control
	Restart bool `sls:"restart"` // also restart a running program
	Update  bool `sls:"update"`  // make supervisor apply changes of its configuration
}

func (r *running) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if ok, err := r.program(h).Ready(h); err != nil || !ok {
		return module.Awaits("supervisor", "start "+r.Name), err
	}
	states, err := r.processes(ctx, h)
	switch {
	case err != nil:
		return module.Diff{}, err
	case len(states) == 0:
		return module.Diff{Changes: r.changes("Adding service: ", "Starting: "),
			Comment: "would add and start " + r.Name}, nil
	case anyStopped(states):
		return module.Diff{Changes: r.changes("Starting" + r.kind() + ": "), Comment: "would start " + r.Name}, nil
	case r.Restart:
		return module.Diff{Changes: r.changes("Restarting" + r.kind() + ": "), Comment: "would restart " + r.Name}, nil
	case !r.Update:
		return module.Diff{Comment: r.Name + " is up"}, nil
	}
	return module.Diff{Unknown: true, Planned: value.NewMap(),
		Comment: "would have supervisor apply the changes of its configuration"}, nil
}

func (r *running) kind() string {
	if strings.HasSuffix(strings.TrimSuffix(r.Name, "*"), ":") {
		return " group"
	}
	return " service"
}

// changes returns the changes in Salt's words.
func (c *control) changes(what ...string) *value.Map {
	for i := range what {
		what[i] += c.Name
	}
	return value.NewMap(c.Name, strings.Join(what, " "))
}

func (r *running) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if ok, err := r.program(h).Ready(h); err != nil || !ok {
		return module.Report{}, orMissing(err, r.program(h))
	}
	states, err := r.processes(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	if r.Update {
		out, err := r.call(ctx, h, "update")
		if err != nil {
			return module.Report{}, err
		}
		if d.Unknown && strings.TrimSpace(out) != "" {
			d.Changes = r.changes("Updating: ")
		}
	} else if len(states) == 0 {
		if err := r.add(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	after, err := r.processes(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	switch {
	case len(after) == 0 || anyStopped(after):
		_, err = r.call(ctx, h, "start", r.target())
	case r.Restart && len(states) > 0:
		_, err = r.call(ctx, h, "restart", r.target())
	}
	if err != nil {
		return module.Report{}, diag.Unit.Hint(err, "look at its log: `supervisorctl tail %s stderr`", r.Name)
	}
	if d.Changes == nil && anyStopped(after) {
		d.Changes = r.changes("Starting" + r.kind() + ": ")
	}
	return module.Report{Changes: d.Changes, Comment: r.Name + " is up"}, nil
}

// add makes supervisor reread its configuration and start the program.
func (r *running) add(ctx context.Context, h *host.Host) error {
	if _, err := r.call(ctx, h, "reread"); err != nil {
		return err
	}
	group, _, _ := strings.Cut(r.Name, ":")
	if _, err := r.call(ctx, h, "add", group); err != nil && !strings.Contains(err.Error(), "already active") {
		return diag.Unit.Hint(err,
			"declare [program:%s] in a file that supervisor reads, in a state that this one requires", group)
	}
	return nil
}

// Watched returns a state that restarts the program.
func (r *running) Watched() module.Resource {
	again := *r
	again.Restart = true
	return &again
}

func orMissing(err error, p program.Program) error {
	if err != nil {
		return err
	}
	return p.Missing()
}

// dead implements supervisord.dead.
type dead struct{ control }

func (d *dead) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if ok, err := d.program(h).Ready(h); err != nil || !ok {
		return module.Diff{Comment: "supervisor does not exist, so nothing runs"}, err
	}
	states, err := d.processes(ctx, h)
	switch {
	case err != nil:
		return module.Diff{}, err
	case len(states) == 0:
		return module.Diff{Comment: "there is no " + d.Name}, nil
	case !slices.ContainsFunc(slices.Collect(maps.Values(states)), up):
		return module.Diff{Comment: d.Name + " does not run"}, nil
	}
	return module.Diff{Changes: d.changes("Stopping service: "), Comment: "would stop " + d.Name}, nil
}

func (d *dead) Apply(ctx context.Context, h *host.Host, diff module.Diff) (module.Report, error) {
	if _, err := d.call(ctx, h, "stop", d.target()); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: diff.Changes, Comment: "stopped " + d.Name}, nil
}
