package linking_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/linking"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/serving"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// linksOfHost are the links of a host with base and the service shop, relative to /srv.
var linksOfHost = []string{"base", "service", "projects/shop/next", "projects/shop/current", "projects/shop/project",
	"projects/base/next", "projects/base/current", "projects/base/project"}

// host is a host whose releases are directories with a file that contains the version.
type host struct {
	*linking.Run
	t      *testing.T
	report *report.Report
}

// newHost returns a host without deploys.
func newHost(t *testing.T) *host {
	t.Helper()
	inspected := &inspect.Host{Records: records.Records{Site: site.Site{Layout: layout.At(t.TempDir())}}}
	rep, book := &report.Report{}, &ledger.Ledger{}
	record := report.Record(rep, inspected.Secrets())
	return &host{t: t, report: rep, Run: &linking.Run{Host: inspected, ID: "7", Ledger: book, Record: record,
		Serving: &serving.Run{Host: inspected, Ledger: book, Record: record}}}
}

// pair makes the directories of base and shop in one version, and returns the pair.
func (h *host) pair(version string) ledger.Pair {
	h.t.Helper()
	of := func(project string) artifact.Release {
		digest := artifact.NewDigest(sha256.Sum256([]byte(project + version)))
		r := artifact.Release{Project: project, Version: version, Digest: digest}
		h.write(filepath.Join(h.Host.LayoutOf(project).Release(r.Dir()), "version"), version)
		return r
	}
	base := of(artifact.Base)
	return ledger.Pair{Base: &base, Service: of("shop")}
}

func (h *host) write(path, content string) {
	h.t.Helper()
	h.must(os.MkdirAll(filepath.Dir(path), 0o755))
	h.must(os.WriteFile(path, []byte(content), 0o600))
}

func (h *host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// deploy moves the links to a pair as a deploy does, and records the pair in the ledger.
func (h *host) deploy(pair ledger.Pair) {
	h.t.Helper()
	before := map[string]link.Set{}
	for _, release := range pair.Releases() {
		set, err := h.Before(release.Project)
		h.must(err)
		before[release.Project] = set
	}
	h.must(h.SetAside(site.ProjectsOf(pair)))
	h.must(h.Link(pair))
	h.must(h.Promote(pair, before))
	if good := h.Ledger.Good; good != nil && !good.Same(pair) {
		h.Ledger.Previous = good
	}
	h.Ledger.Good = &pair
}

// at returns the path of a file below /srv.
func (h *host) at(name string) string { return h.Host.Layout.Path("/srv/" + name) }

// expect compares the versions to which the links of the service lead; "" for a missing link.
func (h *host) expect(next, current, previous string) {
	h.t.Helper()
	for name, want := range map[string]string{"next": next, "current": current, "previous": previous} {
		got, err := os.ReadFile(h.at("service/" + name + "/version"))
		if string(got) != want || (err == nil) != (want != "") {
			h.t.Errorf("%s leads to %q (%v), want %q", name, got, err, want)
		}
	}
}

// noted checks that the report of the run has a note.
func (h *host) noted(text string) {
	h.t.Helper()
	if notes := strings.Join(h.report.Notes, "\n"); !strings.Contains(notes, text) {
		h.t.Errorf("notes are %q, want %q in them", notes, text)
	}
}

// instead are the kinds of files that replace a link.
func instead() map[string]func(path string) error {
	return map[string]func(path string) error{
		"a directory": func(path string) error { return os.MkdirAll(filepath.Join(path, "of", "others"), 0o755) },
		"a file":      func(path string) error { return os.WriteFile(path, []byte("of others"), 0o600) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a socket": func(path string) error {
			return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0)
		},
	}
}

func TestLinksLeadToTheDeployedPair(t *testing.T) {
	h := newHost(t)
	first, second := h.pair("1"), h.pair("2")
	if h.Linked(first) {
		t.Error("a new host is linked")
	}
	h.deploy(first)
	h.expect("1", "1", "")
	h.deploy(second)
	h.expect("2", "2", "1")
	h.deploy(second)
	h.expect("2", "2", "1")
	if !h.Linked(second) || !h.Complete(second) || h.Linked(first) {
		t.Errorf("linked to 2: %t, complete: %t; to 1: %t", h.Linked(second), h.Complete(second), h.Linked(first))
	}
	for _, name := range linksOfHost {
		if target, err := os.Readlink(h.at(name)); err != nil || filepath.IsAbs(target) {
			t.Errorf("%s leads to %q, %v; want a relative link, which is right below any root", name, target, err)
		}
	}
	if len(h.report.Notes) > 0 {
		t.Errorf("notes are %q", h.report.Notes)
	}
}

