package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestUnitsOfAReleaseThatWasRepairedAreRestarted damages the current release: the run that fetches it again restarts
// its unit, whose process uses the directory that was set aside, and the next run does not restart it.
func TestUnitsOfAReleaseThatWasRepairedAreRestarted(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	l.expect(exit.OK)
	u.acted = nil
	top, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current/salt/config/states/top.sls"))
	must(t, err)
	must(t, os.Chmod(top, 0o644)) // files of a release are read-only
	must(t, os.WriteFile(top, nil, 0o644))
	r := l.expect(exit.OK)
	noted(t, r, "app.service may run from files that were damaged")
	if len(u.acted) != 1 || did(r) == "" {
		t.Errorf("the unit actions are %q, reported %q; want one restart", u.acted, did(r))
	}
	if again := l.expect(exit.OK); len(u.acted) != 1 || did(again) != "" {
		t.Errorf("the actions of the next run are %q, reported %q", u.acted, did(again))
	}
}

// TestUnitsOfAReleaseThatVanishedAreRestarted removes the current release: the run that fetches it again restarts its
// unit, whose process uses removed files, and the next run does not restart it.
func TestUnitsOfAReleaseThatVanishedAreRestarted(t *testing.T) {
	for _, project := range []string{"service", "base"} {
		l := newLab(t)
		l.publishBase("1")
		l.app("1")
		l.expect(exit.OK)
		u := newUnits(l)
		u.add("app.service", "/srv/"+project+"/current/version").begin(u)
		l.expect(exit.OK)
		u.acted = nil
		dir, err := filepath.EvalSymlinks(l.Layout.Path("/srv/" + project + "/current"))
		must(t, err)
		must(t, os.RemoveAll(dir))
		r := l.expect(exit.OK)
		if len(u.acted) != 1 || did(r) == "" {
			t.Errorf("%s: the unit actions are %q, reported %q; want one restart", project, u.acted, did(r))
		}
		if again := l.expect(exit.OK); len(u.acted) != 1 || did(again) != "" {
			t.Errorf("%s: the actions of the next run are %q, reported %q", project, u.acted, did(again))
		}
	}
}

// TestADirectoryOfCodeThatBecameALinkIsRepaired replaces a directory of the deployed release by a link that leads out
// of it: the next run fetches the release again, without a quarantine.
func TestADirectoryOfCodeThatBecameALinkIsRepaired(t *testing.T) {
	l := newLab(t)
	l.app("1")
	l.expect(exit.OK)
	for _, target := range []string{"/srv", "../../../..", "nowhere"} {
		dir, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
		must(t, err)
		must(t, os.RemoveAll(filepath.Join(dir, "salt")))
		must(t, os.Symlink(target, filepath.Join(dir, "salt")))
		noted(t, l.expect(exit.OK), "salt is of another kind")
		if info, err := os.Lstat(filepath.Join(dir, "salt")); err != nil || !info.IsDir() {
			t.Errorf("with a link to %s: %v, %v", target, info, err)
		}
	}
}
