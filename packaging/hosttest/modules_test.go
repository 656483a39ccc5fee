//go:build hosts

package hosttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// caseRepository makes the repository of the packages in the cases.
func caseRepository(t *testing.T, h *lab.Host) {
	t.Helper()
	dir := t.TempDir()
	add := func(name, version, control string, files map[string]string) {
		files["DEBIAN/control"] = fmt.Sprintf(
			"Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: A <a@example.com>\nDescription: a package\n%s", name,
			version, control)
		run(t, "dpkg-deb", "-Znone", "--root-owner-group", "-b", tree(t, files), dir)
	}
	add("corpus-one", "1.0", "", map[string]string{"usr/share/corpus-one/version": "1.0"})
	add("corpus-one", "2.0", "", map[string]string{"usr/share/corpus-one/version": "2.0"})
	add("corpus-two", "1.0", "Depends: corpus-one\n", map[string]string{"usr/share/corpus-two/version": "1.0"})
	add("corpus-daemon", "1.0", "", map[string]string{
		"usr/lib/systemd/system/corpus-daemon.service": "[Service]\nExecStart=/bin/sleep infinity\n[Install]\n" +
			"WantedBy=multi-user.target\n",
		"etc/corpus-daemon.conf": "depth = 3\n",
		"DEBIAN/conffiles":       "/etc/corpus-daemon.conf\n",
	})
	h.CopyTree(dir, "/opt/cases")
	h.Write("/etc/apt/sources.list.d/cases.list", "deb [trusted=yes] file:/opt/cases ./\n")
	h.Sh(
		`cd /opt/cases; for f in *.deb; do dpkg-deb -f $f; printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' $f $(stat -c ` +
			`%s $f) $(sha256sum $f | cut -d' ' -f1); done > Packages; apt-get update -q`)
}

// caseHost returns a host whose release has the cases. The host converges one case at a time.
func caseHost(t *testing.T, suite string) *lab.Host {
	t.Helper()
	s := newStore(t)
	s.publish("cases", "1", "testing", tree(t, map[string]string{
		"corpus.yaml":                 "writable: [salt]\nwritable_code: true\n",
		"salt/config/states/top.sls":  "base:\n  '*':\n    - case\n",
		"salt/config/states/case.sls": "Nothing yet:\n  test.nop: []\n",
	}))
	h := lab.Boot(t, lab.Options{Base: lab.Standard(suite), Hostname: "cases-testing-local1-1"})
	h.CopyTree(s.dir, "/opt/store")
	h.Copy(filepath.Join(s.keys, "root.json"), "/root/root.json")
	install(t, h)
	caseRepository(t, h)
	agent(t, h, "deploy", "--store", "file:///opt/store", "--trust-root", "/root/root.json").converged(t)
	h.CopyTree(cases+"/files", "/srv/service/current/salt/config/states/files")
	return h
}

const cases = repository + "/testdata/hosts"

// order returns the order of the cases; some undo the effects of an earlier one.
func order() []string {
	return []string{"file", "cmd", "account", "account-off", "service", "service-off", "pkg", "pkg-latest", "system"}
}

// TestStatesOnRealHosts applies every case, first as a dry run, then for real, then again.
func TestStatesOnRealHosts(t *testing.T) {
	for _, suite := range lab.Suites() {
		t.Run(suite, func(t *testing.T) {
			h := caseHost(t, suite)
			for _, name := range order() {
				t.Run(name, func(t *testing.T) { applyCase(t, h, name) })
			}
		})
	}
}

// watched lists the files that a dry run must not change, with their times, and the state of systemd.
const watched = `{ find /etc /var/lib /srv /home /usr/local -xdev -not -path '/var/lib/corpus*' -not -path '/var/lib/systemd/*' -printf '%p %m %u %g %s %T@ %l\n' | sort
systemctl list-unit-files --plain --no-legend; systemctl list-units --plain --no-legend --type=service | awk '{print $1,$3}'; hostname; sysctl -n net.ipv4.ip_forward; } | grep -v -e '^/etc ' -e '^run-' -e '^corpus-agent' | sort > `

func applyCase(t *testing.T, h *lab.Host, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cases, name+".sls"))
	if err != nil {
		t.Fatal(err)
	}
	h.Write("/srv/service/current/salt/config/states/case.sls", string(text))
	h.Sh(watched + "/run/before")
	dry := agent(t, h, "converge", "--test").converged(t)
	h.Sh(watched + "/run/after")
	if difference := h.Run("diff", "/run/before", "/run/after").Out; difference != "" {
		t.Errorf("the dry run changed the host:\n%s", difference)
	}
	real := agent(t, h, "converge").converged(t)
	if real.States.Skipped != 0 || real.States.Changed == 0 {
		t.Errorf("the run has the states %+v", real.States)
	}
	if got, want := steps(dry, unknown(text)), steps(real, unknown(text)); !slices.Equal(got, want) {
		t.Errorf("predicted:\n  %s\ndone:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	again := agent(t, h, "converge").converged(t)
	if again.States.Changed != 0 {
		t.Errorf("the second run changed the host:\n%s", changed(again))
	}
}

// unknown returns the states of a case whose changes cannot be predicted.
func unknown(text []byte) []string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	list, ok := bytes.CutPrefix(line, []byte("# unknown: "))
	if !ok {
		return nil
	}
	return strings.Split(string(list), ", ")
}

// steps returns the steps of a run, or of a dry run, in a form that can be compared.
func steps(r report, unknown []string) []string {
	var all []string
	for _, s := range r.Steps {
		changes := compact(s.Changes)
		if s.Unknown || s.Result != "would change" && slices.Contains(unknown, s.ID) {
			changes = "unknown"
		}
		if changes != "{}" && changes != "null" || s.Result == "would change" {
			all = append(all, s.Function+" "+s.Name+": "+changes)
		}
	}
	return all
}

func compact(text []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return string(text)
	}
	return b.String()
}
