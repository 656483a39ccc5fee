package link_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/link"
)

// project returns a project with releases a, b and c, and its root.
func project(t *testing.T) (p layout.Project, root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "root")
	p = layout.At(root).Project("myapp")
	for _, name := range []string{"a", "b", "c"} {
		if err := os.MkdirAll(p.Release(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p, root
}

func check(t *testing.T, l link.Links, want link.Set) {
	t.Helper()
	got, err := l.Read()
	if err != nil || got != want {
		t.Errorf("links are %+v, %v, want %+v", got, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFirstNextIsCurrentTooSinceUnitsStartFromIt(t *testing.T) {
	p, _ := project(t)
	l := link.Of(p)
	check(t, l, link.Set{})
	must(t, l.SetNext("a"))
	check(t, l, link.Set{Next: "a", Current: "a"})
	must(t, l.SetNext("b"))
	check(t, l, link.Set{Next: "b", Current: "a"})
	if target, err := os.Readlink(filepath.Join(p.Dir, "project")); err != nil || target != "current" {
		t.Errorf("project leads to %q, %v", target, err)
	}
}

// TestMissingProjectLinkIsCreated checks a first deploy that was interrupted between two links.
func TestMissingProjectLinkIsCreated(t *testing.T) {
	p, _ := project(t)
	l := link.Of(p)
	must(t, l.SetNext("a"))
	must(t, os.Remove(filepath.Join(p.Dir, "project")))
	must(t, l.SetNext("a"))
	if target, err := os.Readlink(filepath.Join(p.Dir, "project")); err != nil || target != "current" {
		t.Errorf("project leads to %q, %v", target, err)
	}
}

// TestPreviousNeverEqualsCurrent promotes what was current already, after a rollback that was interrupted
//
//	between two links.
func TestPreviousNeverEqualsCurrent(t *testing.T) {
	p, _ := project(t)
	l := link.Of(p)
	must(t, l.SetNext("a"))
	must(t, l.SetNext("b"))
	must(t, l.Promote("b", link.Set{Current: "a"}))
	before, err := l.Read()
	must(t, err)
	must(t, l.Promote("a", before))
	must(t, l.SetNext("b"))
	must(t, l.Promote("b", before))
	check(t, l, link.Set{Next: "b", Current: "b", Previous: "a"})
}

func TestPromoteTwiceIsPromoteOnce(t *testing.T) {
	p, _ := project(t)
	l := link.Of(p)
	must(t, l.SetNext("a"))
	must(t, l.SetNext("b"))
	for range 2 {
		must(t, l.Promote("b", link.Set{Current: "a"}))
		check(t, l, link.Set{Next: "b", Current: "b", Previous: "a"})
	}
	must(t, l.Promote("b", link.Set{Current: "b", Previous: "a"}))
	check(t, l, link.Set{Next: "b", Current: "b", Previous: "a"})
}

func TestRestoreRestoresAndRemovesLinks(t *testing.T) {
	p, _ := project(t)
	l := link.Of(p)
	must(t, l.SetNext("a"))
	before, err := l.Read()
	must(t, err)
	must(t, l.SetNext("b"))
	must(t, l.Promote("b", link.Set{Current: "a"}))
	must(t, l.Restore(before))
	check(t, l, before)
	must(t, l.Restore(link.Set{}))
	check(t, l, link.Set{})
	if _, err := os.Lstat(filepath.Join(p.Dir, "project")); !os.IsNotExist(err) {
		t.Errorf("the project link still exists: %v", err)
	}
}

func TestLinksAreRelative(t *testing.T) {
	p, root := project(t)
	must(t, link.Of(p).SetNext("a"))
	must(t, os.Rename(root, root+"-moved"))
	if _, err := os.Stat(root + "-moved/srv/projects/myapp/next"); err != nil {
		t.Errorf("in a tree that was moved: %v", err)
	}
}

func TestLinkToMissingReleaseIsRefused(t *testing.T) {
	p, _ := project(t)
	l := link.Of(p)
	must(t, l.SetNext("a"))
	if err := l.SetNext("absent"); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("error is %v", err)
	}
	check(t, l, link.Set{Next: "a", Current: "a"})
}

func TestNameDoesNotReplaceADirectory(t *testing.T) {
	p, root := project(t)
	name := filepath.Join(root, "srv/service")
	for range 2 {
		must(t, link.Name(name, p))
	}
	if target, err := os.Readlink(name); err != nil || target != "projects/myapp" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	must(t, os.Remove(name))
	must(t, os.MkdirAll(filepath.Join(name, "data"), 0o755))
	if err := link.Name(name, p); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Stat(filepath.Join(name, "data")); err != nil {
		t.Error(err)
	}
}

// TestPromoteDropsMissingPrevious makes a release current after a person removed the directories of the earlier ones.
func TestPromoteDropsMissingPrevious(t *testing.T) {
	p, _ := project(t)
	l := link.Of(p)
	must(t, l.SetNext("a"))
	must(t, l.SetNext("b"))
	must(t, l.Promote("b", link.Set{Next: "a", Current: "a"}))
	must(t, l.SetNext("c"))
	must(t, os.RemoveAll(p.Release("b")))
	must(t, l.Promote("c", link.Set{Next: "b", Current: "b", Previous: "a"}))
	check(t, l, link.Set{Next: "c", Current: "c", Previous: "a"})
	must(t, os.RemoveAll(p.Release("a")))
	must(t, l.Promote("c", link.Set{Next: "b", Current: "b", Previous: "a"}))
	check(t, l, link.Set{Next: "c", Current: "c"})
}
