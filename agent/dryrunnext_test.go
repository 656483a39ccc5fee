package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state"
)

// TestDryRunResolvesNextToNewRelease has a state copy a file by the path of the next release. The dry run of each
// deploy reports the changes of the deploy.
func TestDryRunResolvesNextToNewRelease(t *testing.T) {
	l := newNativeLab(t)
	for _, through := range []string{"/srv/projects/myapp/next", "/srv/service/next"} {
		for _, version := range []string{"1" + through[5:8], "2" + through[5:8]} {
			l.states(version, "/etc/version:\n  file.managed:\n    - source: "+through+"/version\n    - makedirs: True\n")
			dry, err := l.Deploy(t.Context(), l.firstDeploy(), true)
			if err != nil {
				t.Fatalf("the dry run of %s through %s: %v", version, through, err)
			}
			did := l.expect(exit.OK)
			if dry.States.Pending != 1 || did.States.Changed != 1 {
				t.Errorf("%s through %s: the dry run would change %d, and the deploy changed %d", version, through,
					dry.States.Pending, did.States.Changed)
			}
			data, err := os.ReadFile(l.Layout.Path("/etc/version"))
			if err != nil || string(data) != version {
				t.Errorf("the file has %q, %v", data, err)
			}
		}
	}
}

// TestDryRunAccountsForEarlierStates has a state edit a file that an earlier state makes, without a requisite: on a
// host without the file and on one with other content.
func TestDryRunAccountsForEarlierStates(t *testing.T) {
	l := newNativeLab(t)
	for i, contents := range []string{"one", "two"} {
		l.states(contents, `/etc/conf:
  file.managed:
    - contents: "value `+contents+`"
    - makedirs: True
edited:
  file.replace:
    - name: /etc/conf
    - pattern: value
    - repl: setting
copied:
  file.copy:
    - name: /etc/copy
    - source: /etc/conf
    - force: True
`)
		dry, err := l.Deploy(t.Context(), l.firstDeploy(), true)
		if err != nil {
			t.Fatalf("the dry run of %s: %v", contents, err)
		}
		if dry.States.Pending != 3 {
			t.Errorf("run %d: the dry run would change %d of %d states", i, dry.States.Pending, dry.States.Total)
		}
		if did := l.expect(exit.OK); did.States.Changed != 3 {
			t.Errorf("run %d: the deploy changed %d states", i, did.States.Changed)
		}
	}
}

// TestHooksDoNotRunForStatesThatDoNotCompile deploys a release whose SLS file has an unknown function: its hooks, whose
// work cannot be undone, do not run.
func TestHooksDoNotRunForStatesThatDoNotCompile(t *testing.T) {
	l := newHookLab(t)
	l.Engine = state.Native{}
	publish := func(version, function string) {
		files := stateFiles(version, "/etc/version:\n  "+function+":\n    - contents: x\n    - makedirs: True\n")
		files["hooks/pre-release.d/10"] = "#!/bin/sh\necho " + version + " >> /srv/hooked\n"
		l.repo.Release("myapp", version, "testing", files)
	}
	publish("1", "file.managed")
	l.expect(exit.OK)
	publish("2", "file.manged")
	r := l.expect(exit.RolledBack)
	if r.Fault == nil || r.Fault.Of != report.FaultOfRelease || !strings.Contains(r.Error, "file.manged") {
		t.Errorf("the report has the error %q and the fault %+v", r.Error, r.Fault)
	}
	data, err := os.ReadFile(l.Layout.Path("/srv/hooked"))
	if err != nil || strings.Contains(string(data), "2") {
		t.Errorf("the hooks wrote %q, %v", data, err)
	}
}