// A lost or changed link makes the pair incomplete, and the next deploy of the pair repairs it.
func TestLostLinksAreFoundAndRepaired(t *testing.T) {
	for _, name := range append(linksOfHost, "projects/shop/previous", "projects/base/previous") {
		for what, target := range map[string]string{"lost": "", "elsewhere": "elsewhere", "a loop": filepath.Base(name)} {
			t.Run(name+" "+what, func(t *testing.T) {
				h := newHost(t)
				first, second := h.pair("1"), h.pair("2")
				h.deploy(first)
				h.deploy(second)
				h.must(os.Remove(h.at(name)))
				if target != "" {
					h.must(os.Symlink(target, h.at(name)))
				}
				if h.Complete(second) {
					t.Error("the links are complete")
				}
				h.deploy(second)
				h.PointPrevious(second)
				if h.expect("2", "2", "1"); !h.Complete(second) {
					t.Errorf("the links are not complete after a deploy; notes %q", h.report.Notes)
				}
			})
		}
	}
}

// Files of other kinds in place of links are renamed on a host with a deployed release, and keep their content.
func TestFilesInThePlaceOfLinksAreSetAside(t *testing.T) {
	for what, put := range instead() {
		for _, name := range append(linksOfHost, "projects/shop/previous") {
			t.Run(what+" "+name, func(t *testing.T) {
				h := newHost(t)
				first, second := h.pair("1"), h.pair("2")
				h.deploy(first)
				h.must(os.RemoveAll(h.at(name)))
				h.must(put(h.at(name)))
				put, err := os.Lstat(h.at(name))
				h.must(err)
				h.Test = true
				h.must(h.SetAside(site.ProjectsOf(second)))
				if now, err := os.Lstat(h.at(name)); err != nil || !os.SameFile(put, now) {
					t.Errorf("a dry run moved the file: %v", err)
				}
				h.Test = false
				h.must(h.SetAside(site.ProjectsOf(second)))
				h.deploy(second)
				h.expect("2", "2", "1")
				aside := h.at(name) + layout.DamagedMark + h.ID
				if now, err := os.Lstat(aside); err != nil || !os.SameFile(put, now) {
					t.Errorf("%s has other content than the replaced file: %v", aside, err)
				}
				h.noted("set aside as " + filepath.Base(aside))
			})
		}
	}
}

// A file in place of a project's directory is renamed, since it cannot contain releases.
func TestFilesInThePlaceOfAProjectAreSetAside(t *testing.T) {
	for what, put := range instead() {
		if what == "a directory" {
			continue
		}
		t.Run(what, func(t *testing.T) {
			h := newHost(t)
			h.must(os.MkdirAll(h.at("projects"), 0o755))
			h.must(put(h.at("projects/shop")))
			h.must(h.SetAside([]string{"shop"}))
			h.noted("/srv/projects/shop was not a directory; it was set aside as shop.damaged-7")
			pair := h.pair("1")
			h.deploy(pair)
			h.expect("1", "1", "")
		})
	}
}

// On a new host /srv/service may be a directory of a user, which stays.
func TestDirectoryOfAUserStays(t *testing.T) {
	h := newHost(t)
	h.write(h.at("service/of/others"), "x")
	if err := h.Link(h.pair("1")); err == nil || !strings.Contains(err.Error(), "is not a link: move it away") {
		t.Errorf("the error is %v", err)
	}
	if got, err := os.ReadFile(h.at("service/of/others")); string(got) != "x" {
		t.Errorf("the file of the user is %q, %v", got, err)
	}
}

// next may be changed while states run: the release that was converged is promoted.
func TestNextThatIsChangedDuringARun(t *testing.T) {
	h := newHost(t)
	first, second := h.pair("1"), h.pair("2")
	h.deploy(first)
	before := map[string]link.Set{}
	for change, to := range map[string]string{"removed": "", "moved": "releases/" + first.Service.Dir()} {
		h.report.Notes = nil
		set, err := h.Before("shop")
		h.must(err)
		before["shop"] = set
		h.must(h.Link(second))
		h.must(os.Remove(h.at("projects/shop/next")))
		if to != "" {
			h.must(os.Symlink(to, h.at("projects/shop/next")))
		}
		h.must(h.Promote(second, before))
		h.expect("2", "2", "1")
		if h.noted("next of shop was changed during the run"); t.Failed() {
			t.Fatalf("next was %s", change)
		}
		h.must(h.Link(first))
		h.must(h.Restore(t.Context(), before))
		h.expect("1", "1", "")
	}
}

