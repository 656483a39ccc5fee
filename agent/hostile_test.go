package agent_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestHostileStoreChangesNothing checks a host with a good release against attackers that have more and more keys.
func TestHostileStoreChangesNothing(t *testing.T) {
	t.Parallel()
	evil := artifacttest.Pack(t,
		artifacttest.Entry{Header: tar.Header{Name: "../../evil", Typeflag: tar.TypeReg, Mode: 0o644}, Content: "evil"})
	for name, stolen := range map[string][]string{
		"no keys":           nil,
		"the online keys":   {"timestamp", "snapshot"},
		"the project's too": {"timestamp", "snapshot", "myapp"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.publish("1")
			l.expect(exit.OK)
			attacker := l.repo.Forger(stolen...)
			attacker.Forge(func(f *artifacttest.Forged) { attacker.Sneak(f.Roles["myapp"], "myapp", "2", "testing", evil) })
			r := l.expect(exit.Refused)
			if r.Hint == "" || !strings.Contains(r.Error, "refused") || !strings.Contains(r.Error, "signed by") {
				t.Errorf("the report has the error %q and the hint %q", r.Error, r.Hint)
			}
			l.links("1", "1", "")
			unchanged(t, l)
		})
	}
	t.Run("an artifact changed on the way", func(t *testing.T) {
		l := newLab(t)
		l.publish("1")
		l.expect(exit.OK)
		l.repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2", "salt/config/states/top.sls": "base: {}"})
		for key := range l.repo.Snapshot() {
			if strings.HasPrefix(key, "deploy/myapp/") && !strings.Contains(key, "1.tar") {
				data := l.repo.Object(key)
				data[len(data)/2] ^= 1
				l.repo.Replace(key, data)
			}
		}
		l.expect(exit.Refused)
		l.links("1", "1", "")
		unchanged(t, l)
	})
}

// unchanged checks that the host has no release and no file but those of the good release.
func unchanged(t *testing.T, l *lab) {
	t.Helper()
	releases, err := filepath.Glob(l.Layout.Path("/srv/projects/*/releases/*"))
	if err != nil || len(releases) != 1 || !strings.HasPrefix(filepath.Base(releases[0]), "1-") {
		t.Errorf("the releases are %v (%v), want only that of version 1", releases, err)
	}
	if found, _ := filepath.Glob(l.Layout.Path("/srv/projects/evil")); len(found) > 0 {
		t.Error("something was written outside of the release")
	}
	if _, err := os.Stat(l.Layout.Path("/srv/projects/myapp/evil")); err == nil {
		t.Error("something was written outside of the release")
	}
}
