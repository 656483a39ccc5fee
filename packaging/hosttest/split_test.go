//go:build hosts

package hosttest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// jointPackage makes a package with both programs, as before they were split: the content of both packages, in an
// earlier version.
func jointPackage(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "joint")
	run(t, "dpkg-deb", "-R", deb(t), dir)
	run(t, "dpkg-deb", "-x", built(t, "corpus"), dir)
	run(t, "rm", "-r", dir+"/usr/share/doc/corpus", dir+"/usr/lib/systemd/system/corpus-refresh@.service",
		dir+"/usr/lib/systemd/system/corpus-refresh@.timer", dir+"/usr/share/lintian/overrides/corpus")
	run(t, "sh", "-c", "cd "+dir+" && find usr -type f -exec md5sum {} + > DEBIAN/md5sums")
	run(t, "sed", "-i", "s/^Version: .*/Version: 0.0.0/", dir+"/DEBIAN/control")
	file := dir + ".deb"
	run(t, "dpkg-deb", "-Znone", "--root-owner-group", "-b", dir, file)
	return file
}

// TestUpgradeFromTheJointPackage upgrades hosts that have one package with both programs, in the usual ways of
// administrators.
func TestUpgradeFromTheJointPackage(t *testing.T) {
	both := []string{"/usr/bin/corpus", "/usr/share/man/man1/corpus-publish.1.gz",
		"/usr/share/bash-completion/completions/corpus"}
	cases := map[string]struct {
		commands  []string
		refused   string // the command that has to fail, before the others
		hasCorpus bool
	}{
		"only the agent": {commands: []string{"dpkg -i /root/corpus-agent.deb"}},
		"both with apt": {commands: []string{"apt-get install -y /root/corpus.deb /root/corpus-agent.deb"},
			hasCorpus: true},
		"both with dpkg": {commands: []string{"dpkg -i /root/corpus-agent.deb /root/corpus.deb"}, hasCorpus: true},
		"the other first": {commands: []string{"dpkg -B -i /root/corpus.deb /root/corpus-agent.deb"},
			hasCorpus: true},
		"the agent, then the other": {commands: []string{"dpkg -i /root/corpus-agent.deb", "dpkg -i /root/corpus.deb"},
			hasCorpus: true},
		"the other beside the joint one": {refused: "dpkg -i /root/corpus.deb",
			commands: []string{"dpkg -i /root/corpus-agent.deb", "dpkg -i /root/corpus.deb"}, hasCorpus: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := lab.Boot(t, lab.Options{Hostname: "myapp-testing-local1-1"})
			h.Copy(jointPackage(t), "/root/joint.deb")
			h.Copy(deb(t), "/root/corpus-agent.deb")
			h.Copy(built(t, "corpus"), "/root/corpus.deb")
			h.Sh("apt-get install -y /root/joint.deb; corpus --version")
			h.Sh("echo 'service: mine' >> /etc/corpus/agent.yaml; mkdir -p /var/lib/corpus/trust; touch " +
				"/var/lib/corpus/ledger.json")
			if c.refused != "" {
				if r := h.Run("sh", "-c", c.refused+" </dev/null"); r.Code == 0 {
					t.Errorf("%s succeeds beside the joint package:\n%s", c.refused, r.Out)
				}
			}
			for _, command := range c.commands {
				h.Sh(command + " </dev/null")
			}
			for _, path := range both {
				if h.Exists(path) != c.hasCorpus {
					t.Errorf("%s exists: %t, want %t", path, !c.hasCorpus, c.hasCorpus)
				}
				if owner := h.Run("dpkg", "-S", path).Out; c.hasCorpus && !strings.HasPrefix(owner, "corpus: ") {
					t.Errorf("dpkg reports for %s: %s", path, owner)
				}
			}
			if c.hasCorpus {
				h.Sh("corpus --version")
			}
			if got := h.Sh("dpkg --audit; dpkg --verify corpus-agent"); got != "" {
				t.Errorf("dpkg --verify prints:\n%s", got)
			}
			if !strings.Contains(h.Read("/etc/corpus/agent.yaml"), "service: mine") || !h.Exists("/var/lib/corpus/ledger.json") {
				t.Error("the upgrade removed files of the administrator or the host")
			}
			if got := timer(h); got != "enabled active" {
				t.Errorf("after the upgrade the timer is %s", got)
			}
			if r := h.Run("dpkg", "-i", "/root/joint.deb"); c.hasCorpus && r.Code == 0 {
				t.Error("the joint package can be installed beside the package corpus")
			}
		})
	}
}

