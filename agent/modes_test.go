package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state"
)

// closeReleases removes all permissions of group and others from the releases on a host, as chmod -R 700 does, and has
// converges fail while other users cannot run a program of current or next.
func closeReleases(t *testing.T, l *lab) {
	t.Helper()
	releases := l.Layout.Project("myapp").Releases()
	waitForFileTimes(t)
	must(t, filepath.WalkDir(releases, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chmod(name, 0o700)
	}))
	l.engine.fails = func(string) error {
		for _, name := range []string{"", "bin", "bin/run", "data", "data/large"} {
			info, err := os.Stat(l.Layout.Path("/srv/service/next/" + name))
			if err != nil || info.Mode().Perm()&0o044 != 0o044 {
				return exit.WithCode(exit.Failed, errors.New("myapp.service: Failed at step EXEC: Permission denied"))
			}
		}
		return nil
	}
}

// TestModesOfAReleaseAreRestoredBeforeItsLinks closes releases to other users: no run fails because of it, and no
// release is quarantined.
func TestModesOfAReleaseAreRestoredBeforeItsLinks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		run  func(l *lab) error
		want string
	}{
		"rollback": {func(l *lab) error { _, err := l.Rollback(l.t.Context()); return err }, "1"},
		"rollback --converge": {func(l *lab) error { _, err := l.RollbackConverge(l.t.Context(), "", false); return err },
			"1"},
		"deploy of one that is kept": {func(l *lab) error {
			l.repo.Release("myapp", "1", "testing", large("1"))
			_, err := l.deploy()
			return err
		}, "1"},
		"tick":                   {func(l *lab) error { _, err := l.deploy(); return err }, "2"},
		"a tick without a store": {func(l *lab) error { _, err := l.Converge(l.t.Context(), false); return err }, "2"},
		"rollback of a deploy that failed": {func(l *lab) error {
			l.publish("3-broken")
			if _, err := l.deploy(); exit.Code(err) != exit.RolledBack {
				return err
			}
			return nil
		}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.repo.Release("myapp", "1", "testing", large("1"))
			l.expect(exit.OK)
			l.repo.Release("myapp", "2", "testing", large("2"))
			l.expect(exit.OK)
			closeReleases(t, l)
			if err := test.run(l); err != nil {
				t.Fatal(err)
			}
			if got := l.version("service/current"); got != test.want {
				t.Errorf("the current version is %q, want %s", got, test.want)
			}
			audits, err := l.Verify(t.Context())
			if err != nil {
				t.Errorf("verify: %v: %+v", err, audits)
			}
			for _, bad := range l.inQuarantine() {
				if !strings.Contains(bad, "broken") && !strings.HasPrefix(name, "rollback") {
					t.Errorf("%s is in quarantine", bad)
				}
			}
		})
	}
}

// TestModesSetByTheRunAreKept has a part of a run, such as a hook, change the mode of a file of the release.
func TestModesSetByTheRunAreKept(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", large("1"))
	program := l.Layout.Path("/srv/service/current/bin/run")
	l.engine.during = func(state.Request) { must(t, os.Chmod(program, 0o550)) }
	l.expect(exit.OK)
	l.engine.during = nil
	l.expect(exit.OK)
	if info, err := os.Stat(program); err != nil || info.Mode().Perm() != 0o550 {
		t.Errorf("the mode is %v, %v; want the one that the run set", info.Mode(), err)
	}
}

// TestKeptReleaseIsVerifiedBeforeDeploy removes data of a release that is on the disk but not deployed.
func TestKeptReleaseIsVerifiedBeforeDeploy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", large("1"))
	l.expect(exit.OK)
	data, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current/data/large"))
	must(t, err)
	l.repo.Release("myapp", "2", "testing", large("2"))
	l.expect(exit.OK)
	must(t, os.Remove(data))
	l.engine.fails = func(string) error {
		if _, err := os.Stat(l.Layout.Path("/srv/service/next/data/large")); err != nil {
			return exit.WithCode(exit.Failed, err)
		}
		return nil
	}
	l.repo.Release("myapp", "1", "testing", large("1"))
	noted(t, l.expect(exit.OK), "data/large is missing; it was fetched again")
	l.links("1", "1", "2")
}
