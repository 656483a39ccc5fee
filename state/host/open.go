package host

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// open wires the doors to one another: a write tells whoever read what it changed.
func open(o Options, relocated bool) (*Host, error) {
	refused := relocated && !o.Chroot && o.Commands == nil
	accounts := &accounts{recorder: o.Recorder, refused: refused}
	packages := &packages{refused: refused, recorder: o.Recorder}
	units := &units{refused: relocated && o.Commands == nil, bootRefused: refused, recorder: o.Recorder, own: o.Own}
	files, err := openTree(o.Root, relocated, o, func(path string) {
		if strings.HasPrefix(path, "/etc/") {
			accounts.forget()
		}
		if holdsPackages(path) {
			packages.forget()
		}
		if holdsUnits(path) {
			units.init.forget()
		}
		if s, ok := units.init.(*systemd); ok && systemdReads(path) {
			s.stale.Store(true)
		}
	})
	if err != nil {
		return nil, err
	}
	forget := func() {
		accounts.forget()
		packages.forget()
		units.init.forget()
	}
	run := o.Commands
	if run == nil {
		own := ownCommands(o, refused, forget)
		own.trouble, own.files, run = files.trouble, files, own
	}
	if o.Failed != nil {
		run = hearing{run, o.Failed}
	}
	if o.Recorder != nil {
		run = &namedCommands{run, o.Recorder}
	}
	accounts.files, accounts.commands = files, run
	env := NewEnvironment(process.Environ()...)
	packages.manager = packageManagerOf(files, run, env, o, relocated)
	units.init = initSystemOf(files, run, relocated, units.refused)
	crontabs := &crontabs{files: files, commands: run, accounts: accounts, recorder: o.Recorder, refused: refused, read: &parsed{}}
	if err := files.trouble.Since(0); err != nil { // the choices above may be wrong
		return nil, explain(err)
	}
	return &Host{
		Files: files, Commands: run, Accounts: accounts, Crontabs: crontabs, Packages: packages, Units: units, Network: Network{files},
		Kernel: kernel{relocated && o.Commands == nil, o.Recorder}, Env: env, parsed: &parsed{}, recorder: o.Recorder,
		trouble: files.trouble, forget: forget,
	}, nil
}

// ownCommands runs commands on this machine, in the root if that is a system.
func ownCommands(o Options, refused bool, changed func()) *commands {
	c := &commands{refused: refused, changed: changed}
	if o.Chroot {
		c.chroot = strings.TrimRight(o.Root, "/")
	}
	return c
}

// initSystemOf finds out what runs the units of a host.
func initSystemOf(files Files, commands Commands, relocated, asleep bool) initSystem {
	if !relocated && bootedWithSystemd(files) {
		return &systemd{files: files, commands: commands}
	}
	for _, path := range []string{"/usr/bin/systemctl", "/bin/systemctl"} {
		if _, err := files.Stat(path); relocated && err == nil {
			return &offline{files: files, commands: commands}
		}
	}
	if hasOpenRC(files) {
		return &openrc{sysv: sysv{files: files, commands: commands}, offline: asleep}
	}
	return &sysv{files: files, commands: commands}
}

// holdsUnits reports whether a file may say what units there are or when they start.
func holdsUnits(path string) bool {
	return strings.Contains(path, "/systemd/") || strings.HasPrefix(path, "/etc/init.d/") || strings.HasPrefix(path, "/etc/rc") || strings.HasPrefix(path, runlevels)
}

// bootedWithSystemd says whether systemd runs the machine: the directory is there for all who ask.
func bootedWithSystemd(files Files) bool {
	info, err := files.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}
