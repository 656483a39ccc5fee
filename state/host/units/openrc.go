package units

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// openrc is the init system of Alpine and Gentoo. Its services are init scripts, which are enabled by links in the
// directories of runlevels.
type openrc struct {
	sysv
	offline bool // the host is a tree in which no system runs
}

const (
	runlevels       = "/etc/runlevels"
	defaultRunlevel = "default"
)

// hasOpenRC reports whether OpenRC manages the services: its runlevels and its program exist.
func hasOpenRC(files host.Files) bool {
	if _, err := files.Stat(runlevels); err != nil {
		return false
	}
	return slices.ContainsFunc([]string{"/sbin/rc-service", "/usr/sbin/rc-service", "/usr/bin/rc-service",
		"/bin/rc-service"}, func(file string) bool {
		_, err := files.Stat(file)
		return err == nil
	})
}

// levelsOf lists the runlevels that start a service.
func (o *openrc) levelsOf(script string) []string {
	levels, err := o.files.ReadDir(runlevels)
	if err != nil {
		return nil // without runlevels, none starts it
	}
	return slices.DeleteFunc(levels, func(level string) bool {
		_, err := o.files.Lstat(runlevels + "/" + level + "/" + script)
		return err != nil
	})
}

func (o *openrc) unit(ctx context.Context, name, process string) (host.Unit, error) {
	u := host.Unit{Name: host.UnitName(name)}
	script := scriptName(u.Name)
	if !isInitScript(o.files, script) {
		return u, nil
	}
	u.Found, u.Active, u.Boot = true, "inactive", "disabled"
	if len(o.levelsOf(script)) > 0 {
		u.Boot = "enabled"
	}
	switch {
	case o.offline:
		return u, nil
	case process != "":
		if o.runs(process) {
			u.Active = "active"
		}
		return u, nil
	}
	out, err := o.service(ctx, script, "status", true)
	if err != nil {
		return u, err
	}
	u.Active, err = openrcStatus(script, out)
	return u, err
}

// openrcStatus returns the state of a service, given the output of rc-service status.
func openrcStatus(script string, out host.Output) (string, error) {
	switch out.Code {
	case 0:
		return "active", nil
	case 3:
		return "inactive", nil
	case 4:
		return "deactivating", nil
	case 8:
		return "activating", nil
	case 16: // it waits for something, and will start
		return "activating", nil
	case 32:
		return "failed", nil
	}
	err := fmt.Errorf("querying service %s: rc-service ended with code %d: %s", script, out.Code,
		strings.TrimSpace(out.Stdout+out.Stderr))
	return "", diag.Unit.Hint(err, "run `rc-service %s status` on the host to see more", script)
}

func (o *openrc) service(ctx context.Context, script, action string, quiet bool) (host.Output, error) {
	return o.commands.Run(ctx, host.Command{
		Argv: []string{"rc-service", "--nocolor", script, action}, Quiet: quiet, Named: true,
		Env: host.Variables(process.Environ(), "LC_ALL=C"),
	})
}

func (o *openrc) act(ctx context.Context, verb host.UnitVerb, name string, _ bool) error {
	script := scriptName(host.UnitName(name))
	if !isInitScript(o.files, script) {
		return fmt.Errorf("%w: %s", errNoUnit, name)
	}
	action := string(verb)
	if verb == host.ReloadOrRestart {
		action = string(host.Reload)
	}
	out, err := o.service(ctx, script, action, false)
	if err == nil && verb == host.ReloadOrRestart && out.Code != 0 &&
		strings.Contains(out.Stdout+out.Stderr, "unknown function") {
		out, err = o.service(ctx, script, string(host.Restart), false)
	}
	if err != nil {
		return err
	}
	if out.Code != 0 {
		err := fmt.Errorf("%s of %s failed with code %d: %s", verb, script, out.Code, host.FirstLines(out.Stderr+out.Stdout))
		return diag.Unit.Hint(err, "run `rc-service %s %s` on the host to see more", script, action)
	}
	return nil
}

func (o *openrc) setBoot(ctx context.Context, verb host.BootVerb, name string, _ bool) error {
	script := scriptName(host.UnitName(name))
	switch {
	case verb == host.Mask || verb == host.Unmask:
		return diag.Unit.Hint(errors.New("OpenRC cannot mask a service"),
			"use service.dead with `enable: False`, or service.disabled")
	case !isInitScript(o.files, script):
		return fmt.Errorf("%w: %s", errNoUnit, name)
	}
	argv := []string{"rc-update", "add", script, defaultRunlevel}
	if verb == host.Disable {
		argv = append([]string{"rc-update", "delete", script}, o.levelsOf(script)...)
	}
	out, err := o.commands.Run(ctx, host.Command{Argv: argv, Env: host.Variables(process.Environ(), "LC_ALL=C"),
		Named: true})
	if err == nil {
		err = host.Complaint(out)
	}
	if err != nil {
		return diag.Unit.Hint(fmt.Errorf("%s of service %s: %w", verb, script, err),
			"run `rc-update show` on the host to see what starts when")
	}
	return nil
}
