package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/journal"
)

const ann = 64001

// redirect puts a link of ann's in the place of the directory d in ann's home, which leads to a directory of root.
func (l *lab) redirect() {
	l.t.Helper()
	d := filepath.Join(l.root, "home/ann/d")
	if err := errors.Join(os.MkdirAll(filepath.Dir(d), 0o755), os.RemoveAll(d), os.Symlink("../../etc", d),
		os.Lchown(filepath.Dir(d), ann, ann), os.Lchown(d, ann, ann)); err != nil {
		l.t.Fatal(err)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of several users")
	}
}

// TestLinkAtPlannedPathDoesNotFailAnEarlierStep checks that a link of another user at the path of a later step causes
// no error of the step that runs, and that an error remains for the step itself.
func TestLinkAtPlannedPathDoesNotFailAnEarlierStep(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	l.redirect()
	h, r := l.start("1")
	r.SetPlan(func() []journal.Planned {
		return []journal.Planned{{Step: "file.managed f", Path: "/home/ann/d/f"}, {Step: "file.managed c", Path: "/etc/c"}}
	})
	mark := h.Mark()
	l.write(h, "/etc/a", "a")
	if err := h.MachineErrorSince(mark); err != nil {
		t.Errorf("the step that writes /etc/a has the error %v", err)
	}
	if err := h.WriteText("/home/ann/d/f", "f"); err == nil || h.MachineErrorSince(mark) == nil {
		t.Errorf("the step that writes /home/ann/d/f has the error %v", err)
	}
	l.write(h, "/etc/c", "c")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range l.chapters()[0].Records {
		got += " " + r.Subject.Name
	}
	if got != " /etc/a /home/ann/d/f /etc/c" {
		t.Errorf("the records are %s", got)
	}
}

// TestLinkAtChangedPathDoesNotFailALaterStep checks that a link that a user puts at the path of a step after its end
// causes no error of the step that runs while the after-image is taken.
func TestLinkAtChangedPathDoesNotFailALaterStep(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	h, r := l.start("1")
	if err := os.MkdirAll(filepath.Join(l.root, "home/ann/d"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.write(h, "/home/ann/d/f", "f")
	l.redirect()
	mark := h.Mark()
	if err := errors.Join(r.Settle(), r.Close()); err != nil {
		t.Fatal(err)
	}
	if err := h.MachineErrorSince(mark); err != nil {
		t.Errorf("the later step has the error %v", err)
	}
}

// TestSettleKeepsARefusedPlannedPath checks that a link at a path that a killed run may have created does not prevent
// the next run, and that the path has a record.
func TestSettleKeepsARefusedPlannedPath(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	h, r := l.start("1")
	r.SetPlan(func() []journal.Planned {
		return []journal.Planned{{Step: "file.managed f", Path: "/home/ann/d/f"}}
	})
	l.write(h, "/etc/a", "a")
	l.redirect()
	if err := journal.Settle(l.journal, l.chapters()[0], h); err != nil {
		t.Fatal(err)
	}
	if got := l.recorded(); got != "/etc/a /home /home/ann /home/ann/d /home/ann/d/f" {
		t.Errorf("the records are %s", got)
	}
}
