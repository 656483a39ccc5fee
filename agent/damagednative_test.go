package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestStatesConvergeOverADamagedChapter damages the newest chapter of the journal in each way. States still converge,
// and a deploy that fails afterwards undoes its own changes.
func TestStatesConvergeOverADamagedChapter(t *testing.T) {
	for _, how := range damages() {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			l := newNativeLab(t)
			l.states("1", goodStates)
			l.expect(exit.OK)
			conf := l.Layout.Path("/etc/app/app.conf")
			chapters, err := filepath.Glob(filepath.Join(l.Layout.Journal(), "*"))
			if err != nil || len(chapters) == 0 {
				t.Fatalf("no chapter: %v", err)
			}
			l.inflict(how, chapters[len(chapters)-1])
			must(t, os.WriteFile(conf, []byte("drifted\n"), 0o644))
			if r := l.expect(exit.OK); r.States.Changed != 1 {
				t.Errorf("%d states changed something, want 1", r.States.Changed)
			}
			if data, err := os.ReadFile(conf); err != nil || strings.TrimSpace(string(data)) != "one" {
				t.Errorf("the file has %q, %v", data, err)
			}
			before := snapshot(t, l.Layout.Root)
			l.states("2", badStates)
			r := l.expect(exit.RolledBack)
			compare(t, "after the rollback", before, snapshot(t, l.Layout.Root))
			if r.Undo == nil || len(r.Undo.Restored) < 10 || len(r.Undo.Failed) > 0 {
				t.Errorf("the report has the undo %+v", r.Undo)
			}
			l.expect(exit.OK)
			l.links("1", "1", "")
		})
	}
}

// TestAReleaseWithDamagedDataWhoseStatesFail damages data of the current release that no state reads, and has its
// states fail for another reason. The release is fetched again and not quarantined; the host converges once its error
// is corrected.
func TestAReleaseWithDamagedDataWhoseStatesFail(t *testing.T) {
	for _, c := range []struct {
		how, says string
		damage    func(path string) error
		code      int
	}{
		// the release is deployed again, and its states also fail during the rollback
		{"missing", "is deployed again", os.Remove, exit.RollbackFailed},
		{"garbage", "version has 7 bytes, not 1", func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("garbage"), 0o444))
		}, exit.Failed},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			l := newNativeLab(t)
			for _, version := range []string{"1", "2"} {
				l.states(version, goodStates)
				l.expect(exit.OK)
			}
			current, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
			must(t, err)
			must(t, c.damage(filepath.Join(current, "version")))
			etc := l.Layout.Path("/etc/app")
			must(t, errors.Join(os.RemoveAll(etc), os.WriteFile(etc, []byte("a file in the place of a directory"), 0o644)))
			r := l.expect(c.code)
			noted(t, r, c.says)
			noted(t, r, "was set aside as")
			if !strings.Contains(r.Error, "/etc/app is not a directory, but a regular file") {
				t.Errorf("the report's error is %q", r.Error)
			}
			if bad := l.inQuarantine(); len(bad) > 0 {
				t.Errorf("in quarantine: %q", bad)
			}
			l.links("2", "2", "1") // and its data is restored
			must(t, os.Remove(etc))
			l.expect(exit.OK)
			if _, err := os.Stat(filepath.Join(etc, "app.conf")); err != nil {
				t.Error(err)
			}
		})
	}
}
