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

// foreseeing is a run that is told of what comes, has changed a file, and made what the names say.
func (l *lab) foreseeing(made ...string) (*host.Host, *journal.Recorder) {
	l.t.Helper()
	h, r := l.start("1")
	if err := os.WriteFile(filepath.Join(l.root, "etc/there"), []byte("old"), 0o644); err != nil {
		l.t.Fatal(err)
	}
	r.Ahead(func() []journal.Coming {
		return []journal.Coming{{Step: "file.managed b", Path: "/etc/dir/b"}, {Step: "file.managed c", Path: "/etc/c"}, {Step: "file.managed there", Path: "/etc/there"}}
	})
	l.write(h, "/etc/a", "a")
	for _, name := range made {
		l.write(h, name, "made")
	}
	return h, r
}

func (l *lab) named() string {
	l.t.Helper()
	var all []string
	for _, r := range l.chapters()[0].Records {
		if r.Before.Part(r.Subject.Name).Type != image.Absent {
			l.t.Errorf("%s is said to have been %+v", r.Subject, r.Before)
		}
		all = append(all, r.Subject.Name)
	}
	return strings.Join(all, " ")
}

// TestWhatComesIsKnownBeforeItIsMade: a run that is killed need not have said that it made what it had said
// to come. What it did not come to make is none of its own.
func TestWhatComesIsKnownBeforeItIsMade(t *testing.T) {
	l := newLab(t)
	h, _ := l.foreseeing("/etc/dir/b")
	if err := journal.Settle(l.journal, l.chapters()[0], h); err != nil {
		t.Fatal(err)
	}
	if got := l.named(); got != "/etc/a /etc/dir /etc/dir/b" {
		t.Errorf("recorded are %s", got)
	}
	for _, r := range l.chapters()[0].Records[1:] {
		if r.Step != "file.managed b" || r.Run != "1" || r.After == nil || r.After.Part(r.Subject.Name).Type == image.Absent {
			t.Errorf("%s is recorded for %q of run %s, after it %+v", r.Subject, r.Step, r.Run, r.After)
		}
	}
	if err := os.WriteFile(filepath.Join(l.root, "etc/c"), []byte("somebody's own"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := journal.Settle(l.journal, l.chapters()[0], h); err != nil {
		t.Fatal(err)
	}
	if got := l.named(); strings.Contains(got, "/etc/c") {
		t.Errorf("what somebody made after the cut is recorded: %s", got)
	}
}

// TestWhatDoesNotComeLeavesNothing: of a run that ended well only what it made is known.
func TestWhatDoesNotComeLeavesNothing(t *testing.T) {
	l := newLab(t)
	h, r := l.foreseeing("/etc/c")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(l.root, "etc/dir"), 0o755), journal.Settle(l.journal, l.chapters()[0], h)); err != nil {
		t.Fatal(err)
	}
	if got := l.named(); got != "/etc/a /etc/c" {
		t.Errorf("recorded are %s", got)
	}
	dirs, err := l.journal.Dirs()
	if err != nil || strings.Join(dirs, " ") != "/etc" {
		t.Errorf("directories are %q, %v", dirs, err)
	}
}
