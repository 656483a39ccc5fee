package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
)

// forge changes code of the current release and removes its list of files, which would show the change.
func (l *lab) forge() (top string) {
	l.t.Helper()
	must(l.t, os.RemoveAll(l.Layout.Trees("myapp")))
	top, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current/salt/config/states/top.sls"))
	must(l.t, err)
	must(l.t, os.Chmod(top, 0o644))
	must(l.t, os.WriteFile(top, []byte("evil: {}"), 0o644))
	return top
}

// TestReleaseWithoutItsListIsFetchedAgain checks a release without its list, with changed code.
func TestReleaseWithoutItsListIsFetchedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	top := l.forge()
	convergesBefore := len(l.engine.converged)
	if _, err := l.Converge(context.Background(), false); exit.Code(err) != exit.Refused ||
		!strings.Contains(err.Error(), "list of the files of myapp 1") {
		t.Errorf("without a store: %v, want the release refused", err)
	}
	working := l.store
	l.store = storetest.NewFaulty(l.repo.Store, storetest.Fault{Err: store.ErrUnreachable})
	for range 2 {
		if r := l.expect(exit.Refused); !strings.Contains(r.Error, "list of the files of myapp 1") {
			t.Errorf("while the store is down, the error is %q", r.Error)
		}
	}
	if len(l.engine.converged) != convergesBefore {
		t.Errorf("converged %q although the release cannot be verified", l.engine.converged[convergesBefore:])
	}
	l.store = working
	noted(t, l.expect(exit.OK), "the list of the files of myapp 1 was lost or damaged; it was fetched again")
	if data, err := os.ReadFile(top); err != nil || string(data) != "base: {}" {
		t.Errorf("the top file is %q, %v", data, err)
	}
	if _, err := l.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if r := l.expect(exit.OK); len(r.Notes) != 0 {
		t.Errorf("the next run has the notes %q", r.Notes)
	}
}

// TestLostFileListKeepsIntactRelease removes the list of a release whose files are unchanged.
func TestLostFileListKeepsIntactRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	dir, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
	must(t, err)
	before, err := os.Stat(dir)
	must(t, err)
	must(t, os.RemoveAll(l.Layout.Trees("myapp")))
	l.expect(exit.OK)
	if after, err := os.Stat(dir); err != nil || !os.SameFile(before, after) {
		t.Errorf("the directory was replaced: %v", err)
	}
	if _, err := l.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestProgramWithAnotherContentIsFetchedAgain has converges fail while a program of the release cannot be run.
func TestProgramWithAnotherContentIsFetchedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", large("1"))
	l.expect(exit.OK)
	program, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current/salt/config/states/top.sls"))
	must(t, err)
	program = filepath.Join(filepath.Dir(program), "../../../bin/run")
	info, err := os.Stat(program)
	must(t, err)
	l.engine.fails = func(string) error {
		if now, err := os.Stat(program); err != nil || now.Size() != info.Size() {
			return exit.WithCode(exit.Failed, errors.New("start of myapp.service failed"))
		}
		return nil
	}
	for range 2 {
		must(t, errors.Join(os.Chmod(program, 0o755), os.Truncate(program, 0), os.Chmod(program, info.Mode())))
		noted(t, l.expect(exit.OK), "bin/run has 0 bytes")
	}
	aside, err := filepath.Glob(filepath.Join(l.Layout.Project("myapp").Releases(), ".*.damaged-*"))
	if err != nil || len(aside) != 1 {
		t.Errorf("the releases set aside are %q, %v; want the last one alone", aside, err)
	}
}

// TestUnreadableReleaseModesAreRestored removes the read bits of group and others, as a copy with umask 077 does: a
// service that runs as another user cannot start.
func TestUnreadableReleaseModesAreRestored(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"data/large", "bin/run", "data"} {
		l := newLab(t)
		l.repo.Release("myapp", "1", "testing", large("1"))
		l.expect(exit.OK)
		dir, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
		must(t, err)
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		must(t, err)
		waitForFileTimes(t)
		must(t, os.Chmod(path, info.Mode()&^0o077))
		audits, err := l.Verify(t.Context())
		if exit.Code(err) != exit.Refused || len(audits) != 1 || len(audits[0].Changes) != 1 ||
			audits[0].Changes[0].Name != name {
			t.Errorf("verify reports for %s %+v, %v", name, audits, err)
		}
		l.engine.fails = func(string) error {
			if now, err := os.Stat(path); err != nil || now.Mode() != info.Mode() {
				return exit.WithCode(exit.Failed, errors.New("start of myapp.service failed"))
			}
			return nil
		}
		noted(t, l.expect(exit.OK), name+" of myapp 1 has mode")
	}
}

// TestDirectoriesOfReleasesStayReadable closes the directories above the current release to other users.
func TestDirectoriesOfReleasesStayReadable(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	current, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
	must(t, err)
	for _, dir := range []string{current, l.Layout.Project("myapp").Releases()} {
		must(t, os.Chmod(dir, 0o700))
		if s, err := l.Status(); err != nil ||
			!strings.Contains(strings.Join(s.Drift, "\n"), l.Layout.Inside(dir)+" has mode 0700") {
			t.Errorf("with %s closed, drift is %q, %v", dir, s.Drift, err)
		}
		if audits, err := l.Verify(t.Context()); exit.Code(err) != exit.Refused || len(audits) != 1 ||
			len(audits[0].Changes) != 1 {
			t.Errorf("with %s closed, verify reports %+v, %v", dir, audits, err)
		}
		noted(t, l.expect(exit.OK), "had mode 0700")
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s has the mode %v, %v", dir, info.Mode(), err)
		}
	}
}

// TestVerifyLooksAtAllReleases removes the list of the first release, and changes the second.
func TestVerifyLooksAtAllReleases(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	must(t, os.RemoveAll(l.Layout.Trees("base")))
	must(t, os.Remove(filepath.Join(l.Layout.Path("/srv/service/current"), "version")))
	audits, err := l.Verify(t.Context())
	if exit.Code(err) != exit.Refused || len(audits) != 2 || audits[0].Error == "" || len(audits[1].Changes) != 1 {
		t.Errorf("audits are %+v, %v", audits, err)
	}
	if strings.Contains(err.Error(), "older agent") || !strings.Contains(err.Error(), "base 1") {
		t.Errorf("the error is %v", err)
	}
}
