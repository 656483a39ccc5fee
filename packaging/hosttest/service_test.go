//go:build hosts

package hosttest_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// answering is a program that responds with its version or, depending on the version, exits at once without an error.
const answering = `package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

var version = "none"

func main() {
	if strings.Contains(version, "exits") {
		os.Exit(0)
	}
	if _, err := os.Stat("/root/crash"); strings.Contains(version, "crashes") || err == nil && strings.Contains(version, "later") {
		os.Exit(1)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "answer", version) })
	fmt.Println(http.ListenAndServe("127.0.0.1:8000", nil))
}
`

// plain returns the simplest service: a unit that starts through current, and an http probe. unit has more lines for
// the unit's [Service] section.
func plain(t *testing.T, version, unit string) string {
	dir := tree(t, map[string]string{
		"salt/config/states/top.sls": "base:\n  '*':\n    - plain\n",
		"salt/config/states/plain.sls": `
/etc/systemd/system/plain.service:
  file.managed:
    - contents: |
        [Service]
        ExecStart=/srv/service/current/bin/answer
        ` + unit + `
        [Install]
        WantedBy=multi-user.target
plain:
  service.running:
    - enable: True
    - watch:
      - file: /etc/systemd/system/plain.service
`,
		"corpus.yaml": "health:\n  deadline: 30s\n  interval: 200ms\n  probes:\n" +
			"  - http: http://127.0.0.1:8000/\n",
		"hooks/pre-release.d/10-say": "#!/bin/sh\necho \"$CORPUS_STAGE $CORPUS_VERSION after " +
			"$CORPUS_PREVIOUS_VERSION\" >> /root/hooks\n",
		"hooks/post-release.d/10-say": "#!/bin/sh\necho \"$CORPUS_STAGE $CORPUS_VERSION after " +
			"$CORPUS_PREVIOUS_VERSION\" >> /root/hooks\n",
		"hooks/post-release.d/20-restart": "#!/bin/sh\n[ ! -e /root/restart ] || systemctl restart plain.service\n",
	})
	program(t, filepath.Join(dir, "bin/answer"), version)
	return dir
}