// A rollback restores the earlier links, and uses the deployed release in place of a lost one.
func TestRollbackToLinksWhoseReleaseIsLost(t *testing.T) {
	lose := map[string]func(dir string) error{
		"removed":         os.RemoveAll,
		"a file":          func(dir string) error { _ = os.RemoveAll(dir); return os.WriteFile(dir, nil, 0o600) },
		"a pipe":          func(dir string) error { _ = os.RemoveAll(dir); return syscall.Mkfifo(dir, 0o600) },
		"a dangling link": func(dir string) error { _ = os.RemoveAll(dir); return os.Symlink("nowhere", dir) },
		"a loop":          func(dir string) error { _ = os.RemoveAll(dir); return os.Symlink(filepath.Base(dir), dir) },
	}
	for what, lose := range lose {
		t.Run(what, func(t *testing.T) {
			h := newHost(t)
			first, second, third := h.pair("1"), h.pair("2"), h.pair("3")
			h.deploy(first)
			h.deploy(second)
			before := map[string]link.Set{}
			for _, project := range []string{"base", "shop"} {
				set, err := h.Before(project)
				h.must(err)
				before[project] = set
			}
			h.must(h.Link(third))
			h.must(lose(h.Host.LayoutOf("shop").Release(first.Service.Dir())))
			h.must(h.Restore(t.Context(), before))
			h.expect("2", "2", "")
			h.noted("the releases that previous of shop led to are missing on the disk")
			if h.PreviousDir(second.Service) != "" {
				t.Error("a release that is not on the disk counts as the previous one")
			}
			if h.PointPrevious(second); !h.Complete(second) {
				t.Errorf("the links are not complete: %q", h.report.Notes)
			}
		})
	}
}

// A deploy without a link current makes it lead to the deployed release first, as the target of a rollback.
func TestLostCurrentIsRestoredBeforeADeploy(t *testing.T) {
	h := newHost(t)
	first := h.pair("1")
	h.deploy(first)
	for _, name := range []string{"next", "current"} {
		h.must(os.Remove(h.at("projects/shop/" + name)))
	}
	set, err := h.Before("shop")
	if h.must(err); set.Current != first.Service.Dir() {
		t.Errorf("current is %q", set.Current)
	}
	h.must(h.Restore(t.Context(), map[string]link.Set{"shop": set}))
	h.expect("1", "1", "")
	links, err := h.Of(first)
	if h.must(err); links["shop"].Current != first.Service.Dir() || links["shop"].Previous != "" {
		t.Errorf("the links after a rollback are %+v", links)
	}
}

// The link previous leads to the release that was deployed before, whatever a person made current lead to meanwhile.
func TestPreviousIsTheDeployedReleaseIfCurrentWasChanged(t *testing.T) {
	h := newHost(t)
	first, second, third := h.pair("1"), h.pair("2"), h.pair("3")
	for what, to := range map[string]string{"outside": "/tmp", "to an older one": "releases/" + first.Service.Dir()} {
		h.deploy(first)
		h.deploy(second)
		h.must(os.Remove(h.at("projects/shop/current")))
		h.must(os.Symlink(to, h.at("projects/shop/current")))
		h.deploy(third)
		if h.expect("3", "3", "2"); t.Failed() || !h.Complete(third) {
			t.Fatalf("current led %s", what)
		}
	}
}

// Links in an unreadable directory are an error, and the host does not count as new.
func TestUnreadableProjectIsAnError(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read every directory")
	}
	h := newHost(t)
	first := h.pair("1")
	h.deploy(first)
	dir := h.Host.LayoutOf("shop").Dir
	h.must(os.Chmod(dir, 0))
	t.Cleanup(func() { h.must(os.Chmod(dir, 0o755)) }) // so that the directory can be removed
	if h.Linked(first) || h.Complete(first) {
		t.Error("a pair with unreadable links counts as linked")
	}
	if _, err := h.Before("shop"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the links before a deploy: %v", err)
	}
	if _, err := h.Of(first); err == nil {
		t.Error("the links after a rollback are returned, although they cannot be read")
	}
	if err := h.Link(first); err == nil {
		t.Error("links were moved in a directory that cannot be read")
	}
}
