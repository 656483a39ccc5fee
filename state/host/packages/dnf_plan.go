package packages

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// dnfSections returns the meaning of each heading in the tables of dnf and yum: its packages are "new", "gone", or ""
// if they do not change.
func dnfSections() map[string]string {
	return map[string]string{
		"Installing": "new", "Installing dependencies": "new", "Installing for dependencies": "new",
		"Installing weak dependencies": "new", "Installing group/module packages": "new", "Installing groups": "",
		"Installing Groups": "", "Installing group packages": "new",
		"Upgrading": "new", "Updating": "new", "Updating for dependencies": "new", "Upgrading dependencies": "new",
		"Downgrading": "new", "Downgrading for dependencies": "new", "Downgrading dependencies": "new",
		"Reinstalling": "new", "Reinstalling for dependencies": "new",
		"Removing": "gone", "Removing for dependencies": "gone", "Removing dependent packages": "gone",
		"Removing unused dependencies": "gone", "Removing depended packages": "gone", "Erasing": "gone",
		"Skipping packages with conflicts": "", "Skipping packages with broken dependencies": "",
		"Skipped (dependency problems)": "", "Not downgraded": "", "Changing reasons": "",
		"Enabling module streams": "", "Switching module streams": "", "Resetting modules": "", "Disabling modules": "",
	}
}

// parseDnfPlan parses the table of changes:
//
//	Package   Arch     Version   Repository   Size
//	Installing:
//	 foo      noarch   1:1.0-1   test        5.4 k
//	     replacing  bar.noarch 1.0-1
//	Removing dependent packages:
//	 baz ...
//
//	Transaction Summary
//
// A package has one space before it. A line with more belongs to the line before, since older versions break long
// lines.
func parseDnfPlan(program, text string, v *host.Inventory) ([]host.PackageChange, error) {
	p := dnfPlan{program: program, v: v}
	begun := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case isDnfHeading(line):
			begun = true
		case !begun || strings.TrimSpace(line) == "" || strings.Trim(line, "=") == "":
		case strings.HasPrefix(line, "Transaction Summary"):
			return p.end()
		default:
			if err := p.line(line); err != nil {
				return nil, err
			}
		}
	}
	if begun {
		return nil, notUnderstood(program, text)
	}
	return nil, nil
}

// isDnfHeading reports whether a line has the names of the columns.
func isDnfHeading(line string) bool {
	f := strings.Fields(line)
	return len(f) >= 4 && f[0] == "Package" && strings.HasPrefix(f[1], "Arch") && f[2] == "Version" &&
		strings.HasPrefix(f[3], "Repo")
}

// dnfPlan is the state of parsing a table.
type dnfPlan struct {
	program string
	v       *host.Inventory
	section string   // the meaning of the heading above, from dnfSections
	row     []string // the package that is being read
	changes []host.PackageChange
}

func (p *dnfPlan) line(line string) error {
	switch f := strings.Fields(line); {
	case line[0] != ' ':
		if err := p.flush(); err != nil {
			return err
		}
		section, known := dnfSections()[strings.TrimSuffix(strings.TrimSpace(line), ":")]
		if !known || !strings.HasSuffix(strings.TrimSpace(line), ":") {
			return notUnderstood(p.program, line)
		}
		p.section = section
	case f[0] == "replacing":
		return p.replaced(f[1:], line)
	case len(line) > 1 && line[1] != ' ':
		if err := p.flush(); err != nil {
			return err
		}
		p.row = f
	case len(p.row) > 0:
		p.row = append(p.row, f...)
	case p.section != "":
		return notUnderstood(p.program, line)
	}
	return nil
}

// replaced adds a package that another one makes obsolete: name.arch version, or with dnf5, name arch version. It
// ignores an older version of the same package.
func (p *dnfPlan) replaced(f []string, line string) error {
	if len(f) < 2 || len(p.row) == 0 {
		return notUnderstood(p.program, line)
	}
	name, arch := f[0], ""
	if len(f) > 2 && !strings.Contains(f[1], "-") {
		arch = f[1]
	} else if i := strings.LastIndexByte(name, '.'); i > 0 {
		name, arch = name[:i], name[i+1:]
	}
	if name != p.row[0] {
		list := p.v.NameOf(host.Package{Name: name, Arch: arch})
		p.changes = append(p.changes, host.PackageChange{Name: list, Old: p.v.Version(list)})
	}
	return nil
}

// flush adds the change of the row that was read, if there is one.
func (p *dnfPlan) flush() error {
	row := p.row
	p.row = nil
	if len(row) == 0 || p.section == "" {
		return nil
	}
	if len(row) < 4 {
		return notUnderstood(p.program, strings.Join(row, " "))
	}
	name := p.v.NameOf(host.Package{Name: row[0], Arch: row[1]})
	c := host.PackageChange{Name: name, Old: p.v.Version(name), New: plainEVR(row[2])}
	if p.section == "gone" {
		c.New = ""
		if rest := slices.DeleteFunc(p.v.Versions(name),
			func(v string) bool { return v == plainEVR(row[2]) }); len(rest) > 0 {
			c.New = strings.Join(rest, ",") // other versions stay installed
		}
	}
	p.changes = append(p.changes, c)
	return nil
}

func (p *dnfPlan) end() ([]host.PackageChange, error) {
	if err := p.flush(); err != nil {
		return nil, err
	}
	structsort.Func(p.changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(p.changes), nil
}
