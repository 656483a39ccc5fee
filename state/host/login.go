package host

import (
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// loginOf returns an environment as root's own login has it, if uid is root's: with root's HOME, USER, LOGNAME and
// SHELL, and without the directories and the bus of a session. A run then does the same by hand, through sudo, which
// may keep the caller's HOME, from cron and as a unit, where HOME may be absent. Other users' environments stay as they
// are. A missing PATH is set for all.
func loginOf(env []string, uid int) []string {
	if get(env, "PATH") == "" {
		env = set(env, "PATH", strings.Join(SystemPath(), ":"))
	}
	if uid != 0 {
		return env
	}
	env = slices.DeleteFunc(env, func(v string) bool {
		return strings.HasPrefix(v, "XDG_") || strings.HasPrefix(v, "DBUS_SESSION_BUS_ADDRESS=")
	})
	for name, v := range map[string]string{"HOME": rootsHome(), "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh"} {
		env = set(env, name, v)
	}
	return env
}

// rootsHome is root's home by the user database.
func rootsHome() string {
	if u, err := user.LookupId(strconv.Itoa(0)); err == nil && u.HomeDir != "" {
		return u.HomeDir
	}
	return "/root"
}
