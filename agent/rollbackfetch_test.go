package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// lose removes a file of the release that a link leads to.
func (l *lab) lose(link, name string) {
	l.t.Helper()
	dir, err := filepath.EvalSymlinks(l.Layout.Path(link))
	if err == nil {
		err = os.Remove(filepath.Join(dir, name))
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// TestRollbackFetchesMissingReleases deploys a release whose states fail, while a file of the earlier release is
// missing: the earlier release is fetched again, and the host is rolled back.
func TestRollbackFetchesMissingReleases(t *testing.T) {
	needsRoot(t)
	for what, file := range map[string]string{"states": "salt/config/states/app.sls", "a file that states copy": "data"} {
		t.Run(what, func(t *testing.T) {
			l := newNativeLab(t)
			copies := "copy:\n  file.managed:\n  - name: /srv/out/copy\n  - source: /srv/service/next/data\n"
			files := stateFiles("1", sets("/srv/out/a", "1")+copies)
			files["data"] = "1"
			l.repo.Release("myapp", "1", "testing", files)
			l.expect(exit.OK)
			l.lose("/srv/service/current", file)
			if err := os.Remove(l.Layout.Path("/srv/out/copy")); err != nil {
				t.Fatal(err)
			}
			l.repo.Release("myapp", "2", "testing", stateFiles("2", "boom:\n  test.fail_without_changes: []\n"))
			r, err := l.deploy()
			if exit.Code(err) != exit.RolledBack {
				t.Fatalf("exit code %d, %v\n%s", exit.Code(err), err, strings.Join(r.Notes, "\n"))
			}
			if got := l.host("/srv/out/copy"); got != "1" {
				t.Errorf("after the rollback the version is %q", got)
			}
			l.expect(exit.OK)
		})
	}
}

// TestMissingFileOfBaseIsRefetchedBeforeDeploy deploys a service while a file of base is missing: base is fetched again
// first.
func TestMissingFileOfBaseIsRefetchedBeforeDeploy(t *testing.T) {
	needsRoot(t)
	l := newNativeLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	l.lose("/srv/base/current", "states/top.sls")
	l.publish("2")
	r := l.expect(exit.OK)
	noted(t, r, "states/top.sls does not exist")
	noted(t, r, "it was fetched again")
	if s := mustStatus(t, l); len(s.Quarantined) != 0 || s.Deployed.Service.Version != "2" {
		t.Errorf("deployed %v, quarantined %+v", s.Deployed, s.Quarantined)
	}
}
