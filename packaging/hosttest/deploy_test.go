//go:build hosts

package hosttest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

const demo = repository + "/testdata/demo"

// demo publishes a version of the demo's service.
func (s *store) demo(version string) {
	s.t.Helper()
	trees := []string{demo + "/myapp"}
	for _, v := range []string{"1.1", "1.2"} {
		if version >= v {
			trees = append(trees, filepath.Join(demo, "changes", v))
		}
	}
	s.publish("myapp", version, "testing", trees...)
}

// fast sets the interval of a host's timer to two seconds.
func fast(h *lab.Host) {
	h.Write("/etc/systemd/system/corpus-agent.timer.d/fast.conf",
		"[Timer]\nOnCalendar=\nOnCalendar=*:*:0/2\nRandomizedDelaySec=0\nFixedRandomDelay=false\nAccuracySec=100ms\n")
	h.Sh("systemctl daemon-reload; systemctl restart corpus-agent.timer")
}

func page(h *lab.Host) string {
	return strings.TrimSpace(h.Run("curl", "-fsS", "-m", "5", "http://localhost:8080/").Out)
}

type status struct {
	Bootstrapped bool
	Deployed     *struct{ Service, Base struct{ Version string } }
	Quarantined  []json.RawMessage
	CutShort     json.RawMessage `json:"cut_short"`
}