// program compiles the answering program of a version.
func program(t *testing.T, file, version string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(answering), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-ldflags", "-s -w -X main.version="+version, "-o", file, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// versionOf returns the version in the response of the service.
func versionOf(h *lab.Host) string {
	return strings.TrimPrefix(strings.TrimSpace(h.Run("curl", "-fsS", "-m", "5", "http://127.0.0.1:8000/").Out), "answer ")
}

// serves checks the version of the running service, the status, and that no process runs from another release.
func serves(t *testing.T, h *lab.Host, version string) {
	t.Helper()
	if got := versionOf(h); got != version {
		t.Errorf("version %q answers, but %q is deployed", got, version)
	}
	var s struct {
		Drift []string
		Units []struct {
			Unit, Release, Test string
			Deployed            bool
		}
	}
	if err := json.Unmarshal([]byte(h.Must("corpus-agent", "status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Units) != 1 || s.Units[0].Unit != "plain.service" || !strings.HasPrefix(s.Units[0].Release, version+"-") ||
		!s.Units[0].Deployed {
		t.Errorf("the status has the units %+v, drift %q", s.Units, s.Drift)
	}
	if from := h.Sh(
		"readlink /proc/[0-9]*/exe | grep -c /srv/projects/ || true; readlink /proc/[0-9]*/exe | grep /archives/ " +
			"|| true"); from != "1" {
		t.Errorf("processes of releases: %s", from)
	}
}

type unitsOf struct {
	report
	Units  []struct{ Unit, Release, Action, Error string }
	Health []struct{ Probe, Test, Error, Answered string }
}

// TestServiceRunsWhatIsDeployed checks the simplest service in deploys and rollbacks.
func TestServiceRunsWhatIsDeployed(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "plain-testing-local1-1", Network: n, Address: "172.31.0.11"})
	install(t, h)
	h.Sh("systemctl stop corpus-agent.timer")
	s.reach(h, server)
	deploy := func(version, unit string) unitsOf {
		t.Helper()
		s.publish("plain", version, "testing", plain(t, version, unit))
		var r unitsOf
		result := h.Run("corpus-agent", "--json", "deploy", "--store", storeURL, "--trust-root", "/root/root.json")
		if err := json.NewDecoder(strings.NewReader(result.Out)).Decode(&r); err != nil {
			t.Fatalf("%v: %s\n%s", err, result.Out, result.Err)
		}
		return r
	}

	deploy("1.0", "").converged(t)
	serves(t, h, "1.0")
	r := deploy("2.0", "")
	r.converged(t)
	serves(t, h, "2.0")
	if len(r.Units) != 1 || r.Units[0].Action != "restarted" || r.Units[0].Release != "plain 2.0" ||
		r.Health[0].Test != "its program" {
		t.Errorf("the report has units %+v, health %+v", r.Units, r.Health)
	}

	for version, unit := range map[string]string{"3.0-exits": "", "3.1-exits": "Restart=always\n        RestartSec=100ms",
		"3.2-exits": "Restart=always\n        RestartSec=5s"} {
		h.Sh("rm -f /root/hooks")
		r := deploy(version, unit)
		if r.Exit != 7 || !strings.Contains(r.Error, "plain.service") {
			t.Errorf("%s: exit code %d, %s", version, r.Exit, r.Error)
		}
		serves(t, h, "2.0")
		want := "pre-release " + version + " after 2.0\n" + "pre-release 2.0 after " + version + "\npost-release 2.0 after " +
			version
		if got := strings.ReplaceAll(h.Read("/root/hooks"), "post-release "+version+" after 2.0\n",
			""); strings.TrimSpace(got) != want {
			t.Errorf("the hooks ran as\n%s\nwant\n%s", got, want)
		}
	}

	// A hook that also restarts the service does not change the result.
	h.Sh("touch /root/restart")
	if r := deploy("3.3-exits", ""); r.Exit != 7 {
		t.Errorf("exit code %d, %s", r.Exit, r.Error)
	}
	serves(t, h, "2.0")
	h.Sh("rm /root/restart")

	agent(t, h, "rollback").converged(t)
	serves(t, h, "1.0")
	deploy("4.0", "").converged(t)
	serves(t, h, "4.0")
	before := h.Sh("systemctl show -p MainPID plain.service")
	agent(t, h, "deploy").converged(t)
	if after := h.Sh("systemctl show -p MainPID plain.service"); after != before {
		t.Errorf("without a new release the service was restarted: %s, then %s", before, after)
	}
	agent(t, h, "rollback", "--converge").converged(t)
	serves(t, h, "1.0")

	h.Sh("systemctl stop plain.service")
	if out := h.Must("corpus-agent", "status"); !strings.Contains(out, "plain.service: inactive") {
		t.Errorf("for a stopped unit, status prints\n%s", out)
	}
}

// TestExampleServesItsVersion checks the Go service of docs/examples.md on a booted host: its response is fetched after
// each deploy and rollback.
func TestExampleServesItsVersion(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "hello-testing-local1-1", Network: n, Address: "172.31.0.11"})
	install(t, h)
	h.Sh("systemctl stop corpus-agent.timer")
	s.reach(h, server)
	deploy := func(version string, more map[string]string) unitsOf {
		t.Helper()
		layer := map[string]string{"VERSION": version + "\n"}
		maps.Copy(layer, more)
		s.publish("hello", version, "testing", demo+"/hello", tree(t, layer))
		var r unitsOf
		result := h.Run("corpus-agent", "--json", "deploy", "--store", storeURL, "--trust-root", "/root/root.json")
		if err := json.NewDecoder(strings.NewReader(result.Out)).Decode(&r); err != nil {
			t.Fatalf("%v: %s\n%s", err, result.Out, result.Err)
		}
		return r
	}
	answers := func(version string) {
		t.Helper()
		if got := strings.TrimSpace(h.Run("curl", "-fsS", "-m", "5", "http://127.0.0.1:8000/").Out); got != "hello "+version {
			t.Errorf("the service answers %q, but %s is deployed", got, version)
		}
	}

	deploy("1.0", nil).converged(t)
	answers("1.0")
	r := deploy("1.1", nil)
	r.converged(t)
	answers("1.1")
	if pid := h.Sh("systemctl show -p MainPID --value hello.service"); len(r.Health) != 2 ||
		!strings.HasPrefix(r.Health[1].Answered, "process "+pid+" (/srv/projects/hello/releases/1.1-") {
		t.Errorf("the service is process %s, but health is %+v", pid, r.Health)
	}
	agent(t, h, "rollback").converged(t)
	answers("1.0")
	if r := deploy("1.2", map[string]string{"main.go": "package main\n\nfunc main() {}\n"}); r.Exit != 7 ||
		!strings.Contains(r.Error, "hello.service") {
		t.Errorf("a program that exits at once: exit code %d, %s", r.Exit, r.Error)
	}
	answers("1.0")

	// A release that declares no units leaves the old process running, which responds.
	recipe, err := os.ReadFile(demo + "/hello/corpus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alone := strings.Replace(string(recipe), "units: [hello.service]", "units: []\nfiles: [hello.service]", 1)
	alone = strings.Replace(alone, "health:\n", "health:\n  deadline: 15s\n", 1)
	r = deploy("1.3", map[string]string{"corpus.yaml": alone})
	if r.Exit != 7 || !strings.Contains(r.Error, "runs from hello 1.0-") ||
		!strings.Contains(r.Hint, "systemctl stop hello.service") {
		t.Errorf("the old process answers: exit code %d, %s, hint %s", r.Exit, r.Error, r.Hint)
	}
	answers("1.0")

	r = deploy("1.4",
		map[string]string{"corpus.yaml": strings.Replace(string(recipe), "[hello.service]", "[hello.service, absent.service]",
			1)})
	if r.Exit != 7 ||
		!strings.Contains(r.Error, "absent.service, which corpus.yaml of hello 1.4 names under units, is not on this host") {
		t.Errorf("a unit that does not exist: exit code %d, %s", r.Exit, r.Error)
	}
	answers("1.0")
	deploy("1.5", nil).converged(t)
	answers("1.5")
}

// TestServiceThatCrashes deploys crashing releases with an ordinary unit, which systemd restarts at once and at most
// five times in ten seconds.
func TestServiceThatCrashes(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "plain-testing-local1-1", Network: n, Address: "172.31.0.11"})
	install(t, h)
	h.Sh("systemctl stop corpus-agent.timer")
	s.reach(h, server)
	deploy := func(version string) unitsOf {
		t.Helper()
		s.publish("plain", version, "testing", plain(t, version, "Restart=on-failure"))
		var r unitsOf
		result := h.Run("corpus-agent", "--json", "deploy", "--store", storeURL, "--trust-root", "/root/root.json")
		if err := json.NewDecoder(strings.NewReader(result.Out)).Decode(&r); err != nil {
			t.Fatalf("%v: %s\n%s", err, result.Out, result.Err)
		}
		return r
	}
	deploy("1.0").converged(t)
	serves(t, h, "1.0")
	h.Sh("rm -f /root/hooks")
	if r := deploy("2.0-crashes"); r.Exit != 7 {
		t.Errorf("a release that crashes at once: exit code %d, %s", r.Exit, r.Error)
	}
	serves(t, h, "1.0")
	if got := h.Read("/root/hooks"); !strings.HasSuffix(strings.TrimSpace(got), "post-release 1.0 after 2.0-crashes") {
		t.Errorf("the hooks of the good release did not run: %s", got)
	}

	deploy("3.0-later").converged(t)
	h.Sh("touch /root/crash; systemctl kill -s KILL plain.service; sleep 3")
	if got := h.Sh("systemctl is-active plain.service || true"); got == "active" {
		t.Fatal("the deployed release does not crash")
	}
	deploy("4.0").converged(t)
	serves(t, h, "4.0")

	r := agent(t, h, "rollback", "--converge")
	if r.Exit != 7 {
		t.Errorf("a rollback to a release that does not start: exit code %d, %s", r.Exit, r.Error)
	}
	serves(t, h, "4.0")
	agent(t, h, "deploy").converged(t)
	serves(t, h, "4.0")
}
