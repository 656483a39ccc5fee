package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// startWithPlan starts a run with a plan, which changes a file and then creates the files made.
func (l *lab) startWithPlan(made ...string) (*host.Host, *journal.Recorder) {
	l.t.Helper()
	h, r := l.start("1")
	if err := os.WriteFile(filepath.Join(l.root, "etc/there"), []byte("old"), 0o644); err != nil {
		l.t.Fatal(err)
	}
	r.SetPlan(func() []journal.Planned {
		return []journal.Planned{{Step: "file.managed b", Path: "/etc/dir/b"}, {Step: "file.managed c", Path: "/etc/c"},
			{Step: "file.managed there", Path: "/etc/there"}}
	})
	l.write(h, "/etc/a", "a")
	for _, name := range made {
		l.write(h, name, "made")
	}
	return h, r
}

func (l *lab) recorded() string {
	l.t.Helper()
	var all []string
	for _, r := range l.chapters()[0].Records {
		if r.Before.Part(r.Subject.Name).Type != image.Absent {
			l.t.Errorf("%s has the before-image %+v, want none", r.Subject, r.Before)
		}
		all = append(all, r.Subject.Name)
	}
	return strings.Join(all, " ")
}

// TestSettleRecordsPlannedPaths checks that Settle records the planned paths that a killed run created, and no others.
func TestSettleRecordsPlannedPaths(t *testing.T) {
	l := newLab(t)
	h, _ := l.startWithPlan("/etc/dir/b")
	if err := journal.Settle(l.journal, l.chapters()[0], h); err != nil {
		t.Fatal(err)
	}
	if got := l.recorded(); got != "/etc/a /etc/dir /etc/dir/b" {
		t.Errorf("the records are %s", got)
	}
	for _, r := range l.chapters()[0].Records[1:] {
		if r.Step != "file.managed b" || r.Run != "1" || r.After == nil || r.After.Part(r.Subject.Name).Type == image.Absent {
			t.Errorf("%s has a record of step %q in run %s with the after-image %+v", r.Subject, r.Step, r.Run, r.After)
		}
	}
	if err := os.WriteFile(filepath.Join(l.root, "etc/c"), []byte("of a user"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := journal.Settle(l.journal, l.chapters()[0], h); err != nil {
		t.Fatal(err)
	}
	if got := l.recorded(); strings.Contains(got, "/etc/c") {
		t.Errorf("a file created after the interruption is recorded: %s", got)
	}
}

// TestPlannedPathsOfACompleteRun checks that a run that ended has records only of the paths that it created.
func TestPlannedPathsOfACompleteRun(t *testing.T) {
	l := newLab(t)
	h, r := l.startWithPlan("/etc/c")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(l.root, "etc/dir"), 0o755),
		journal.Settle(l.journal, l.chapters()[0], h)); err != nil {
		t.Fatal(err)
	}
	if got := l.recorded(); got != "/etc/a /etc/c" {
		t.Errorf("the records are %s", got)
	}
	dirs, err := l.journal.Dirs()
	if err != nil || strings.Join(dirs, " ") != "/etc" {
		t.Errorf("directories are %q, %v", dirs, err)
	}
}

// TestPlannedPathsWithSecretsAreNotShown checks that the journal has a redacted form of a planned path with a secret,
// also after the run was killed.
func TestPlannedPathsWithSecretsAreNotShown(t *testing.T) {
	l := newLab(t)
	h, r := l.start("1")
	r.Hide(func(text string) string { return strings.ReplaceAll(text, "dir/b", "<secret>") })
	r.SetPlan(func() []journal.Planned { return []journal.Planned{{Step: "file.managed b", Path: "/etc/dir/b"}} })
	l.write(h, "/etc/a", "a")
	l.write(h, "/etc/dir/b", "made")
	if err := journal.Settle(l.journal, l.chapters()[0], h); err != nil {
		t.Fatal(err)
	}
	if got := l.recorded(); got != "/etc/a /etc/dir /etc/dir/b" {
		t.Errorf("the records are %s", got)
	}
	if got := journal.Redactor(l.chapters())("file /etc/dir/b of /etc/dir"); got != "file /etc/<secret> of /etc/dir" {
		t.Errorf("what is shown is %s", got)
	}
}
