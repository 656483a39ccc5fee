package host

import (
	"slices"
	"strings"
	"testing"
)

// TestRootsCommandsHaveRootsHome checks that root's commands have root's HOME for every caller of the run: sudo may
// keep the caller's, and a unit may have none.
func TestRootsCommandsHaveRootsHome(t *testing.T) {
	t.Parallel()
	callers := map[string][]string{
		"a unit": nil,
		"sudo": {"HOME=/home/ann", "USER=ann", "LOGNAME=ann", "SHELL=/bin/zsh", "XDG_CONFIG_HOME=/home/ann/.config",
			"PATH=/usr/bin"},
		"a session": {"HOME=/root", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/0/bus", "XDG_RUNTIME_DIR=/run/user/0"},
	}
	for caller, env := range callers {
		got := loginOf(slices.Clone(env), 0)
		if get(got, "HOME") != rootsHome() || get(got, "USER") != "root" || get(got, "LOGNAME") != "root" ||
			get(got, "PATH") == "" {
			t.Errorf("from %s: %v", caller, got)
		}
		if strings.Contains(strings.Join(got, "\n"), "XDG_") || get(got, "DBUS_SESSION_BUS_ADDRESS") != "" {
			t.Errorf("from %s a command gets variables of the caller's session: %v", caller, got)
		}
	}
	if got := loginOf(slices.Clone(callers["sudo"]), 1000); !slices.Equal(got, callers["sudo"]) {
		t.Errorf("the environment of another user's run is changed: %v", got)
	}
	if got := loginOf([]string{"PATH=/opt/bin"}, 0); get(got, "PATH") != "/opt/bin" {
		t.Errorf("PATH is %s", get(got, "PATH"))
	}
}
