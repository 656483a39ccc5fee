package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// UnitState is the name of the part of a unit that says whether it runs, and running is its value then.
const (
	UnitState = "state"
	running   = "running"
)

func value(name, text string) Part { return Part{Name: name, Type: Value, Text: text} }

func (t Taker) unit(ctx context.Context, name string) (Image, error) {
	u, err := t.Host.Units.Unit(ctx, name, "")
	if err != nil {
		return Image{}, err
	}
	state := "stopped" // also for a unit that does not exist
	if u.Running() {
		state = running
	}
	return Image{[]Part{value(UnitState, state)}}, nil
}

// unitDirs returns the directories with the links of enabled units; an entry is a unit, or a directory of units that
// another unit wants or requires.
func unitDirs() []string { return []string{"/etc/systemd/system", "/run/systemd/system"} }

// boot describes the links that enable or mask a unit, and whether it runs, since the links start the unit if the host
// boots before a restore.
func (t Taker) boot(ctx context.Context, unit string) (Image, error) {
	i, err := t.unit(ctx, unit)
	if err != nil {
		return i, err
	}
	for _, dir := range unitDirs() {
		if err := t.unitLinks(dir, unit, true, &i); err != nil {
			return i, err
		}
	}
	script := strings.TrimSuffix(unit, ".service")
	for _, level := range "0123456S" {
		if err := t.links(fmt.Sprintf("/etc/rc%c.d", level), &i, func(name, _ string) bool {
			return len(name) > 3 && strings.ContainsRune("SK", rune(name[0])) && name[3:] == script
		}); err != nil {
			return i, err
		}
	}
	return i, nil
}

func (t Taker) unitLinks(dir, unit string, deep bool, i *Image) error {
	isIts := func(name, target string) bool { return name == unit || path.Base(target) == unit }
	if err := t.links(dir, i, isIts); err != nil || !deep {
		return err
	}
	names, err := t.entries(dir)
	for _, name := range names {
		if !strings.HasSuffix(name, ".wants") && !strings.HasSuffix(name, ".requires") &&
			!strings.HasSuffix(name, ".upholds") {
			continue
		}
		// The directory may be created and removed with its entries.
		if err := t.add(path.Join(dir, name), i); err != nil {
			return err
		}
		if err := t.unitLinks(path.Join(dir, name), unit, false, i); err != nil {
			return err
		}
	}
	return err
}

// links adds the links in a directory for which meant returns true.
func (t Taker) links(dir string, i *Image, meant func(name, target string) bool) error {
	names, err := t.entries(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		file := path.Join(dir, name)
		target, err := t.Host.Files.Readlink(file)
		if err != nil || !meant(name, target) {
			continue // not a link, or one of another unit
		}
		if err := t.add(file, i); err != nil {
			return err
		}
	}
	return nil
}

func (t Taker) add(file string, i *Image) error {
	p, err := t.path(file)
	i.Parts = append(i.Parts, p)
	return err
}

