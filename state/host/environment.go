package host

import (
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// Environment is the environment of the commands of a run: that of the agent, without its credentials and with the
// changes that states make. Each run has its own.
type Environment struct {
	mu    sync.Mutex
	vars  []string        // NAME=value
	given map[string]bool // the names that states have set
}

// NewEnvironment returns an environment with the given NAME=value pairs.
func NewEnvironment(vars ...string) *Environment { return &Environment{vars: vars} }

// All returns a copy of all variables, each as NAME=value.
func (e *Environment) All() []string {
	if e == nil {
		return process.Environ()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.vars)
}

// Foreign returns the environment of commands of another user: the variables that states have set, and those of the
// agent that concern programs of every user.
func (e *Environment) Foreign() []string {
	vars := e.All()
	given := func(string) bool { return false }
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		given = func(name string) bool { return e.given[name] }
	}
	return slices.DeleteFunc(vars, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !process.Shared(name) && !given(name)
	})
}

// Get returns a variable, and whether there is one of that name.
func (e *Environment) Get(name string) (string, bool) {
	for _, v := range e.All() {
		if v, ok := strings.CutPrefix(v, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// Set sets a variable for all later commands.
func (e *Environment) Set(name, v string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vars = set(e.vars, name, v)
	if e.given == nil {
		e.given = map[string]bool{}
	}
	e.given[name] = true
}

// Unset removes a variable.
func (e *Environment) Unset(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.vars = without(e.vars, name)
}

// loginOf returns env with a PATH if it has none and, if uid is 0, with the variables of a login of root: root's HOME,
// USER, LOGNAME and SHELL, without the directories and the bus of a session. A run thus has the same results whether it
// is started by hand, through sudo, which may keep the caller's HOME, from cron, or as a unit without HOME.
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

// rootsHome returns root's home from the user database.
func rootsHome() string {
	if u, err := user.LookupId(strconv.Itoa(0)); err == nil && u.HomeDir != "" {
		return u.HomeDir
	}
	return "/root"
}
