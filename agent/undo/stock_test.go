package undo_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// stock is a fake package manager that keeps a list of packages.
type stock struct {
	host.Packages // nil: the tests do not call the other methods

	installed, left map[string]string   // versions, by name
	held            map[string]bool     //
	offered         map[string][]string // versions in the repositories, by name
	needs           map[string]string   // dependencies, by name
	did             []string
	broken          bool
	stays           string                             // the package whose removal script refuses
	refuse          func(s *stock, w host.Wanted) bool // whether a package cannot be installed now; nil for none
}

func newStock() *stock {
	return &stock{installed: map[string]string{}, left: map[string]string{}, held: map[string]bool{},
		offered: map[string][]string{}, needs: map[string]string{}}
}

func (s *stock) Family() string { return "apt" }

func (s *stock) Installed() (*host.Inventory, error) {
	var all []host.Package
	for name, version := range s.installed {
		all = append(all, host.Package{Name: name, Version: version, State: host.InstalledPackage, Held: s.held[name]})
	}
	for name, version := range s.left {
		all = append(all, host.Package{Name: name, Version: version, State: host.ConfigFiles})
	}
	return host.NewInventory("amd64", all), nil
}

func (s *stock) Offers(_ context.Context, names []string, _ string) (map[string]host.Offer, error) {
	all := map[string]host.Offer{}
	for _, name := range names {
		all[name] = host.Offer{Versions: s.offered[name]}
	}
	return all, nil
}

func (s *stock) Refresh(context.Context) ([]string, error) {
	s.did = append(s.did, "refresh")
	return nil, nil
}

func (s *stock) Plan(_ context.Context, t host.Transaction) ([]host.PackageChange, error) {
	var all []host.PackageChange
	for _, w := range t.Packages {
		if s.refuse != nil && s.refuse(s, w) {
			return nil, errors.New("dependencies cannot be met")
		}
		all = append(all, host.PackageChange{Name: w.Name, Old: s.installed[w.Name], New: w.Version})
		for name, need := range s.needs {
			if need == w.Name && w.Version == "" && s.installed[name] != "" {
				all = append(all, host.PackageChange{Name: name, Old: s.installed[name]})
			}
		}
	}
	return all, nil
}

func (s *stock) Do(_ context.Context, t host.Transaction) error {
	if s.broken {
		return errors.New("the package manager is broken")
	}
	slices.SortFunc(t.Packages, func(a, b host.Wanted) int { return cmp.Compare(a.Name, b.Name) })
	for _, w := range t.Packages {
		if w.Version == "" && w.Name == s.stays {
			return errors.New("the removal script refuses")
		}
	}
	for _, w := range t.Packages {
		s.did = append(s.did, map[host.PackageAction]string{host.InstallPackages: "install ", host.RemovePackages: "remove ",
			host.PurgePackages: "purge "}[t.Action]+w.Name+" "+w.Version)
		delete(s.left, w.Name)
		if t.Action == host.RemovePackages {
			s.left[w.Name] = s.installed[w.Name]
		}
		delete(s.installed, w.Name)
		if w.Version != "" {
			s.installed[w.Name] = w.Version
		}
	}
	return nil
}

func (s *stock) Hold(_ context.Context, names []string, held bool) error {
	for _, name := range names {
		s.held[name] = held
	}
	return nil
}

// TestPackageChangesAreUndone has a run change packages, and restores them with one call for each kind of change.
func TestPackageChangesAreUndone(t *testing.T) {
	for name, c := range map[string]struct {
		before   func(s *stock)
		run      func(s *stock)
		since    func(s *stock)
		restored []string
		left     string
		did      string
		want     string // version of foo at the end
	}{
		"upgraded": {
			before: func(s *stock) { s.installed["foo"] = "1.0" }, run: func(s *stock) { s.installed["foo"] = "2.0" },
			restored: []string{"package foo"}, did: "install foo 1.0", want: "1.0",
		},
		"upgraded although on hold": {
			before: func(s *stock) { s.installed["foo"] = "1.0"; s.held["foo"] = true }, run: func(s *stock) {
				s.installed["foo"], s.held["foo"] = "2.0", false
			},
			restored: []string{"package foo"}, did: "install foo 1.0", want: "1.0",
		},
		"installed": {run: func(s *stock) { s.installed["foo"] = "2.0" }, restored: []string{"package foo"},
			did: "purge foo "},
		"installed over its configuration files": {
			before: func(s *stock) { s.left["foo"] = "1.0" }, run: func(s *stock) {
				s.installed["foo"] = "2.0"
				delete(s.left, "foo")
			},
			restored: []string{"package foo"}, did: "remove foo ",
		},
		"removed": {
			before: func(s *stock) { s.installed["foo"] = "1.0" }, run: func(s *stock) { delete(s.installed, "foo") },
			restored: []string{"package foo"}, did: "install foo 1.0", want: "1.0",
		},
		"upgraded, and upgraded again since": {
			before: func(s *stock) { s.installed["foo"] = "1.0" }, run: func(s *stock) { s.installed["foo"] = "2.0" },
			since: func(s *stock) { s.installed["foo"] = "3.0" },
			left:  "package foo (some.state of 1): it was changed since run 1 left it", want: "3.0",
		},
		"upgraded, and the old version is not available": {
			before: func(s *stock) { s.installed["foo"] = "0.9" }, run: func(s *stock) { s.installed["foo"] = "2.0" },
			left: "package foo (some.state of 1): no repository of this host has version 0.9 any more", did: "refresh",
			want: "2.0",
		},
		"installed, and needed by another package since": {
			run: func(s *stock) { s.installed["foo"] = "2.0" }, since: func(s *stock) {
				s.installed["bar"], s.needs["bar"] = "1.0", "foo"
			},
			left: "package foo (some.state of 1): bar would have to go with it", want: "2.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.stock = newStock()
			s.stock.offered["foo"] = []string{"2.0", "1.0"}
			if c.before != nil {
				c.before(s.stock)
			}
			held := s.stock.held["foo"]
			s.run("1", func(*host.Host) { s.named(host.KindPackage, "foo"); c.run(s.stock) })
			if c.since != nil {
				c.since(s.stock)
			}
			did := s.restoreTwice()
			if c.left == "" {
				s.expect(did, c.restored)
			} else {
				s.expect(did, c.restored, c.left)
			}
			if got := strings.Join(s.stock.did, "; "); got != c.did {
				t.Errorf("the calls of the package manager are %q, want %q", got, c.did)
			}
			if s.stock.installed["foo"] != c.want || s.stock.held["foo"] != held {
				t.Errorf("the version is %q, held %v; want %q, %v", s.stock.installed["foo"], s.stock.held["foo"], c.want, held)
			}
		})
	}
}