func (t Taker) entries(dir string) ([]string, error) {
	names, err := t.Host.Files.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// pack describes the state of a package in the package database.
func (t Taker) pack(name string) (Image, error) {
	v, err := t.Host.Packages.Installed()
	if err != nil {
		return Image{}, err
	}
	held := ""
	if v.Held(name) {
		held = "held"
	}
	parts := []Part{value("version", v.Version(name)), value("left configuration of", v.Leftover(name)),
		value("hold", held)}
	if partial := v.Partial(name); partial != "" {
		parts = append(parts, value("not completely installed", partial))
	}
	return Image{parts}, nil
}

// alternative describes the files that make up an alternative: the record of the tool, and the links that the record
// names.
func (t Taker) alternative(name string) (Image, error) {
	var i Image
	for _, dir := range []string{"/var/lib/dpkg/alternatives/", "/var/lib/alternatives/"} {
		if err := t.add(dir+name, &i); err != nil {
			return i, err
		}
		text, err := t.Host.Files.ReadFile(dir + name)
		if err != nil {
			continue // there is none
		}
		for _, link := range alternativeLinks(name, string(text)) {
			if err := t.add(link, &i); err != nil {
				return i, err
			}
		}
	}
	if i.Part("/etc/alternatives/"+name).Type == Absent {
		err := t.add("/etc/alternatives/"+name, &i)
		return i, err
	}
	return i, nil
}

// alternativeLinks parses a record of update-alternatives: the mode, the link, the name and link of each slave, an
// empty line, and then the choices.
func alternativeLinks(name, note string) []string {
	lines := strings.Split(note, "\n")
	if len(lines) < 2 {
		return nil
	}
	links := []string{lines[1], "/etc/alternatives/" + name}
	for n := 2; n+1 < len(lines) && lines[n] != ""; n += 2 {
		links = append(links, lines[n+1], "/etc/alternatives/"+lines[n])
	}
	return slices.DeleteFunc(links, func(l string) bool { return !path.IsAbs(l) })
}

// kernel describes a setting that only the running system has.
func (t Taker) kernel(s host.Subject) (Image, error) {
	switch s.Kind {
	case host.KindHostname:
		name, err := t.Host.Kernel.Hostname()
		return Image{[]Part{value("name", name)}}, err
	case host.KindSysctl:
		text, err := t.Host.Files.ReadFile(sysctlFile(s.Name))
		if err != nil {
			return Image{[]Part{value("value", "")}}, nil // the state reports the missing setting
		}
		return Image{[]Part{value("value", strings.TrimSpace(string(text)))}}, nil
	case host.KindMount:
		return t.mounted(s.Name)
	case host.KindKernelModule:
		return t.module(s.Name)
	}
	return Image{}, nil
}

// sysctlFile returns the file of a kernel setting. A name may be written with slashes, so that the name of an interface
// can contain a dot.
func sysctlFile(name string) string {
	slash := strings.IndexByte(name, '/')
	if dot := strings.IndexByte(name, '.'); slash < 0 || dot >= 0 && dot < slash {
		name = strings.NewReplacer(".", "/", "/", ".").Replace(name)
	}
	return "/proc/sys/" + path.Clean("/" + name)[1:]
}

// mounted describes the mount at a path, as arguments of mount(8), or whether it is used as swap.
func (t Taker) mounted(place string) (Image, error) {
	mounts, err := t.Host.Files.ReadFile("/proc/self/mounts")
	if err != nil {
		return Image{}, err
	}
	place = t.real(place)
	state := ""
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) > 3 && walk.MountWord(f[1]) == place {
			state = strings.Join(f[:4], " ") // the last one is on top
		}
	}
	if t.isSwap(place) {
		state = "swap"
	}
	if f := strings.Fields(state); len(f) == 4 && !strings.Contains(f[3], "subvol=") {
		return t.bound(place, f)
	}
	return Image{[]Part{value("mounted", state)}}, nil
}

// isSwap reports whether the kernel uses a path as swap.
func (t Taker) isSwap(place string) bool {
	swaps, _ := t.Host.Files.ReadFile("/proc/swaps") // a kernel without swap has no such file
	for line := range strings.Lines(string(swaps)) {
		if f := strings.Fields(line); len(f) > 1 && walk.MountWord(f[0]) == place {
			return true
		}
	}
	return false
}

// real returns a path without links, as the kernel lists it.
func (t Taker) real(place string) string {
	to, err := t.Host.Files.Resolve(place)
	if err != nil {
		return path.Clean(place)
	}
	return path.Clean(to)
}

// bound describes a mount as arguments of mount(8). A bind mount of a directory is described by the path of the
// directory, since mounting the device would show the whole filesystem.
func (t Taker) bound(place string, mount []string) (Image, error) {
	table, err := t.Host.Files.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Image{}, err
	}
	var mine *walk.Mount
	all := walk.Mounts(string(table))
	for i := range all {
		if walk.MountWord(all[i].Place) == place {
			mine = &all[i]
		}
	}
	p := value("mounted", strings.Join(mount, " "))
	if mine == nil || mine.Root == "/" {
		return Image{[]Part{p}}, nil
	}
	p.Lost = "which directory was mounted there is not to be found"
	for _, m := range all {
		below, ok := strings.CutPrefix(mine.Root, strings.TrimSuffix(m.Root, "/"))
		if m.Number != mine.Number || m.Place == mine.Place || !ok || below != "" && below[0] != '/' {
			continue
		}
		mount[0], mount[2], mount[3] = strings.TrimSuffix(m.Place, "/")+below, "none", "bind,"+mine.Options
		return Image{[]Part{value("mounted", strings.Join(mount, " "))}}, nil
	}
	return Image{[]Part{p}}, nil
}

func (t Taker) module(name string) (Image, error) {
	list, err := t.Host.Files.ReadFile("/proc/modules")
	if err != nil {
		return Image{}, err
	}
	state := ""
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == strings.ReplaceAll(name, "-", "_") {
			state = "loaded"
		}
	}
	return Image{[]Part{value("state", state)}}, nil
}
