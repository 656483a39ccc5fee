package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestReleaseIsNotQuarantinedWithoutPython deploys releases with modules and grain modules on a host without python3:
// they are rolled back and retried, and no state removes files for the lack of a grain.
func TestReleaseIsNotQuarantinedWithoutPython(t *testing.T) {
	l := newShellLab(t)
	const states = "salt/config/states/"
	release := func(version, sls string, files artifacttest.Files) {
		files["version"], files[states+"top.sls"], files[states+"app.sls"] = version, "base: {'*': [app]}\n", sls
		l.repo.Release("myapp", version, "testing", files)
	}
	const managed = "/etc/app.conf: {file.managed: [{contents: one}]}\n"
	// A host that never had python3 deploys its first release without the grains.
	release("1", managed, artifacttest.Files{states + "_grains/role.py": "def f():\n    return {'role': 'web'}\n"})
	noted(t, l.expect(exit.OK), "grains: ")
	module := artifacttest.Files{states + "_modules/cz.py": "def f():\n    return 1\n"}
	release("2", "a: {test.nop: [{name: {{ salt['cz.f']() }}}]}\n", module)
	l.failsForTheHost("no python3")
	release("3", "{% if grains.get('role') == 'web' %}"+managed+"{% else %}/etc/app.conf: file.absent\n{% endif %}",
		artifacttest.Files{states + "_grains/role.py": "def f():\n    return {'role': 'web'}\n"})
	l.failsForTheHost("grains: ")
	if data, err := os.ReadFile(l.Layout.Path("/etc/app.conf")); strings.TrimSpace(string(data)) != "one" {
		t.Errorf("the file of a web host is %q: %v", data, err)
	}
}

// failsForTheHost deploys what is rolled back for a fault of the host.
func (l *lab) failsForTheHost(why string) {
	l.t.Helper()
	r := l.expect(exit.RolledBack)
	if r.Fault == nil || r.Fault.Of != report.FaultOfHost || len(l.inQuarantine()) > 0 || !strings.Contains(r.Error, why) {
		l.t.Errorf("%+v is at fault, in quarantine are %q: %s, want %q", r.Fault, l.inQuarantine(), r.Error, why)
	}
}