// TestRefreshTimer has the workstation's timer renew a store with a user's keys.
func TestRefreshTimer(t *testing.T) {
	h := lab.Boot(t, lab.Options{Hostname: "workstation"})
	h.Copy(built(t, "corpus"), "/root/corpus.deb")
	h.Sh("apt-get install -y /root/corpus.deb; useradd -m alice; mkdir /srv/store; chown alice /srv/store")
	as := "runuser -u alice -- env HOME=/home/alice CORPUS_STORE=file:///srv/store CORPUS_KEYS=/home/alice/keys corpus "
	h.Sh(as + "keys new; " + as + "store init")
	if r := h.Run("sh", "-c",
		"systemd-analyze verify --man=no corpus-refresh@alice.service corpus-refresh@alice.timer"); r.Code != 0 ||
		strings.Contains(r.Err, "corpus-refresh") {
		t.Errorf("systemd-analyze verify: %s", r.Err)
	}
	if r := h.Run("systemctl", "start", "corpus-refresh@alice.service"); r.Code == 0 {
		t.Error("the service succeeds without its settings")
	}
	if log := h.Sh("journalctl -u corpus-refresh@alice --no-pager"); !strings.Contains(log, "error: no store was given") {
		t.Errorf("without settings the journal has %s", log)
	}
	h.Sh(
		"install -d -m 700 /etc/corpus/refresh; printf 'CORPUS_STORE=file:///srv/store\nCORPUS_KEYS=/home/alice/keys\n' " +
			"> /etc/corpus/refresh/alice.env; chown -R root /srv/store")
	for range 2 { // the second start does not wait for a retry of the first
		if r := h.Run("timeout", "60", "systemctl", "start", "corpus-refresh@alice.service"); r.Code != 1 {
			t.Errorf("a start without permission to write ends with %d: %s", r.Code, r.Err)
		}
	}
	h.Sh("chown -R alice /srv/store")
	before := h.Read("/srv/store/metadata/timestamp.json")
	h.Sh("cp -r /home/alice/keys /root/keys")
	h.Sh("cd /root && " + recipe(t, "systemctl enable --now corpus-refresh@alice.timer", "s3://bucket/prefix",
		"file:///srv/store"))
	if h.Read("/srv/store/metadata/timestamp.json") == before {
		t.Error("the commands of docs/trust.md do not refresh the store at once")
	}
	before = h.Read("/srv/store/metadata/timestamp.json")
	h.Sh("mkdir -p /etc/systemd/system/corpus-refresh@.timer.d; printf " +
		"'[Timer]\\nOnCalendar=\\nOnCalendar=*:*:0/2\\nRandomizedDelaySec=0\\nAccuracySec=100ms\\n' > " +
		"/etc/systemd/system/corpus-refresh@.timer.d/fast.conf; systemctl daemon-reload; systemctl restart " +
		"corpus-refresh@alice.timer")
	lab.Eventually(t, time.Minute, "the timer signs the timestamp anew", func() bool {
		return h.Read("/srv/store/metadata/timestamp.json") != before
	})
	if got := h.Sh(
		"systemctl show -p User --value corpus-refresh@alice.service; stat -c %U /srv/store/metadata/timestamp.json; " +
			"systemctl is-enabled corpus-refresh@alice.timer"); got != "alice\nalice\nenabled" {
		t.Errorf("the service is %s", got)
	}
	h.Sh("apt-get purge -y corpus")
	if h.Exists("/etc/systemd/system/timers.target.wants/corpus-refresh@alice.timer") ||
		!h.Exists("/etc/corpus/refresh/alice.env") || !h.Exists("/home/alice/keys") {
		t.Error("a purge leaves the timer, or removes keys or settings of their owner")
	}
	if active := strings.TrimSpace(h.Run("systemctl", "is-active", "corpus-refresh@alice.timer").Out); active == "active" {
		t.Error("the timer remains after the removal of its package")
	}
}

// recipe returns the block of commands of docs/trust.md that contains a line, with one text replaced.
func recipe(t *testing.T, line, from, to string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if strings.Contains(block, "    "+line) {
			plain := strings.ReplaceAll("\n"+block, "\n    ", "\n")
			return "set -e" + strings.ReplaceAll(plain, from, to)
		}
	}
	t.Fatalf("docs/trust.md has no block with %q", line)
	return ""
}
