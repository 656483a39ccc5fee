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
		all = append(all, program{"engine_command", c.EngineCommand[0]})
	default:
		all = append(all,
			program{"engine", map[string]string{"salt-call": "salt-call", "ansible": "ansible-playbook"}[c.Engine]})
	}
	if len(c.Notify.MailTo) > 0 {
		all = append(all, program{"notify.mail.sendmail", c.Notify.Sendmail})
	}
	if len(c.Notify.Command) > 0 {
		all = append(all, program{"notify.command", c.Notify.Command[0]})
	}
	if len(c.EventCommand) > 0 {
		all = append(all, program{"event_command", c.EventCommand[0]})
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

// ofModules is what the agent needs python3 for. The agent looks python3 up in the directories of the system's
// programs, whatever PATH is.
const ofModules = "modules in Python"

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
		found.texts = append(found.texts, fmt.Sprintf("%s can change %s, and with it %s, which root runs (%s)", unsafe.By,
			unsafe.Component, unsafe.Path, by))
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
