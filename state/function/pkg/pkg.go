// Package pkg implements pkg.* and lowpkg.*: the packages of the host, their files and versions, and changes to them.
package pkg

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type pkg struct{ *function.Facts }

// Functions returns the functions of pkg that templates may call.
func Functions(f *function.Facts) function.Table {
	p := pkg{f}
	latest := function.Of("*names, refresh=True, show_installed=False, fromrepo=None, cache_valid_time=0, **kwargs",
		p.latest)
	return function.Table{
		"pkg.version":           function.Of("*names, versions_as_list=False, **kwargs", p.version),
		"pkg.list_pkgs":         function.Of("versions_as_list=False, **kwargs", p.list),
		"pkg.latest_version":    latest,
		"pkg.available_version": latest,
		"pkg.upgrade_available": function.Of("name, **kwargs", p.upgradable),
		"pkg.version_cmp":       function.Of("pkg1, pkg2, ignore_epoch=False, **kwargs", p.compare),
	}.Add(inventory(p))
}

// installed returns the versions of all packages by name, separated by commas if there are several.
func (p pkg) installed() (map[string]string, error) {
	if p.Packages == nil {
		return nil, errors.New("the package database of this host cannot be read")
	}
	return p.Packages.Versions()
}

// version returns the version of a package, "" if it is not installed, or a mapping for several names or a glob.
func (p pkg) version(names []string, asList any, _ *value.Map) (any, error) {
	found := value.NewMap()
	if len(names) == 0 {
		return found, nil
	}
	all, err := p.installed()
	if err != nil {
		return nil, err
	}
	globbed := false
	for _, name := range names {
		if !strings.Contains(name, "*") {
			found.Set(name, versions(all[name], asList))
			continue
		}
		globbed = true
		for _, match := range matching(all, name) {
			found.Set(match, versions(all[match], asList))
		}
	}
	if found.Len() == 1 && !globbed {
		return found.Value(names[0]), nil
	}
	return found, nil
}

// matching returns the names of the packages that a glob matches, in order.
func matching(all map[string]string, glob string) []string {
	return slices.DeleteFunc(function.SortedKeys(all), func(name string) bool { return !value.Glob(glob, name) })
}

func versions(text string, asList any) any {
	if !function.IsTrue(asList) {
		return text
	}
	if text == "" {
		return value.NewList()
	}
	return value.Strings(strings.Split(text, ",")...)
}

func (p pkg) list(asList any, _ *value.Map) (*value.Map, error) {
	all, err := p.installed()
	listed := value.NewMap()
	for _, name := range function.SortedKeys(all) {
		listed.Set(name, versions(all[name], asList))
	}
	return listed, err
}

// latest returns the version that an installation would install, or "" if it would change nothing. It does not
// refresh the indexes, since that would change the host.
func (p pkg) latest(ctx context.Context, names []string, _, withInstalled any, release string, _ any,
	_ *value.Map) (any, error) {
	if len(names) == 0 {
		return "", nil
	}
	all, err := p.installed()
	if err != nil {
		return nil, err
	}
	candidates, err := p.Packages.Candidates(ctx, names, release)
	if err != nil {
		return nil, err
	}
	found := value.NewMap()
	for _, name := range names {
		candidate := candidates[name]
		if all[name] != "" && !function.IsTrue(withInstalled) && !p.newer(candidate, all[name]) {
			candidate = ""
		}
		found.Set(name, candidate)
	}
	if len(names) == 1 {
		return found.Value(names[0]), nil
	}
	return found, nil
}

// newer reports whether a version is newer than all of the installed ones.
func (p pkg) newer(candidate, installed string) bool {
	for version := range strings.SplitSeq(installed, ",") {
		if candidate == "" || p.Packages.Compare(version, candidate) >= 0 {
			return false
		}
	}
	return true
}

func (p pkg) upgradable(ctx context.Context, name string, _ *value.Map) (bool, error) {
	latest, err := p.latest(ctx, []string{name}, nil, nil, "", nil, nil)
	return err == nil && latest != "", err
}

func (p pkg) compare(a, b string, ignoreEpoch bool, _ *value.Map) (int, error) {
	if p.Packages == nil {
		return 0, errors.New("the package manager of this host is not known")
	}
	if ignoreEpoch {
		a, b = afterEpoch(a), afterEpoch(b)
	}
	return p.Packages.Compare(a, b), nil
}

func afterEpoch(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		return rest
	}
	return version
}