// TestUnavailablePackageDoesNotBlockOthers restores the available packages in one call, and the other changes.
func TestUnavailablePackageDoesNotBlockOthers(t *testing.T) {
	s := newScene(t)
	s.stock = newStock()
	s.put("/etc/f", "old")
	for _, name := range []string{"a", "gone", "z"} {
		s.stock.installed[name], s.stock.offered[name] = "1", []string{"2", "1"}
	}
	s.stock.offered["gone"] = []string{"2"}
	s.run("1", func(h *host.Host) {
		s.write("/etc/f", "new")(h)
		for _, name := range []string{"a", "gone", "z"} {
			s.named(host.KindPackage, name)
			s.stock.installed[name] = "2"
		}
	})
	s.expect(s.restoreTwice(), []string{"package z", "package a", "file /etc/f"},
		"package gone (some.state of 1): no repository of this host has version 1 any more")
	if got := strings.Join(s.stock.did, "; "); got != "refresh; install a 1; install z 1" {
		t.Errorf("the calls of the package manager are %q", got)
	}
}

// TestPackagesAreRestoredInDependencyOrder has a new package that prevents the restore of an earlier version, and a new
// version that prevents the removal of a package.
func TestPackagesAreRestoredInDependencyOrder(t *testing.T) {
	for name, refuse := range map[string]func(s *stock, w host.Wanted) bool{
		"the new one needs the new version": func(s *stock, w host.Wanted) bool {
			return w.Version == "1" && s.installed["extra"] != ""
		},
		"the new version needs the new one": func(s *stock, w host.Wanted) bool {
			return w.Name == "extra" && s.installed["foo"] == "2"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.stock = newStock()
			s.stock.refuse = refuse
			s.stock.installed["foo"], s.stock.offered["foo"] = "1", []string{"2", "1"}
			s.run("1", func(*host.Host) {
				s.named(host.KindPackage, "foo")
				s.named(host.KindPackage, "extra")
				s.stock.installed["foo"], s.stock.installed["extra"] = "2", "1"
			})
			did := s.restoreTwice()
			if len(did.Restored) != 2 || s.stock.installed["foo"] != "1" || s.stock.installed["extra"] != "" {
				t.Errorf("the summary is %+v; the installed packages are %v", did, s.stock.installed)
			}
		})
	}
}

// TestRefusedRemovalDoesNotBlockOthers has a package whose removal script refuses among those of one transaction.
func TestRefusedRemovalDoesNotBlockOthers(t *testing.T) {
	s := newScene(t)
	s.stock = newStock()
	s.stock.stays = "sudo"
	s.stock.needs["extra"] = "base"
	s.run("1", func(*host.Host) {
		for _, name := range []string{"base", "extra", "less", "sudo"} {
			s.named(host.KindPackage, name)
			s.stock.installed[name] = "1"
		}
	})
	did := s.back()
	if len(did.Failed) != 1 || did.Failed[0].Subject != "package sudo" || len(did.Restored) != 3 ||
		len(s.stock.installed) != 1 {
		t.Errorf("the summary is %+v; the installed packages are %v", did, s.stock.installed)
	}
}

// TestReasonsAreShownOnce has three packages with one reason.
func TestReasonsAreShownOnce(t *testing.T) {
	all := []undo.Left{{Subject: "package a", Why: "x"}, {Subject: "package b", Step: "s", Why: "x"},
		{Subject: "file c", Why: "y"}, {Subject: "package d", Why: "x"}}
	if got := undo.Lines(all); got != "package a, package b (s), package d: x; file c: y" {
		t.Errorf("the text is %q", got)
	}
}

// TestPackageManagerThatFails checks that the next restore retries the records.
func TestPackageManagerThatFails(t *testing.T) {
	s := newScene(t)
	s.stock = newStock()
	s.stock.installed["foo"], s.stock.offered["foo"] = "1", []string{"2", "1"}
	s.run("1", func(*host.Host) { s.named(host.KindPackage, "foo"); s.stock.installed["foo"] = "2" })
	s.stock.broken = true
	if did := s.back(); len(did.Failed) != 1 || !strings.Contains(did.Failed[0].String(),
		"package foo (some.state of 1): the package manager is broken") {
		t.Errorf("the summary is %+v", did)
	}
	s.stock.broken = false
	s.expect(s.restoreTwice(), []string{"package foo"})
}
