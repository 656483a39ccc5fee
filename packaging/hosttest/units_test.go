//go:build hosts

package hosttest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// web returns a service with its own unit that serves a page, with health checks. check is the script of a probe.
func web(t *testing.T, version, check string) string {
	return tree(t, map[string]string{
		"version":                    version,
		"salt/config/states/top.sls": "base:\n  '*':\n    - web\n",
		"salt/config/states/web.sls": `
/etc/web/index.html:
  file.managed:
    - contents: web ` + version + `
    - makedirs: True
/etc/systemd/system/web.service:
  file.managed:
    - contents: |
        [Service]
        ExecStart=/usr/bin/python3 -m http.server 8080 --directory /etc/web
        [Install]
        WantedBy=multi-user.target
web:
  service.running:
    - enable: True
    - require:
      - file: /etc/web/index.html
    - watch:
      - file: /etc/systemd/system/web.service
`,
		"corpus.yaml": `
health:
  deadline: 20s
  interval: 200ms
  probes:
    - unit: web.service
    - http: http://127.0.0.1:8080/
      contains: web ` + version + `
    - script: bin/check
      args: ["` + version + `"]
`,
		"bin/check": check,
	})
}

// slowly returns the service with a slow first state.
func slowly(t *testing.T, version string) []string {
	return []string{slow(t, version), web(t, version, checks), tree(t,
		map[string]string{"salt/config/states/top.sls": "base:\n  '*':\n    - slow\n    - web\n"})}
}

const checks = "#!/bin/sh\n[ $CORPUS_STAGE = health ] && [ $1 = $CORPUS_VERSION ] && grep -q \"web $1\" " +
	"/etc/web/index.html\n"

// bootWeb boots a host that runs version 1 of the service, with a stopped timer.
func bootWeb(t *testing.T, n *lab.Network, s *store, address string) *lab.Host {
	t.Helper()
	h := lab.Boot(t, lab.Options{Hostname: "web-testing-local1-" + address[strings.LastIndexByte(address, '.')+1:],
		Network: n, Address: address})
	install(t, h)
	h.Sh("systemctl stop corpus-agent.timer")
	return h
}

