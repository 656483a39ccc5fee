package host

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Line is a command line for a shell, with the options that users may set.
type Line struct {
	Text  string
	Shell string   // "/bin/sh" by default
	Dir   string   // the user's home by default
	Env   []string // NAME=value, on top of the agent's own
	Path  string   // put before PATH
	RunAs string   // user name; "" for the agent's own
	Umask *int
	Stdin string
	Limit time.Duration
	Clean bool     // start from an empty environment
	Quiet bool     // changes nothing
	Named bool     // the caller has recorded the subjects that it changes
	Merge bool     // write stderr to the output
	Mute  bool     // discard the output; only the exit code counts
	Argv  []string // run this instead of a shell with Text
	// Root is a directory in which the line runs as if it were "/" (chroot); "" for none. Shell, Dir and RunAs are then
	// the shell, the directory ("/" by default) and the user of that tree. Argv has no effect.
	Root string
	// Terminal connects the streams of the command to terminals, for programs that behave differently without one.
	Terminal bool
}

// DefaultShell is the shell of a Line that sets none.
const DefaultShell = "/bin/sh"

// Shell runs a command line.
func (h *Host) Shell(ctx context.Context, l Line) (Output, error) {
	if err := h.Commands.Allowed("`" + l.Text + "`"); err != nil {
		return Output{}, err
	}
	c := Command{Argv: l.Argv, Dir: l.Dir, Stdin: l.Stdin, Umask: l.Umask, Limit: l.Limit, Quiet: l.Quiet, Named: l.Named,
		Merge: l.Merge, Mute: l.Mute, Terminal: l.Terminal}
	if l.Root != "" {
		return h.jailed(ctx, l, c)
	}
	if c.Argv == nil {
		shell := l.Shell
		if shell == "" {
			shell = DefaultShell
		}
		c.Argv = []string{shell, "-c", l.Text}
	}
	var user *User
	if l.RunAs != "" {
		u, credential, err := h.become(l.RunAs)
		if err != nil {
			return Output{}, err
		}
		user, c.As = &u, credential
	}
	vars := h.Env.All()
	if c.As != nil {
		vars = h.Env.Foreign()
	}
	c.Env = environment(vars, l, user)
	if c.Dir == "" {
		c.Dir = h.startDir(user)
	}
	return h.Commands.Run(ctx, c)
}

// become returns a user and the credential to run as that user.
func (h *Host) become(name string) (User, *Credential, error) {
	u, ok, err := h.Accounts.User(name)
	if err != nil {
		return u, nil, err
	}
	if !ok {
		err := diag.Prerequisite.Hint(fmt.Errorf("user %s does not exist", name),
			"make it in a user.present state that this one requires")
		return u, nil, WithMissing(err, AUser, name)
	}
	if u.UID == os.Geteuid() {
		return u, nil, nil
	}
	c := &Credential{UID: uint32(u.UID), GID: uint32(u.GID)}
	groups, err := h.Accounts.GroupsOf(name)
	for _, group := range groups {
		if g, ok, _ := h.Accounts.Group(group); ok {
			c.Groups = append(c.Groups, uint32(g.GID))
		}
	}
	return u, c, err
}

// startDir returns the default directory of a command: the home of the user, or "/" if that does not exist, as for
// the user nobody.
func (h *Host) startDir(u *User) string {
	dir := home(u)
	if info, err := followed(h.Files).Stat(dir); err != nil || !info.IsDir() {
		return "/"
	}
	return dir
}

func home(u *User) string {
	if u != nil && u.Home != "" {
		return u.Home
	}
	if h := os.Getenv("HOME"); h != "" {
		return h
	}
	return "/"
}

// locale returns the names of the locale variables that are set to C for every command, so that the output that states
// parse does not depend on the environment of the agent. The environment of a step may override them.
func locale() []string {
	return []string{"LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER",
		"LC_NAME", "LC_ADDRESS", "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION", "LANGUAGE"}
}

// Variables returns the environment base without NOTIFY_SOCKET, with the C locale, and with vars, each NAME=value,
// which replace variables of the same names.
func Variables(base []string, vars ...string) []string {
	return environment(base, Line{Env: vars}, nil)
}

// environment returns the environment of a command.
func environment(base []string, l Line, u *User) []string {
	var env []string
	if !l.Clean {
		// The socket belongs to the agent's own unit; a command must not send notifications for it.
		env = without(base, "NOTIFY_SOCKET")
		for _, name := range locale() {
			env = set(env, name, "C")
		}
	}
	if u != nil {
		env = set(env, "HOME", u.Home)
		env = set(env, "USER", u.Name)
		env = set(env, "LOGNAME", u.Name)
		env = set(env, "SHELL", u.Shell)
	}
	for _, v := range l.Env {
		name, v, _ := strings.Cut(v, "=")
		env = set(env, name, v)
	}
	if l.Path != "" {
		env = set(env, "PATH", l.Path+":"+get(env, "PATH"))
	}
	return env
}

func set(env []string, name, v string) []string { return append(without(env, name), name+"="+v) }

func without(env []string, name string) []string {
	return slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
}

func get(env []string, name string) string {
	for _, v := range env {
		if v, ok := strings.CutPrefix(v, name+"="); ok {
			return v
		}
	}
	return ""
}
