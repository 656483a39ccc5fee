package retention_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/retention"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/grains"
)

// newRun returns a run on a host without deploys, on which each release counts as failed.
func newRun(t *testing.T) (*retention.Run, *report.Report) {
	t.Helper()
	host := &inspect.Host{Records: records.Records{Site: site.Site{Layout: layout.At(t.TempDir())}}}
	host.Config.KeepReleases, host.Config.KeepFailed = 2, 1
	rep := &report.Report{}
	return &retention.Run{
		Host: host, ID: "7", Ledger: &ledger.Ledger{}, Record: report.Record(rep, host.Secrets()),
		Identity: &grains.Identity{Service: "shop"}, FailedBefore: func(artifact.Release) bool { return true },
	}, rep
}

// unpacked returns a release of shop, and its directory with one file. A lower version has an older directory.
func unpacked(t *testing.T, r *retention.Run, version int) (artifact.Release, string) {
	t.Helper()
	name := fmt.Sprint(version)
	release := artifact.Release{Project: "shop", Version: name, Digest: artifact.NewDigest(sha256.Sum256([]byte(name)))}
	dir := r.Host.LayoutOf("shop").Release(release.Dir())
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "version"), []byte(name), 0o600))
	at := time.Now().Add(time.Duration(version-100) * time.Hour)
	must(t, os.Chtimes(dir, at, at))
	return release, dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// A release of a link or of the ledger is never removed, regardless of its age and of the number of newer ones.
func TestReleasesInUseStay(t *testing.T) {
	r, _ := newRun(t)
	current, currentDir := unpacked(t, r, 1)
	deployed, deployedDir := unpacked(t, r, 2)
	var newer []string
	for version := 3; version <= 5; version++ {
		_, dir := unpacked(t, r, version)
		newer = append(newer, dir)
	}
	must(t, link.Of(r.Host.LayoutOf("shop")).SetCurrent(current.Dir()))
	r.Ledger.Good = &ledger.Pair{Service: deployed}
	must(t, r.Prune(t.Context()))
	if !exists(currentDir) || !exists(deployedDir) {
		t.Errorf("the release of the link exists: %t, that of the ledger: %t", exists(currentDir), exists(deployedDir))
	}
	if exists(newer[0]) {
		t.Error("nothing was removed")
	}
	if !r.IsUsed(r.Host.LayoutOf("shop"), "x", link.Set{Previous: "x"}) {
		t.Error("the release of the link previous is not in use")
	}
}

// If a file of another kind replaces a link, no release of the project is removed, since each may be in use.
func TestNothingIsRemovedBelowReplacedLinks(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a file":      func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			r, _ := newRun(t)
			var dirs []string
			for version := range 6 {
				_, dir := unpacked(t, r, version)
				dirs = append(dirs, dir)
			}
			must(t, put(filepath.Join(r.Host.LayoutOf("shop").Dir, "current")))
			must(t, r.Prune(t.Context()))
			for _, dir := range dirs {
				if !exists(dir) {
					t.Errorf("%s was removed", dir)
				}
			}
		})
	}
}

// A failed release is moved into the archive of its run, unless a link leads to it.
func TestFailedReleaseIsArchived(t *testing.T) {
	r, rep := newRun(t)
	failed, dir := unpacked(t, r, 1)
	links := link.Of(r.Host.LayoutOf("shop"))
	must(t, links.SetCurrent(failed.Dir()))
	if r.KeepFailed(ledger.Pair{Service: failed}); !exists(dir) || len(r.Archives) > 0 {
		t.Errorf("the release of a link was moved to %q", r.Archives)
	}
	must(t, links.Restore(link.Set{}))
	r.KeepFailed(ledger.Pair{Service: failed})
	archive := filepath.Join(r.Host.LayoutOf("shop").Archives(), "7")
	if got, err := os.ReadFile(filepath.Join(archive, layout.FailedTree, "version")); string(got) != "1" || exists(dir) {
		t.Errorf("the archive has %q, %v; the release still exists: %t", got, err, exists(dir))
	}
	if len(r.Archives) != 1 || r.Archives[0] != archive || len(rep.Notes) > 0 {
		t.Errorf("archives are %q, notes %q", r.Archives, rep.Notes)
	}
}

// A failed release stays, with a note, if its archive cannot be made.
func TestFailedReleaseStaysWithoutAnArchive(t *testing.T) {
	r, rep := newRun(t)
	failed, dir := unpacked(t, r, 1)
	must(t, os.WriteFile(r.Host.LayoutOf("shop").Archives(), nil, 0o600))
	r.KeepFailed(ledger.Pair{Service: failed})
	if notes := strings.Join(rep.Notes, "\n"); !exists(dir) || !strings.Contains(notes, "stays under releases") {
		t.Errorf("the release exists: %t, notes %q", exists(dir), notes)
	}
}

// Temporary files of a killed run are removed, and its archive gets a report.
func TestLeftoversOfAKilledRunAreRemoved(t *testing.T) {
	r, rep := newRun(t)
	_, dir := unpacked(t, r, 1)
	temporary := filepath.Join(r.Host.LayoutOf("shop").Releases(), ".corpus-tmp-1")
	tree := filepath.Join(r.Host.LayoutOf("shop").Archives(), "6", layout.FailedTree)
	must(t, os.MkdirAll(filepath.Join(temporary, "data"), 0o755))
	must(t, os.MkdirAll(tree, 0o755))
	must(t, r.Sweep(t.Context()))
	if exists(temporary) || !exists(dir) || !exists(tree) {
		t.Errorf("the temporary files exist: %t, the release: %t, the archive: %t", exists(temporary), exists(dir),
			exists(tree))
	}
	if notes := strings.Join(rep.Notes, "\n"); len(r.Archives) != 1 || !strings.Contains(notes, "was interrupted") {
		t.Errorf("archives are %q, notes %q", r.Archives, notes)
	}
}
