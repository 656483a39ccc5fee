package units

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// sysv runs init scripts on hosts without systemd: in most containers, and with SysV init.
type sysv struct {
	files    host.Files
	commands host.Commands
}

const initScripts = "/etc/init.d"

// scriptName returns the init script of a unit.
func scriptName(unit string) string { return strings.TrimSuffix(unit, ".service") }

func isInitScript(files host.Files, name string) bool {
	if name == "" || strings.ContainsAny(name, "/") ||
		slices.Contains([]string{"README", "rc", "rcS", "skeleton", "functions"}, name) {
		return false
	}
	info, err := files.Stat(initScripts + "/" + name)
	return err == nil && info.IsRegular() && info.Mode&0o111 != 0
}

// scriptAtBoot returns "enabled" if a link in the directories of the runlevels starts a script, or else "disabled".
func scriptAtBoot(files host.Files, name string) string {
	for _, level := range "2345S" {
		links, err := files.ReadDir(fmt.Sprintf("/etc/rc%c.d", level))
		if err != nil {
			continue
		}
		for _, link := range links {
			if len(link) > 3 && link[0] == 'S' && allDigits(link[1:3]) && link[3:] == name {
				return "enabled"
			}
		}
	}
	return "disabled"
}

func (s *sysv) forget() {}

func (s *sysv) names(context.Context) ([]string, error) {
	all, err := s.files.ReadDir(initScripts)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		if isInitScript(s.files, name) {
			names = append(names, host.UnitName(name))
		}
	}
	return names, nil
}

func (s *sysv) unit(ctx context.Context, name, process string) (host.Unit, error) {
	u := host.Unit{Name: host.UnitName(name)}
	script := scriptName(u.Name)
	if !isInitScript(s.files, script) {
		return u, nil
	}
	u.Found, u.Active, u.Boot = true, "inactive", scriptAtBoot(s.files, script)
	up := s.runs(process)
	if process == "" {
		out, err := s.call(ctx, script, "status", true)
		if err != nil {
			return u, err
		}
		up = out.Code == 0
	}
	if up {
		u.Active = "active"
	}
	return u, nil
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// runs reports whether the command line of a process contains the given text.
func (s *sysv) runs(text string) bool {
	processes, err := s.files.ReadDir("/proc")
	if err != nil || text == "" {
		return false
	}
	for _, pid := range processes {
		if !allDigits(pid) {
			continue
		}
		line, err := s.files.ReadFile("/proc/" + pid + "/cmdline")
		if err == nil && strings.Contains(string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))), text) {
			return true
		}
	}
	return false
}

func (s *sysv) act(ctx context.Context, verb host.UnitVerb, name string, _ bool) error {
	script := scriptName(host.UnitName(name))
	if !isInitScript(s.files, script) {
		return fmt.Errorf("%w: %s", errNoUnit, name)
	}
	action := string(verb)
	if verb == host.ReloadOrRestart {
		action = "force-reload"
	}
	out, err := s.call(ctx, script, action, false)
	if err != nil {
		return err
	}
	if out.Code != 0 {
		err := fmt.Errorf("%s of %s failed with code %d: %s", verb, script, out.Code,
			strings.TrimSpace(out.Stdout+out.Stderr))
		return diag.Unit.Hint(err, "run `%s/%s %s` on the host to see more", initScripts, script, action)
	}
	return nil
}

// call runs an init script. A daemon that the script starts may keep the pipes of the output open; Commands.Run does
// not wait for the daemon.
func (s *sysv) call(ctx context.Context, script, action string, quiet bool) (host.Output, error) {
	return s.commands.Run(ctx, host.Command{Argv: []string{initScripts + "/" + script, action},
		Env: host.Variables(process.Environ(), "LC_ALL=C"), Quiet: quiet, Named: true})
}

func (s *sysv) setBoot(ctx context.Context, verb host.BootVerb, name string, _ bool) error {
	if verb == host.Mask || verb == host.Unmask {
		return diag.Unit.Hint(
			errors.New("init scripts cannot be masked"), "use service.disabled, or run systemd on this host")
	}
	script := scriptName(host.UnitName(name))
	if !isInitScript(s.files, script) {
		return fmt.Errorf("%w: %s", errNoUnit, name)
	}
	return switchScript(ctx, s.commands, verb, script)
}

// switchScript enables or disables an init script with update-rc.d or, if that does not exist, with chkconfig.
func switchScript(ctx context.Context, commands host.Commands, verb host.BootVerb, script string) error {
	lines := [][]string{{"update-rc.d", script, "defaults"}, {"update-rc.d", script, string(verb)}}
	other := [][]string{{"chkconfig", script, map[host.BootVerb]string{host.Enable: "on", host.Disable: "off"}[verb]}}
	err := inTurn(ctx, commands, lines)
	if err != nil && isNotFound(err) {
		err = inTurn(ctx, commands, other)
	}
	if err != nil {
		return fmt.Errorf("%s of init script %s: %w", verb, script, err)
	}
	return nil
}

func inTurn(ctx context.Context, commands host.Commands, lines [][]string) error {
	for _, argv := range lines {
		out, err := commands.Run(ctx, host.Command{Argv: argv, Env: host.Variables(process.Environ(), "LC_ALL=C"),
			Named: true})
		if err != nil {
			return err
		}
		if out.Code != 0 {
			return fmt.Errorf("%s ended with code %d: %s", argv[0], out.Code, host.LastLine(out.Stderr))
		}
	}
	return nil
}
