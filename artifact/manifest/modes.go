package manifest

import "slices"

// Modes returns the modes that unpacking gave the directories and files of the list, by name. It leaves out the root of
// the tree, and names that may change according to s.
func (m *Manifest) Modes(s Scope) (modes map[string]Mode) {
	a := &audit{Scope: s, behind: m.Behind(s.Code), listed: make(map[string]Entry, len(m.Entries))}
	for _, e := range m.Entries {
		a.listed[e.Name] = e
		a.parents(e.Name)
	}
	modes = make(map[string]Mode, len(a.listed))
	for name, e := range a.listed {
		if e.Kind == Hardlink {
			e = a.listed[e.Link]
		}
		if e.Kind != Symlink && name != "." && !a.mayChange(name) {
			modes[name] = a.modeOf(e, name)
		}
	}
	return modes
}

// Mode is the mode of a name in a release.
type Mode struct {
	Directory bool
	Bits      uint32 // mode given by unpacking
	Free      uint32 // further bits that the name may have
}

// Fits reports whether a name may have these bits.
func (m Mode) Fits(bits uint32) bool { return bits&^m.Free == m.Bits }

// modeOf returns the mode of a directory or file. Directories inherit the setgid bit.
func (a *audit) modeOf(e Entry, name string) Mode {
	switch {
	case e.Kind == Directory && slices.Contains(Private(), name):
		return Mode{Directory: true, Bits: PrivateMode, Free: setgid}
	case e.Kind == Directory:
		return Mode{Directory: true, Bits: directoryMode, Free: setgid}
	}
	m := Mode{Bits: fileMode}
	if e.Kind == Executable {
		m.Bits = executableMode
	}
	if below(a.Unlocked, name) {
		m.Free = 0o200
	}
	return m
}
