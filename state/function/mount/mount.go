// Package mount implements mount.*: mounted file systems, and the entries of /etc/fstab.
package mount

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type mount struct{ *function.Facts }

// Functions returns the functions of mount that templates may call.
func Functions(f *function.Facts) function.Table {
	m := mount{f}
	return function.Table{
		"mount.active":     function.Of("extended=False", m.active),
		"mount.is_mounted": function.Of("name", m.mounted),
		"mount.fstab":      function.Of("config='/etc/fstab'", m.fstab),
		"mount.swaps":      function.Of("", m.swaps),
	}
}

// active returns the mounted file systems by directory.
func (m mount) active(extended bool) (*value.Map, error) {
	if extended {
		return m.details()
	}
	text, err := function.ReadText(m.Host, "/proc/self/mounts")
	all := value.NewMap()
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 3 {
			all.Set(f[1], value.NewMap("device", f[0], "alt_device", f[0], "fstype", f[2], "opts", options(f[3])))
		}
	}
	return all, err
}

func options(text string) *value.List {
	return value.Strings(strings.Split(strings.ReplaceAll(text, `\040`, `\ `), ",")...)
}

// details returns the mounted file systems with the fields of mountinfo.
func (m mount) details() (*value.Map, error) {
	text, err := function.ReadText(m.Host, "/proc/self/mountinfo")
	all := value.NewMap()
	for _, l := range walk.Mounts(text) {
		major, minor, _ := strings.Cut(l.Number, ":")
		all.Set(l.Place, value.NewMap("mountid", l.ID, "parentid", l.Parent, "major", major, "minor", minor, "root", l.Root,
			"opts", options(l.Options),
			"fstype", l.Type, "device", strings.ReplaceAll(l.Device, `\040`, `\ `), "alt_device", l.Device, "superopts",
			options(l.SuperBlock),
			"device_uuid", nil, "device_label", nil))
	}
	return all, err
}

func (m mount) mounted(name string) (bool, error) {
	all, err := m.active(false)
	return all.Has(name), err
}

// fstab returns the entries of a file system table, by directory. If a directory has several entries, underscores are
// appended to the names of later ones.
func (m mount) fstab(file string) (*value.Map, error) {
	text, err := function.ReadText(m.Host, file)
	all := value.NewMap()
	if function.Absent(err) {
		return all, nil
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(f) < 4 || len(f) > 6 {
			continue
		}
		f = append(f, "0", "0")
		name := f[1]
		for all.Has(name) {
			name += "_"
		}
		all.Set(name, value.NewMap("device", f[0], "fstype", f[2], "opts", value.Strings(strings.Split(f[3], ",")...), "dump",
			f[4], "pass", f[5]))
	}
	return all, err
}

func (m mount) swaps() (*value.Map, error) {
	text, err := function.ReadText(m.Host, "/proc/swaps")
	all := value.NewMap()
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 5 && f[0] != "Filename" {
			all.Set(f[0], value.NewMap("type", f[1], "size", f[2], "used", f[3], "priority", f[4]))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listing swap: %w", err)
	}
	return all, nil
}
