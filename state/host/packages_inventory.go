package host

import (
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

// PackageState is the installation state of a package.
type PackageState int

// The states of a package. A package that is in the database but not installed has the zero state: it may be on hold.
const (
	NotInstalled     PackageState = iota
	ConfigFiles                   // removed, but for its configuration files
	HalfInstalled                 // the installation was not completed
	InstalledPackage              // installed completely
)

// Package is a package on the host, or in a file.
type Package struct {
	Name    string
	Version string
	Arch    string
	State   PackageState
	Held    bool
	// Damaged is true if the package manager does nothing with the package before it is installed again.
	Damaged  bool
	Provides []string // names that it provides, some with "=version"
}

// Inventory is the content of a package database.
type Inventory struct {
	// Native is the host's own architecture.
	Native string
	// Interrupted is true if a change was interrupted and must be completed first.
	Interrupted bool

	arch     ArchNames
	byName   map[string][]Package
	provided map[string][]string // the packages, as list names, that provide a name
	Provider func(virtual string) []string
	provides sync.Map // cached results of Provider, by name
}

// ArchNames describes how a family of package managers writes the architecture after a package's name.
type ArchNames struct {
	Join string                         // the text between name and architecture
	Any  []string                       // words for any architecture
	Same func(native, arch string) bool // reports whether two words name the same architecture; nil for never
}

func debianNames() ArchNames { return ArchNames{Join: ":", Any: []string{"all", "any"}} }

// NewInventory returns an inventory of packages with Debian's names of architectures.
func NewInventory(native string, packages []Package) *Inventory {
	return InventoryOf(native, debianNames(), packages)
}

// InventoryOf makes an inventory of packages whose architectures have the names in arch.
func InventoryOf(native string, arch ArchNames, packages []Package) *Inventory {
	v := &Inventory{Native: native, arch: arch, byName: make(map[string][]Package, len(packages)),
		provided: map[string][]string{}}
	for _, p := range packages {
		name := v.NameOf(p)
		v.byName[name] = append(v.byName[name], p)
		if p.State != InstalledPackage {
			continue
		}
		for _, provision := range p.Provides {
			virtual, _, _ := strings.Cut(provision, "=")
			v.provided[virtual] = append(v.provided[virtual], name)
		}
	}
	return v
}

// NameOf returns the name of a package for users and reports: with its architecture only if that is not the host's.
func (v *Inventory) NameOf(p Package) string {
	if p.Arch == "" || v.isNative(p.Arch) {
		return p.Name
	}
	return p.Name + v.arch.Join + p.Arch
}

// isNative reports whether an architecture is the host's own or fits every host, so that names leave it out.
func (v *Inventory) isNative(arch string) bool {
	return arch == v.Native || slices.Contains(v.arch.Any, arch) || v.arch.Same != nil && v.arch.Same(v.Native, arch)
}

// ListName returns a name that a user wrote, without its architecture if that is the host's own.
func (v *Inventory) ListName(name string) string {
	if i := strings.LastIndex(name, v.arch.Join); v.arch.Join != "" && i > 0 && v.isNative(name[i+len(v.arch.Join):]) {
		return name[:i]
	}
	return name
}

// Version returns the version of an installed package, or "" if the package is not installed. If several versions are
// installed, they are separated by commas.
func (v *Inventory) Version(name string) string {
	return strings.Join(v.Versions(name), ",")
}

// Versions lists the installed versions of a package.
func (v *Inventory) Versions(name string) []string { return v.versions(name, InstalledPackage) }

// Leftover returns the version of a package that was removed and left its configuration files.
func (v *Inventory) Leftover(name string) string {
	return strings.Join(v.versions(name, ConfigFiles), ",")
}

// Partial returns the version of a package whose installation or removal was not completed.
func (v *Inventory) Partial(name string) string {
	return strings.Join(v.versions(name, HalfInstalled), ",")
}

// Damaged lists the packages that have to be installed again.
func (v *Inventory) Damaged() []string {
	return v.names(func(p Package) bool { return p.Damaged })
}

func (v *Inventory) versions(name string, state PackageState) []string {
	var versions []string
	for _, p := range v.byName[name] {
		if p.State == state {
			versions = append(versions, p.Version)
		}
	}
	return versions
}

// Held reports whether a package is on hold.
func (v *Inventory) Held(name string) bool {
	return slices.ContainsFunc(v.byName[name], func(p Package) bool { return p.Held })
}

// Holds lists the packages on hold.
func (v *Inventory) Holds() []string {
	return v.names(func(p Package) bool { return p.Held })
}

// Providers lists the installed packages that provide a virtual package.
func (v *Inventory) Providers(virtual string) []string {
	if v.Provider == nil {
		return v.provided[virtual]
	}
	if known, ok := v.provides.Load(virtual); ok {
		return known.([]string)
	}
	names := v.Provider(virtual)
	v.provides.Store(virtual, names)
	return names
}

// Names lists the installed packages.
func (v *Inventory) Names() []string {
	return v.names(func(p Package) bool { return p.State == InstalledPackage })
}

func (v *Inventory) names(is func(Package) bool) []string {
	var names []string
	for name, packages := range v.byName {
		if slices.ContainsFunc(packages, is) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Changes returns the differences between v and a later inventory, sorted by name.
func (v *Inventory) Changes(later *Inventory) []PackageChange {
	var changes []PackageChange
	for name := range union(v.byName, later.byName) {
		if before, after := v.Version(name), later.Version(name); before != after {
			changes = append(changes, PackageChange{Name: name, Old: before, New: after})
		}
		if before := v.Leftover(name); before != "" && later.Leftover(name) == "" && later.Version(name) == "" {
			changes = append(changes, PackageChange{Name: name, Old: before, Purged: true})
		}
	}
	structsort.Func(changes, func(a, b PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return changes
}

func union[V any](a, b map[string]V) map[string]bool {
	keys := make(map[string]bool, len(a))
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}
