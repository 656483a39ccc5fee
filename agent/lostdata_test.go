package agent_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
)

// A lost data directory is created again, and the run reports that its content is lost.
func TestLostDataIsReported(t *testing.T) {
	for _, next := range []string{"nothing new", "a new release"} {
		t.Run(next, func(t *testing.T) {
			l := newLab(t)
			l.publish("1")
			l.expect(exit.OK)
			data := l.Layout.Project("myapp").Data()
			if err := os.RemoveAll(data); err != nil {
				t.Fatal(err)
			}
			if s, err := l.Status(); err != nil || len(s.Drift) != 1 ||
				!strings.Contains(s.Drift[0], "/srv/projects/myapp/data is gone") {
				t.Errorf("drift is %q, %v", s.Drift, err)
			}
			if next == "a new release" {
				l.publish("2")
			}
			noted(t, l.expect(exit.OK), "/srv/projects/myapp/data is gone, and with it all that myapp kept there; a new, "+
				"empty one is created")
			if info, err := os.Stat(data); err != nil || !info.IsDir() {
				t.Errorf("the directory was not made again: %v", err)
			}
			if r := l.expect(exit.OK); len(r.Notes) > 1 || strings.Contains(strings.Join(r.Notes, ""), "data") {
				t.Errorf("the next run has the notes %q", r.Notes)
			}
		})
	}
}

// The releases of a project may be behind a link, for example to another disk, and a closed directory is opened again.
func TestLinkedAndClosedReleaseDirectoriesDeploy(t *testing.T) {
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	releases := l.Layout.Project("myapp").Releases()
	if err := errors.Join(os.Rename(releases, releases+".elsewhere"),
		os.Symlink("releases.elsewhere", releases)); err != nil {
		t.Fatal(err)
	}
	l.publish("2")
	l.expect(exit.OK)
	l.links("2", "2", "1")
	if os.Geteuid() != 0 {
		return // another user could not read the directory that is opened
	}
	if err := os.Chmod(l.Layout.Projects(), 0); err != nil {
		t.Fatal(err)
	}
	noted(t, l.expect(exit.OK), "/srv/projects had mode 0000; it has mode 0755 again")
}

// why gives no advice about a failed run after later runs have succeeded.
func TestWhyOmitsAdviceForResolvedFailures(t *testing.T) {
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.store = storetest.NewFaulty(l.repo.Store, storetest.Fault{Err: store.ErrUnreachable})
	failed := l.expect(exit.Unreachable)
	if w, err := l.Why(); err != nil || w.Settled || w.FailedIn != failed.ID ||
		!strings.Contains(strings.Join(w.Next, "\n"), failed.Hint) {
		t.Errorf("while the store is down: %+v, %v", w, err)
	}
	l.store = l.repo.Store
	l.expect(exit.OK)
	if w, err := l.Why(); err != nil || !w.Settled || w.FailedIn != failed.ID || len(w.Next) != 0 {
		t.Errorf("after the store is back: settled %t, failed in %s, next %q, %v", w.Settled, w.FailedIn, w.Next, err)
	}
}

// TestWhyShowsTheFailureWhateverTheClockWas has a clock that was ahead at the deploy and is right at the failed run.
func TestWhyShowsTheFailureWhateverTheClockWas(t *testing.T) {
	l := newLab(t)
	l.publish("1")
	l.Now = func() time.Time { return time.Now().Add(time.Hour) }
	l.expect(exit.OK)
	l.Now = nil
	l.store = storetest.NewFaulty(l.repo.Store, storetest.Fault{Err: store.ErrUnreachable})
	failed := l.expect(exit.Unreachable)
	if w, err := l.Why(); err != nil || w.FailedIn != failed.ID {
		t.Errorf("failed in %q, want %s, %v", w.FailedIn, failed.ID, err)
	}
}