// start runs the first deploy.
func (s *store) start(h *lab.Host) {
	s.t.Helper()
	agent(s.t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json").converged(s.t)
}

// journaled returns the newest entry about a run in a host's journal.
func journaled(t *testing.T, h *lab.Host, match ...string) map[string]any {
	t.Helper()
	h.Sh("journalctl --sync")
	out := h.Must(append([]string{"journalctl", "-t", "corpus-agent", "-o", "json", "-n", "1", "--no-pager"}, match...)...)
	var entry map[string]any
	if err := json.Unmarshal([]byte(out), &entry); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return entry
}

// TestRunsUnderSystemd tests all interactions of a run with systemd: probes of a unit and by a script, entries in the
// journal, the next run in the status, a run that takes longer than the start timeout of a unit, and a deploy that does
// not wait for the timer.
func TestRunsUnderSystemd(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("web", "1", "testing", web(t, "1", checks))
	server := s.serve(n)
	h := bootWeb(t, n, s, "172.31.0.11")
	s.reach(h, server)
	if r := h.Run("corpus-agent", "deploy", "--now"); r.Code != 2 || !strings.Contains(r.Err, "has no root of trust") {
		t.Errorf("before the first deploy --now gives exit code %d: %s", r.Code, r.Err)
	}
	s.start(h)

	t.Run("journal", func(t *testing.T) {
		entry := journaled(t, h, "CORPUS_EVENT=success")
		for name, want := range map[string]string{
			"CORPUS_COMMAND": "deploy", "CORPUS_OUTCOME": "converged", "CORPUS_EXIT_CODE": "0", "CORPUS_SERVICE": "web",
			"CORPUS_INSTANCE": "testing",
			"CORPUS_TO":       "web 1", "PRIORITY": "5", "CORPUS_FAILED": "0",
		} {
			if entry[name] != want {
				t.Errorf("%s is %q, want %q", name, entry[name], want)
			}
		}
		if r := history(t, h)[0]; entry["CORPUS_RUN"] == "" || r.Outcome != "converged" {
			t.Errorf("the entry is of run %v", entry["CORPUS_RUN"])
		}
	})

	t.Run("next run", func(t *testing.T) {
		if out := h.Must("corpus-agent", "status"); strings.Contains(out, "next run") {
			t.Errorf("the timer is stopped, and status prints\n%s", out)
		}
		h.Sh("systemctl start corpus-agent.timer")
		defer h.Sh("systemctl stop corpus-agent.timer")
		var s struct {
			Next time.Time `json:"next_run"`
		}
		if err := json.Unmarshal([]byte(h.Must("corpus-agent", "status", "--json")), &s); err != nil {
			t.Fatal(err)
		}
		if wait := time.Until(s.Next); wait <= 0 || wait > 10*time.Minute {
			t.Errorf("status has the next run at %s, which is in %s", s.Next, wait)
		}
	})

	t.Run("now", func(t *testing.T) { deployNow(t, s, h) })
	t.Run("unhealthy", func(t *testing.T) { unhealthy(t, s, h) })
	t.Run("watchdog", func(t *testing.T) { takesLong(t, s, h) })

	t.Run("hardening", func(t *testing.T) {
		t.Logf("systemd-analyze security: %s", h.Sh("systemd-analyze security --no-pager corpus-agent.service | tail -1"))
		shown := h.Sh(
			"systemctl show -p LimitCORE -p OOMPolicy -p RestrictRealtime -p CapabilityBoundingSet -p NotifyAccess -p " +
				"TimeoutStartUSec corpus-agent.service")
		for _, want := range []string{"LimitCORE=0", "OOMPolicy=continue", "RestrictRealtime=yes", "NotifyAccess=main",
			"TimeoutStartUSec=5min"} {
			if !strings.Contains(shown, want) {
				t.Errorf("systemd lacks the setting %s:\n%s", want, shown)
			}
		}
		if strings.Contains(shown, "cap_sys_boot") || !strings.Contains(shown, "cap_sys_admin") {
			t.Errorf("capabilities are\n%s", shown)
		}
	})
}

// deployNow checks that the unit runs at once, with the unit's environment; that it runs after an active run; and that
// it completes even if no process waits for it any more.
func deployNow(t *testing.T, s *store, h *lab.Host) {
	h.Write("/etc/corpus/environment", "CORPUS_CONVERGE_STATE_VERBOSE=true\n")
	defer h.Sh("rm /etc/corpus/environment")
	s.publish("web", "2", "testing", web(t, "2", checks))
	units := func() string {
		return h.Sh("journalctl -u corpus-agent.service -o cat --no-pager | grep -c '^Finished' || true")
	}
	before := units()
	r := h.Run("corpus-agent", "deploy", "--now")
	if r.Code != 0 || !strings.Contains(r.Out, "converged: web 2") {
		t.Fatalf("exit code %d: %s%s", r.Code, r.Out, r.Err)
	}
	if got := page(h); got != "web 2" {
		t.Errorf("the page is %q", got)
	}
	if after := units(); after == before {
		t.Error("the unit did not run")
	}

	s.publish("web", "3", "testing", web(t, "3", checks))
	h.Sh("systemd-run -q --unit=busy flock /var/lib/corpus/lock sleep 3")
	lab.Eventually(t, 10*time.Second, "somebody holds the lock", func() bool {
		return h.Run("flock", "-n", "/var/lib/corpus/lock", "true").Code != 0
	})
	r = h.Run("corpus-agent", "deploy", "--now")
	if r.Code != 0 || !strings.Contains(r.Err, "waiting") || page(h) != "web 3" {
		t.Errorf("after another run: exit code %d, page %q: %s%s", r.Code, page(h), r.Out, r.Err)
	}

	s.publish("web", "4", "testing", slowly(t, "4")...)
	h.Sh(`systemd-run -q --unit=person corpus-agent deploy --now`)
	lab.Eventually(t, 20*time.Second, "the unit runs", func() bool {
		return strings.TrimSpace(h.Run("systemctl", "is-active", "corpus-agent.service").Out) == "activating"
	})
	h.Sh("systemctl kill -s KILL person.service") // as after a lost connection
	lab.Eventually(t, 60*time.Second, "the run continues", func() bool { return page(h) == "web 4" })
	lab.Eventually(t, 60*time.Second, "the run ends well", func() bool {
		return history(t, h)[0].Outcome == "converged" && page(h) == "web 4"
	})
}

// unhealthy deploys versions that the probes of a unit and of a script refuse.
func unhealthy(t *testing.T, s *store, h *lab.Host) {
	good := page(h)
	for version, broken := range map[string]struct {
		check string
		more  map[string]string
		want  string
	}{
		"5": {check: "#!/bin/sh\necho the cache is cold; exit 1\n", want: "the cache is cold"},
		"6": {check: checks,
			more: map[string]string{"corpus.yaml": "health:\n  deadline: 3s\n  interval: 200ms\n" +
				"  probes: [{unit: not-there.service}]\n"}, want: "there is no such unit"},
	} {
		trees := []string{web(t, version, broken.check)}
		if broken.more == nil {
			broken.more = map[string]string{"corpus.yaml": "health:\n  deadline: 3s\n  interval: 200ms\n" +
				"  probes: [{script: bin/check}]\n"}
		}
		s.publish("web", version, "testing", append(trees, tree(t, broken.more))...)
		r := h.Run("corpus-agent", "deploy", "--now")
		if r.Code != 7 || !strings.Contains(r.Out+r.Err, broken.want) {
			t.Errorf("version %s: exit code %d, want it rolled back because %s: %s%s", version, r.Code, broken.want, r.Out,
				r.Err)
		}
		if got := page(h); got != good {
			t.Errorf("version %s: after the rollback the page is %q, want %q", version, got, good)
		}
		if entry := journaled(t, h, "CORPUS_EVENT=rollback"); entry["CORPUS_EXIT_CODE"] != "7" || entry["PRIORITY"] != "3" ||
			!strings.Contains(entry["MESSAGE"].(string), broken.want) {
			t.Errorf("version %s: the journal has %v", version, entry)
		}
	}
}

// takesLong starts a run that takes longer than the start timeout of the unit, and requests more time.
func takesLong(t *testing.T, s *store, h *lab.Host) {
	h.Write("/etc/systemd/system/corpus-agent.service.d/short.conf", "[Service]\nTimeoutStartSec=2s\n")
	h.Sh("systemctl daemon-reload")
	defer h.Sh("rm -r /etc/systemd/system/corpus-agent.service.d; systemctl daemon-reload")
	if r := h.Run("systemd-run", "-q", "--wait", "-p", "Type=oneshot", "-p", "TimeoutStartSec=2s", "sleep",
		"10"); r.Code == 0 {
		t.Error("this systemd does not end a oneshot unit at its timeout")
	}
	s.publish("web", "7", "testing", slowly(t, "7")...)
	h.Sh("systemctl start corpus-agent.service")
	if r := history(t, h)[0]; r.Outcome != "converged" || page(h) != "web 7" {
		t.Errorf("the run is %s (%s), and the page %q", r.Outcome, r.Error, page(h))
	}
	if env := h.Sh("cat /run/slow/env"); strings.Contains(env, "NOTIFY_SOCKET") {
		t.Errorf("the environment of a program of the run has systemd's socket:\n%s", env)
	}
}
