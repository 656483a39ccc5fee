// Package kmod implements kmod.present and kmod.absent, which load and unload kernel modules and, with persist,
// manage the list of modules loaded at boot.
//
// A check runs `modprobe -n`, so that a dry run names the dependencies of a module as well. A module that is
// built into the kernel counts as loaded.
package kmod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of kmod.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &present{} },
		"absent":  func() module.Resource { return &absent{Comment: true} },
	}
}

// selection holds the arguments that name modules.
type selection struct {
	Name    string `sls:"name"`
	Mods    []any  `sls:"mods"` // instead of name
	Persist bool   `sls:"persist"`
}

// modules returns the named modules, which may include parameters.
func (s *selection) modules() ([]string, error) {
	names := []string{s.Name}
	if s.Mods != nil {
		names = nil
		for _, item := range s.Mods {
			names = append(names, value.Str(item))
		}
	}
	for _, n := range names {
		if plain(n) == "" || strings.ContainsAny(n, "\n/#") || n[0] == '-' {
			return nil, fmt.Errorf("%q is not a valid name of a kernel module", n)
		}
	}
	return names, nil
}

// plain returns the name of a module in the kernel's form: without parameters, and with underscores instead of
// dashes.
func plain(name string) string {
	name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
	return strings.ReplaceAll(name, "-", "_")
}

// loaded returns the modules that are loaded.
func loaded(h *host.Host) (map[string]bool, error) {
	all := map[string]bool{}
	data, err := h.Files.ReadFile("/proc/modules")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for l := range strings.Lines(string(data)) {
		name, _, _ := strings.Cut(l, " ")
		all[name] = true
	}
	return all, nil
}

// builtin returns the modules that are built into the kernel.
func builtin(h *host.Host) map[string]bool {
	release, err := h.Files.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil
	}
	names, err := host.Parsed(h, "/lib/modules/"+strings.TrimSpace(string(release))+"/modules.builtin", parseBuiltin)
	if err != nil {
		return nil // the modules of the kernel are not installed, as in a container
	}
	return names
}

func parseBuiltin(text string) map[string]bool {
	names := map[string]bool{}
	for l := range strings.Lines(text) {
		names[plain(strings.TrimSuffix(path.Base(strings.TrimSpace(l)), ".ko"))] = true
	}
	return names
}

// list is the file with the modules that are loaded at boot.
type list struct {
	path string
	text string
}

func openList(h *host.Host) (l list, err error) {
	l.path = "/etc/modules"
	if info, err := h.Files.Stat("/etc/modules-load.d"); err == nil && info.IsDir() {
		l.path = "/etc/modules-load.d/salt_managed.conf"
	}
	data, err := h.Files.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	l.text = string(data)
	return l, err
}

func (l list) has(name string) bool {
	for line := range strings.Lines(l.text) {
		if plain(line) == plain(name) {
			return true
		}
	}
	return false
}

// with returns the list with a module: its commented line is uncommented, or a line is appended.
func (l list) with(name string) list {
	lines := strings.SplitAfter(l.text, "\n")
	i := slices.IndexFunc(lines, func(line string) bool {
		line, commented := strings.CutPrefix(strings.TrimSpace(line), "#")
		return commented && strings.TrimSpace(line) == name
	})
	if i >= 0 {
		lines[i] = name + "\n"
		l.text = strings.Join(lines, "")
		return l
	}
	if l.text != "" && !strings.HasSuffix(l.text, "\n") {
		l.text += "\n"
	}
	l.text += name + "\n"
	return l
}

// without returns the list without a module, whose line is deleted or, with comment, commented out.
func (l list) without(name string, comment bool) list {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(l.text, "\n") {
		switch {
		case plain(line) != plain(name):
			b.WriteString(line)
		case comment:
			b.WriteString("#" + line)
		}
	}
	l.text = b.String()
	return l
}

// tool runs a tool for kernel modules.
func tool(ctx context.Context, h *host.Host, name string, args ...string) error {
	_, err := h.Tool(ctx,
		host.Tool{Argv: args, Changes: host.Subject{Kind: host.KindKernelModule, Name: plain(name)}, Package: "kmod"})
	return err
}

// edit holds the changes that the two functions determine.
type edit struct {
	changes *value.Map
	todo    []string // modules to load or unload
	list    list
	was     string // the text of the list before the change
}

func (e *edit) diff(h *host.Host, would, is string) module.Diff {
	if e.changes.Len() == 0 {
		return module.Diff{Comment: is}
	}
	d := module.Diff{Changes: e.changes, Planned: value.NewMap(), Comment: would}
	if h.Kernel.Allowed(would) != nil {
		d.Warnings = []string{"the running kernel is not changed: it is not that of this root"}
	}
	return d
}

// write writes the list if it has changed.
func (e *edit) write(h *host.Host) error {
	if e.list.text == e.was {
		return nil
	}
	return h.WriteText(e.list.path, e.list.text)
}
