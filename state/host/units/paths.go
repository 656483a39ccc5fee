package units

import (
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Paths returns the directories in which systemd searches for unit files of the system, in its order.
func Paths() []string {
	return []string{
		"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient",
		"/run/systemd/generator.early",
		"/etc/systemd/system", "/etc/systemd/system.attached", "/run/systemd/system", "/run/systemd/system.attached",
		"/run/systemd/generator",
		"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system", "/run/systemd/generator.late",
	}
}

// systemdReads reports whether systemd, or one of the generators that it runs on a reload, reads a file: unit files and
// drop-ins, the links of enabled units, presets, and the inputs of generators. A change of one of them has no effect
// before systemd reloads its files.
func systemdReads(p string) bool {
	for _, part := range []string{"/systemd/system", "/systemd/transient", "/containers/systemd/"} {
		if strings.Contains(p, part) {
			return true
		}
	}
	for _, prefix := range []string{"/etc/init.d/", "/etc/rc", "/etc/fstab", "/etc/crypttab", "/etc/veritytab",
		"/etc/integritytab", "/etc/exports"} {
		if strings.HasPrefix(p, prefix) {
			return true
		}
	}
	return strings.HasPrefix(p, "/etc/systemd/") && strings.Contains(p, "-generator.conf")
}

// loadedFrom has the names of a unit and the files from which systemd has loaded it.
type loadedFrom struct {
	names    []string // of the unit, including its aliases
	fragment string
	dropIns  []string
}

// differs reports whether the files of a unit differ from those from which systemd has loaded it. systemd itself only
// compares the times of files that it has loaded; it does not notice a new directory of drop-ins, or a unit file in a
// directory of higher priority (NeedDaemonReload stays false).
func (l loadedFrom) differs(files host.Files) bool {
	var there []string
	masked := map[string]bool{}
	for _, dir := range Paths() {
		for _, name := range l.names {
			for _, d := range dropInNames(name) {
				found, _ := files.ReadDir(path.Join(dir, d)) // the directory may be missing
				for _, f := range found {
					target, _ := files.Readlink(path.Join(dir, d, f))
					masked[f] = masked[f] || target == "/dev/null"
					if strings.HasSuffix(f, ".conf") {
						there = append(there, f)
					}
				}
			}
		}
	}
	var read []string
	for _, p := range l.dropIns {
		read = append(read, path.Base(p))
	}
	return !slices.Equal(unmasked(there, masked), unmasked(read, masked)) || l.moved(files) || l.linked(files)
}

// linked reports whether a file of the unit, or its directory, is a link to another place, such as a release. Its
// target may have been replaced by a file that is no newer, which systemd does not notice.
func (l loadedFrom) linked(files host.Files) bool {
	return slices.ContainsFunc(append(slices.Clone(l.dropIns), l.fragment), func(p string) bool {
		return strings.HasPrefix(p, "/") && p != "/dev/null" && (leadsAway(files, p) || leadsAway(files, path.Dir(p)))
	})
}

// leadsAway reports whether a path is a link to a path outside the directories of unit files.
func leadsAway(files host.Files, p string) bool {
	to, err := files.Resolve(p)
	return err == nil && to != p && to != "/dev/null" &&
		!slices.ContainsFunc(Paths(), func(dir string) bool { return strings.HasPrefix(to+"/", dir+"/") })
}

// unmasked sorts names and leaves out masked drop-ins, which some versions of systemd list.
func unmasked(names []string, masked map[string]bool) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return masked[name] })
	slices.Sort(names)
	return slices.Compact(names)
}

// moved reports whether systemd would now load the unit from another file.
func (l loadedFrom) moved(files host.Files) bool {
	if !strings.HasPrefix(l.fragment, "/") || l.fragment == "/dev/null" {
		return false
	}
	name := path.Base(l.fragment)
	for _, dir := range Paths() {
		p := path.Join(dir, name)
		if _, err := files.Lstat(p); err != nil {
			continue
		}
		now, err := files.Resolve(p)
		if err != nil {
			return false
		}
		was, err := files.Resolve(l.fragment)
		return err != nil || withoutUsr(now) != withoutUsr(was)
	}
	return false
}

// withoutUsr removes /usr from a path: /lib is a link to /usr/lib on most systems.
func withoutUsr(p string) string { return strings.TrimPrefix(p, "/usr") }

// dropInNames returns the directories in which drop-ins of a unit may be: its own, those of the template that it is an
// instance of and of the prefixes of its name, and those of all units of its kind.
func dropInNames(unit string) []string {
	dot := strings.LastIndexByte(unit, '.')
	if dot < 0 {
		return nil
	}
	stem, kind := unit[:dot], unit[dot+1:]
	names := []string{unit + ".d", kind + ".d"}
	if template, instance, ok := strings.Cut(stem, "@"); ok {
		if instance != "" {
			names = append(names, template+"@."+kind+".d")
		}
		stem = template
	}
	for i, c := range stem {
		if c == '-' && i+1 < len(stem) {
			names = append(names, stem[:i+1]+"."+kind+".d")
		}
	}
	return names
}
