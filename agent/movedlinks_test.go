package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// TestStatesThatMoveWhatOnlyDeploysMove has a release whose states remove, rename or replace the links and directories
// of deploys: it is quarantined, the data of the service is back, and the links lead to the release before.
func TestStatesThatMoveWhatOnlyDeploysMove(t *testing.T) {
	for name, sls := range map[string]string{
		"all projects removed":   "/srv/projects: {file.absent: []}\n",
		"the project removed":    "/srv/projects/myapp: {file.absent: []}\n",
		"all projects renamed":   "/srv/gone:\n  file.rename:\n    - source: /srv/projects\n",
		"current removed":        "/srv/projects/myapp/current: {file.absent: []}\n",
		"next removed":           "/srv/projects/myapp/next: {file.absent: []}\n",
		"current replaced":       "/srv/projects/myapp/current:\n  file.symlink:\n    - target: /tmp\n    - force: True\n",
		"the link service gone":  "/srv/service: {file.absent: []}\n",
		"the releases cleaned":   "/srv/projects/myapp/releases:\n  file.directory:\n    - clean: True\n",
		"removed and made again": "/srv/projects: {file.absent: []}\nb:\n  file.directory:\n    - name: /srv/projects\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newNativeLab(t)
			l.states("1", goodStates)
			l.expect(exit.OK)
			precious := filepath.Join(l.Layout.Project("myapp").Data(), "precious")
			must(t, os.WriteFile(precious, []byte("x"), 0o600))
			l.states("2", goodStates+sls)
			r := l.expect(exit.RolledBack)
			if got := l.inQuarantine(); len(got) != 1 || r.Fault == nil || r.Fault.Of != report.FaultOfRelease ||
				!strings.Contains(r.Error, "changed what only deploys move: /srv/") || !strings.Contains(r.Error, "app.sls:") {
				t.Errorf("the quarantine is %v, the fault is %+v: %s", got, r.Fault, r.Error)
			}
			if data, err := os.ReadFile(precious); err != nil || string(data) != "x" {
				t.Errorf("the data of the service is %q, %v", data, err)
			}
			l.links("1", "1", "")
			l.expect(exit.OK)
			if s := mustStatus(t, l); len(s.Drift) != 0 {
				t.Errorf("status has the drift %q", s.Drift)
			}
		})
	}
}

// TestDeployedReleaseThatMovesItsLinks has a deployed release whose state removes a link from some moment on: each
// run fails, and puts the link back.
func TestDeployedReleaseThatMovesItsLinks(t *testing.T) {
	for _, name := range []string{"next", "current"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newNativeLab(t)
			link := filepath.Join(l.Layout.Project("myapp").Dir, name)
			l.states("1", goodStates+"{% if salt['file.file_exists']('/etc/on') %}\n"+
				"/srv/projects/myapp/"+name+": {file.absent: []}\n{% endif %}\n")
			l.expect(exit.OK)
			must(t, os.WriteFile(l.Layout.Path("/etc/on"), nil, 0o600))
			for range 2 {
				r := l.expect(exit.Failed)
				if !strings.Contains(r.Error, "file.absent /srv/projects/myapp/"+name+" changed what only deploys move") {
					t.Errorf("the error is %q", r.Error)
				}
				if _, err := os.Readlink(link); err != nil {
					t.Error(err)
				}
			}
			l.links("1", "1", "")
		})
	}
}
