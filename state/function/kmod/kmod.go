// Package kmod implements kmod.*: the modules of the kernel.
package kmod

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type kmod struct{ *function.Facts }

// Functions returns the functions of kmod that templates may call.
func Functions(f *function.Facts) function.Table {
	k := kmod{f}
	return function.Table{
		"kmod.lsmod":     function.Of("", k.loaded),
		"kmod.mod_list":  function.Of("only_persist=False", k.names),
		"kmod.is_loaded": function.Of("mod", k.has),
	}
}

// loaded returns the loaded modules of the kernel, with their sizes and dependents.
func (k kmod) loaded() (*value.List, error) {
	text, err := function.ReadText(k.Host, "/proc/modules")
	all := value.NewList()
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		users := value.NewList()
		if f[3] != "-" {
			users = value.Strings(strings.Split(strings.Trim(f[3], ","), ",")...)
		}
		all.Append(value.NewMap("size", f[1], "module", f[0], "depcount", f[2], "deps", users))
	}
	if function.Absent(err) {
		err = nil
	}
	return all, err
}

// names returns the loaded modules, or those that are loaded at boot.
func (k kmod) names(persistent bool) ([]string, error) {
	if persistent {
		return k.persistent()
	}
	names := []string{}
	all, err := k.loaded()
	for _, item := range all.Items {
		names = append(names, value.Str(item.(*value.Map).Value("module")))
	}
	slices.Sort(names)
	return names, err
}

// persistent returns the names of the kernel modules that each boot loads.
func (k kmod) persistent() ([]string, error) {
	file := "/etc/modules"
	if k.Grains.Has("systemd") {
		file = "/etc/modules-load.d/salt_managed.conf"
	}
	text, err := function.ReadText(k.Host, file)
	names := []string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			names = append(names, f[0])
		}
	}
	if function.Absent(err) {
		err = nil
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

func (k kmod) has(name string) (bool, error) {
	names, err := k.names(false)
	return slices.Contains(names, name), err
}
