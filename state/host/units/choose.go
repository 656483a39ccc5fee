package units

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// initSystemOf returns the init system of a host.
func initSystemOf(files host.Files, commands host.Commands, relocated, notRunning bool) initSystem {
	if !relocated && host.BootedWithSystemd(files) {
		return &systemd{files: files, commands: commands}
	}
	for _, path := range []string{"/usr/bin/systemctl", "/bin/systemctl"} {
		if _, err := files.Stat(path); relocated && err == nil {
			return &offline{files: files, commands: commands}
		}
	}
	if hasOpenRC(files) {
		return &openrc{sysv: sysv{files: files, commands: commands}, offline: notRunning}
	}
	return &sysv{files: files, commands: commands}
}

// holdsUnits reports whether a file may define units or their start at boot.
func holdsUnits(path string) bool {
	return strings.Contains(path, "/systemd/") || strings.HasPrefix(path, "/etc/init.d/") ||
		strings.HasPrefix(path, "/etc/rc") || strings.HasPrefix(path, runlevels)
}
