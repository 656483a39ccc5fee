package units

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// offline is the init system of a system tree that is not running. It changes which units start at boot, with the
// systemctl in the tree.
type offline struct {
	files    host.Files
	commands host.Commands

	mu   sync.Mutex
	disk map[string]string // states of unit files by name; nil if they were not read
}

func isNotFound(err error) bool { return errors.Is(err, exec.ErrNotFound) }

func (o *offline) systemctl(ctx context.Context, quiet bool, args ...string) (host.Output, error) {
	return o.commands.Run(ctx, host.Command{
		Argv: append([]string{"systemctl"}, args...),
		Env:  host.Variables(process.Environ(), "LC_ALL=C", "SYSTEMD_OFFLINE=1"), Quiet: quiet, Named: true,
	})
}

func (o *offline) forget() {
	o.mu.Lock()
	o.disk = nil
	o.mu.Unlock()
}

// states lists the unit files by name.
func (o *offline) states(ctx context.Context) (map[string]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.disk != nil {
		return o.disk, nil
	}
	out, err := o.systemctl(ctx, true, "list-unit-files", "--full", "--no-legend", "--no-pager")
	if err != nil || out.Code != 0 {
		return nil, fmt.Errorf("listing unit files: %w", errors.Join(err, host.Complaint(out)))
	}
	o.disk = map[string]string{}
	for line := range strings.SplitSeq(out.Stdout, "\n") {
		if f := strings.Fields(line); len(f) >= 2 {
			o.disk[f[0]] = f[1]
		}
	}
	return o.disk, nil
}

func (o *offline) names(ctx context.Context) ([]string, error) {
	disk, err := o.states(ctx)
	names := make([]string, 0, len(disk))
	for name := range disk {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}

func (o *offline) unit(ctx context.Context, name, _ string) (host.Unit, error) {
	u := host.Unit{Name: host.UnitName(name), Active: "inactive"}
	disk, err := o.states(ctx)
	if err != nil {
		return u, err
	}
	u.Masked, u.MaskedRuntime = masks(o.files, u.Name)
	u.Boot, u.Found = disk[u.Name]
	switch {
	case u.Found:
	case isInitScript(o.files, scriptName(u.Name)):
		u.Found, u.Boot = true, scriptAtBoot(o.files, scriptName(u.Name))
	case strings.Contains(u.Name, "@"):
		// systemctl does not list the instances of a template, so each is queried.
		out, err := o.systemctl(ctx, true, "is-enabled", u.Name)
		if err != nil {
			return u, err
		}
		u.Boot = strings.TrimSpace(out.Stdout)
		u.Found = u.Boot != "" && u.Boot != "not-found"
	}
	return u, nil
}

func (o *offline) act(context.Context, host.UnitVerb, string, bool) error {
	return &host.Skipped{What: "starting and stopping units"}
}

func (o *offline) setBoot(ctx context.Context, verb host.BootVerb, name string, runtime bool) error {
	unit := host.UnitName(name)
	disk, err := o.states(ctx)
	if err != nil {
		return err
	}
	if _, ok := disk[unit]; !ok && isInitScript(o.files, scriptName(unit)) {
		return switchScript(ctx, o.commands, verb, scriptName(unit))
	}
	args := []string{string(verb), unit}
	if runtime {
		args = append([]string{"--runtime"}, args...)
	}
	out, err := o.systemctl(ctx, false, args...)
	if err != nil {
		return err
	}
	err = host.Complaint(out)
	switch {
	case err == nil:
		return nil
	case strings.Contains(out.Stderr, "does not exist"):
		return fmt.Errorf("%w: %s", errNoUnit, unit)
	}
	return diag.Unit.Hint(fmt.Errorf("%s of %s: %w", verb, unit, err), "check the [Install] section of the unit")
}
