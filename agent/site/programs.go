package site

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/passwd"
	"github.com/corpus-agent/corpus-agent/state/host/runnable"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// program is a program that root runs because a setting names it, or because the agent needs it.
type program struct {
	by   string // the setting, or what the agent needs it for
	name string // a path, or a name to look for in PATH
}

// programs returns the programs of this host that root runs, besides those of states, hooks and procedures.
func (s *Site) programs() (all []program) {
	c := s.Config
	switch {
	case c.Engine == "" || c.Engine == "native":
	case len(c.EngineCommand) > 0:
		all = append(all, commandOf("engine_command", c.EngineCommand)...)
	default:
		all = append(all,
			program{"engine", map[string]string{"salt-call": "salt-call", "ansible": "ansible-playbook"}[c.Engine]})
	}
	if len(c.Notify.MailTo) > 0 {
		all = append(all, program{"notify.mail.sendmail", c.Notify.Sendmail})
	}
	all = append(all, commandOf("notify.command", c.Notify.Command)...)
	all = append(all, commandOf("event_command", c.EventCommand)...)
	if file := c.Notify.WebhookSecret; filepath.IsAbs(file) && isFile(file) {
		all = append(all, program{ofWebhook, file})
	}
	for _, p := range c.Health.Probes {
		if p.Kind == recipe.ProbeScript && filepath.IsAbs(p.Target) {
			all = append(all, program{"health.probes", p.Target})
		}
	}
	for _, name := range []string{"git", "gpg", "ssh", "systemctl"} {
		all = append(all, program{"PATH", name})
	}
	return append(all, program{ofModules, "python3"})
}

// commandOf returns the program of a command, and the files that its other words name, such as a script for sh.
// Commands start in /.
func commandOf(setting string, command []string) (all []program) {
	for i, word := range command {
		if i == 0 {
			all = append(all, program{setting, word})
			continue
		}
		for _, file := range append(value.PathsIn(word), filepath.Join("/", word)) {
			if isFile(file) {
				all = append(all, program{setting, file})
			}
		}
	}
	return all
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// ofModules is what the agent needs python3 for. The agent looks python3 up in the directories of the system's
// programs, whatever PATH is.
const ofModules = "modules in Python"

// ofWebhook is the setting of a file that no program runs.
const ofWebhook = "notify.webhook.secret_file"

// CheckPrograms returns an error if another user can replace a program that root runs: one that agent.yaml names, the
// interpreter of a script among them, or one that the agent finds in PATH. The error has the exit code exit.Refused.
// CheckPrograms checks nothing if the agent does not run as root.
func (s *Site) CheckPrograms() error {
	if os.Geteuid() != 0 {
		return nil
	}
	root, err := walk.Open(walk.Options{Dir: "/", Safe: true, Members: passwd.Members("")})
	if err != nil {
		return err
	}
	defer root.Close()
	var found unfit
	add := func(by string, unsafe *walk.UnsafeError) {
		if unsafe == nil ||
			slices.ContainsFunc(found.parts, func(other *walk.UnsafeError) bool { return other.Component == unsafe.Component }) {
			return
		}
		found.parts = append(found.parts, unsafe)
		does := "runs"
		if by == ofWebhook {
			does = "reads"
		}
		found.texts = append(found.texts, fmt.Sprintf("%s can change %s, and with it %s, which root %s (%s)", unsafe.By,
			unsafe.Component, unsafe.Path, does, by))
	}
	for _, p := range s.programs() {
		look := process.Look
		if p.by == ofModules {
			look = func(name string) (string, error) { return runnable.Find("", name) }
		}
		file, err := look(p.name)
		if err != nil {
			file = p.name // it may exist by the time it runs
		}
		if filepath.IsAbs(file) {
			add(p.by, runnable.Replaceable(root, file))
		}
	}
	for _, dir := range searched(os.Getenv("PATH")) {
		if unsafe := inPath(root, dir.name); unsafe != nil {
			unsafe.Path = "each program that it has"
			add(dir.by, unsafe)
		}
	}
	if len(found.parts) == 0 {
		return nil
	}
	return exit.WithCode(exit.Refused, diag.Exposed.Hint(&found, "%s", found.hint()))
}

// searched returns the directories in which the agent looks programs up: those of PATH, and those of the system's
// programs, whatever PATH is.
func searched(path string) (dirs []program) {
	listed := filepath.SplitList(path)
	for _, dir := range listed {
		dirs = append(dirs, program{"PATH", dir})
	}
	for _, dir := range runnable.Directories() {
		if !slices.Contains(listed, dir) {
			dirs = append(dirs, program{"the system's programs", dir})
		}
	}
	return dirs
}

// unfit is the error of programs of which another user controls a part.
type unfit struct {
	parts []*walk.UnsafeError
	texts []string
}

// Error lists the parts.
func (e *unfit) Error() string { return strings.Join(e.texts, "; ") }

// Unwrap returns the first part.
func (e *unfit) Unwrap() error { return e.parts[0] }

func (e *unfit) hint() string {
	var commands []string
	for _, part := range e.parts {
		commands = append(commands, cure(part.Component, "go-w"))
	}
	return "look at what is there, then: " + strings.Join(commands, "; ") +
		"; or name other programs in agent.yaml, and another PATH"
}

// inPath returns the reason to refuse a directory of PATH, and nil if there is none. A directory that the members of a
// group may write to, as those of staff in /usr/local on Debian, is the operator's choice.
func inPath(root *walk.Root, dir string) *walk.UnsafeError {
	var unsafe *walk.UnsafeError
	if !filepath.IsAbs(dir) || !errors.As(root.ByName(filepath.Join(dir, "program")), &unsafe) ||
		strings.HasPrefix(unsafe.By, "group ") {
		return nil
	}
	return unsafe
}

// CheckScript returns an error if the file, a path in the host's root, is a script whose interpreter another user can
// replace.
func (s *Site) CheckScript(file string) error {
	opened, root, err := s.OpenTrusting()
	if root == nil {
		return err
	}
	defer opened.Close()
	unsafe := runnable.InterpretedBy(root, file)
	if unsafe == nil {
		return nil
	}
	wrong := s.Layout.Path(unsafe.Component)
	text := fmt.Sprintf("%s is run by %s, and %s can change %s: root does not run it", file, unsafe.Path, unsafe.By, wrong)
	return exit.WithCode(exit.Refused, diag.Exposed.Hint(&runBy{text, unsafe},
		"let its first line name a program of root's, such as #!/bin/sh; or look at what is there, then: %s",
		cure(wrong, "go-w")))
}

// runBy is the error of a script whose interpreter is not safe.
type runBy struct {
	text   string
	unsafe *walk.UnsafeError
}

func (e *runBy) Error() string { return e.text }
func (e *runBy) Unwrap() error { return e.unsafe }