func statusOf(t *testing.T, h *lab.Host) status {
	t.Helper()
	var s status
	if err := json.Unmarshal([]byte(h.Must("corpus-agent", "status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTimerDrives tests the main use: a bare host with the package, configured once with the store and the root of
// trust, follows its channel from then on.
func TestTimerDrives(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("base", "1.0", "production", demo+"/base")
	s.demo("1.0")
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "myapp-testing-local1-1", Network: n, Address: "172.31.0.11"})
	s.reach(h, server)
	install(t, h)

	first := agent(t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json").converged(t)
	if first.States.Skipped != 0 || first.States.Changed == 0 {
		t.Errorf("the first deploy skipped states: %+v", first.States)
	}
	if got := page(h); !strings.Contains(got, "myapp 1.0") {
		t.Fatalf("nginx serves %q", got)
	}
	if got := h.Sh("id -un ada; crontab -l | grep backup-data; cat /etc/motd; sudo -n -l -U ada"); !strings.Contains(got,
		"myapp-testing-local1-1") || !strings.Contains(got, "NOPASSWD") {
		t.Errorf("base left\n%s", got)
	}
	again := agent(t, h, "deploy").converged(t)
	if again.States.Changed != 0 {
		t.Errorf("a second run changes %s", changed(again))
	}

	fast(h)
	h.Sh(
		`systemd-run -q --unit=visitor sh -c 'while :; do curl -fsS -m 5 http://localhost:8080/ >> /root/pages 2>> ` +
			`/root/refused; sleep 0.05; done'`)
	s.demo("1.1")
	lab.Eventually(t, 60*time.Second, "the timer brings 1.1", func() bool {
		return strings.Contains(page(h), "myapp 1.1")
	})

	s.demo("1.2") // a broken version
	lab.Eventually(t, 60*time.Second, "1.2 is quarantined", func() bool { return len(statusOf(t, h).Quarantined) == 1 })
	if got := page(h); !strings.Contains(got, "myapp 1.1") {
		t.Errorf("after a bad version nginx serves %q", got)
	}
	var bad *report
	lab.Eventually(t, 60*time.Second, "the rollback ends and is reported", func() bool {
		for _, r := range history(t, h) {
			if r.Outcome == "rolled back" {
				bad = &r
			}
		}
		return bad != nil
	})
	if bad == nil || bad.Exit != 7 || !strings.Contains(bad.Error, "tls.pem") {
		t.Errorf("the report of the bad version reads %+v", bad)
	}
	lab.Eventually(t, 30*time.Second, "the next tick is content", func() bool {
		return h.Sh("systemctl show -p Result --value corpus-agent.service") == "success" &&
			history(t, h)[0].Outcome == "converged"
	})
	if len(statusOf(t, h).Quarantined) != 1 {
		t.Error("the bad version was retried")
	}
	h.Sh("systemctl stop visitor")
	if h.Exists("/root/refused") {
		if refused := h.Read("/root/refused"); refused != "" {
			t.Errorf("requests of visitors failed:\n%s", refused)
		}
	}
	if pages := h.Read("/root/pages"); !strings.Contains(pages, "myapp 1.0") || !strings.Contains(pages, "myapp 1.1") ||
		strings.Contains(pages, "myapp 1.2") {
		t.Error("visitors should have seen 1.0, then 1.1, and never 1.2")
	}

	if journal := h.Sh("journalctl -u corpus-agent.service --no-pager -o cat"); !strings.Contains(journal, "rolled back") {
		t.Errorf("the journal has no rollback:\n%s", journal)
	}

	h.Reboot()
	lab.Eventually(t, 30*time.Second, "nginx comes back", func() bool { return strings.Contains(page(h), "myapp 1.1") })
	before := len(history(t, h))
	lab.Eventually(t, 30*time.Second, "the timer continues", func() bool { return len(history(t, h)) > before })
}

func changed(r report) string {
	var all []string
	for _, s := range r.Steps {
		if s.Result != "ok" || len(s.Changes) > 2 {
			all = append(all, s.Function+" "+s.Name+": "+s.Result+" "+compact(s.Changes)+" "+s.Comment)
		}
	}
	return strings.Join(all, "\n")
}

// slow returns a service whose converge takes time, and records its progress.
func slow(t *testing.T, version string) string {
	return tree(t, map[string]string{
		"salt/config/states/top.sls": "base:\n  '*':\n    - slow\n",
		"salt/config/states/slow.sls": `
/etc/slow/before:
  file.managed:
    - contents: "` + version + `"
    - makedirs: True

Take some time:
  cmd.run:
    - name: mkdir -p /run/slow && touch /run/slow/` + version + ` && env > /run/slow/env && sleep 4
    - require:
      - file: /etc/slow/before

/etc/slow/after:
  file.managed:
    - contents: "` + version + `"
    - require:
      - cmd: Take some time
`})
}

// TestPowerCut simulates a power failure during a deploy; the next run completes the deploy.
func TestPowerCut(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("slow", "1", "testing", slow(t, "1"))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "slow-testing-local1-1", Network: n, Address: "172.31.0.11", Crash: true})
	s.reach(h, server)
	install(t, h)
	agent(t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json").converged(t)
	fast(h)
	h.Sh("sync")

	s.publish("slow", "2", "testing", slow(t, "2"))
	lab.Eventually(t, 30*time.Second, "the timer starts on version 2", func() bool {
		return h.Run("test", "-e", "/run/slow/2").Code == 0
	})
	h.Cut()
	h.Start()
	if at := h.Run("readlink", "-e", "/srv/service/current"); at.Code != 0 {
		t.Errorf("after the power failure, current leads to no release: %s", h.Sh("ls -l /srv/service/"))
	}
	lab.Eventually(t, 60*time.Second, "version 2 is current", func() bool {
		d := statusOf(t, h).Deployed
		return d != nil && d.Service.Version == "2"
	})
	if got := h.Sh(
		"cat /etc/slow/before /etc/slow/after; readlink -e /srv/service/current /srv/service/next"); strings.Count(got,
		"/releases/2-") != 2 || strings.Count(got, "2\n") < 2 {
		t.Errorf("the host has\n%s", got)
	}
	if broken := h.Sh("find /srv /var/lib/corpus /etc/slow -type f -size 0 | grep -v -e lock || true"); broken != "" {
		t.Errorf("the power failure left empty files:\n%s", broken)
	}
}

// TestStoreOutOfReach disconnects the network: the deployed release continues to converge.
func TestStoreOutOfReach(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	s.publish("slow", "1", "testing", slow(t, "1"))
	server := s.serve(n)
	h := lab.Boot(t, lab.Options{Hostname: "slow-testing-local1-1", Network: n, Address: "172.31.0.11"})
	s.reach(h, server)
	install(t, h)
	agent(t, h, "deploy", "--store", storeURL, "--trust-root", "/root/root.json").converged(t)
	n.Unplug(h)
	h.Sh("rm /etc/slow/before")
	r := agent(t, h, "deploy")
	if r.Exit != 5 || r.Hint == "" || !h.Exists("/etc/slow/before") {
		t.Errorf("without a network: exit code %d, %s, hint %q; converged: %t", r.Exit, r.Error, r.Hint,
			h.Exists("/etc/slow/before"))
	}
}

// TestMinio deploys from a MinIO server, with credentials from the unit's environment file.
func TestMinio(t *testing.T) {
	n, server := lab.NewNetwork(t), minioserver.New(t)
	n.Relay(lab.Gateway+":9000", server.Host)
	s := storeAt(t, server.MinioURL("fleet"))
	s.publish("slow", "1", "testing", slow(t, "1"))
	h := lab.Boot(t, lab.Options{Hostname: "slow-testing-local1-1", Network: n, Address: "172.31.0.11"})
	h.Copy(filepath.Join(s.keys, "root.json"), "/root/root.json")
	install(t, h)
	h.Write("/etc/corpus/environment", "MINIO_ACCESS_KEY="+os.Getenv("MINIO_ACCESS_KEY")+"\nMINIO_SECRET_KEY="+
		os.Getenv("MINIO_SECRET_KEY")+"\n")
	h.Must("-p", "EnvironmentFile=/etc/corpus/environment", "corpus-agent", "deploy",
		"--store", "minio://"+lab.Gateway+":9000/"+minioserver.Bucket+"/fleet?tls=0", "--trust-root", "/root/root.json")

	s.publish("slow", "2", "testing", slow(t, "2"))
	h.Sh("systemctl start corpus-agent.service")
	if got := h.Sh("cat /etc/slow/after"); got != "2" {
		t.Errorf("the host has version %q", got)
	}
	if everything := h.Sh(
		"journalctl -u corpus-agent.service --no-pager; cat /var/lib/corpus/ledger.json " +
			"/var/lib/corpus/reports/*"); strings.Contains(everything, os.Getenv("MINIO_SECRET_KEY")) {
		t.Error("the secret key is on the disk")
	}
}
