package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOrchestrateKeepsReportsOnlyWhereNoOtherUserCanChangeThem checks that reports are written to a directory behind a
// link of the user, and not to a directory that another user can replace; the run continues without them.
func TestOrchestrateKeepsReportsOnlyWhereNoOtherUserCanChangeThem(t *testing.T) {
	plan := []string{"shop", "--set", "service_instance=testing", "--test"}
	reports := func(dir string) int {
		found, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for _, c := range []struct {
		name, link string // below the directory of the test
		mode       os.FileMode
		refused    bool
	}{
		{name: "a link of the user", link: "state", mode: 0o700},
		{name: "a link below the directory", link: "state/corpus", mode: 0o700},
		{name: "the directory itself is a link", link: "state/corpus/orchestrate", mode: 0o700},
		{name: "a link to where others may write", link: "state", mode: 0o777, refused: true},
		{name: "a link below the directory, to a world-writable directory", link: "state/corpus", mode: 0o777, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOrchestrator(t, tree())
			elsewhere, link := filepath.Join(o.dir, "elsewhere"), filepath.Join(o.dir, c.link)
			if err := os.MkdirAll(elsewhere, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(elsewhere, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, link); err != nil {
				t.Fatal(err)
			}
			out, errs := o.run(0, plan...)
			n := reports(filepath.Join(o.dir, "state/corpus/orchestrate"))
			if !strings.Contains(out, "2 to make") || c.refused != (n == 0) {
				t.Errorf("%d reports are kept after %s%s", n, out, errs)
			}
			if hasHint := strings.Contains(errs, "the report could not be kept: "+o.dir) && strings.Contains(errs,
				" can change "+elsewhere) && strings.Contains(errs, "hint: set XDG_STATE_HOME"); hasHint != c.refused {
				t.Errorf("the error output is %s", errs)
			}
		})
	}
}

// TestOrchestrateSaysThatNoReportIsKept runs without a directory for reports.
func TestOrchestrateSaysThatNoReportIsKept(t *testing.T) {
	o := newOrchestrator(t, tree())
	o.state = "relative"
	_, errs := o.run(0, "shop", "--set", "service_instance=testing", "--test")
	if !strings.Contains(errs, "no report is kept: ") {
		t.Errorf("the error output is %s", errs)
	}
}

// TestOrchestrateRemovesOnlyReports checks that other files in the directory of reports stay.
func TestOrchestrateRemovesOnlyReports(t *testing.T) {
	o := newOrchestrator(t, tree())
	dir := filepath.Join(o.dir, "state/corpus/orchestrate")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("000-notes.json")
	for i := range keptReports {
		write("20200101T000000.000000" + string([]byte{byte('0' + i/100), byte('0' + i/10%10), byte('0' + i%10)}) + "Z.json")
	}
	o.run(0, "shop", "--set", "service_instance=testing", "--test")
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != keptReports+1 || left[0].Name() != "000-notes.json" || !strings.Contains(left[1].Name(), "000001Z") {
		t.Errorf("%d files remain, the first are %s and %s", len(left), left[0].Name(), left[1].Name())
	}
}
