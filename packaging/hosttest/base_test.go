//go:build hosts

package hosttest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// tooled returns a base whose hosts can install what the base tree installs.
func tooled(suite string) lab.Base {
	b := lab.Standard(suite)
	b.Packages = append(b.Packages, "nftables", "openssh-server")
	b.Offers = []string{"chrony", "unattended-upgrades", "fail2ban", "python3-systemd", "postfix", "haproxy", "restic",
		"prometheus-node-exporter", "bind9", "bind9-utils", "bind9-dnsutils", "libsasl2-modules", "unbound", "slapd",
		"ldap-utils", "sssd-ldap", "sssd-tools", "libnss-sss", "libpam-sss", "libsss-sudo", "postgresql",
		"mariadb-server"}
	return b
}

// baseTree publishes the base tree with a pillar.
func baseTree(t *testing.T, pillar string) *store {
	t.Helper()
	s := newStore(t)
	s.publish("base", "1", "production", repository+"/packaging/trees/base", pillar)
	s.publish("lab", "1", "testing", tree(t, map[string]string{
		"salt/config/states/top.sls": "base:\n  '*': [lab]\n", "salt/config/states/lab.sls": "Nothing:\n  test.nop: []\n",
		"corpus.yaml": "name: lab\n"}))
	return s
}

// baseHost returns a host that installed the agent and deployed nothing.
func baseHost(t *testing.T, s *store, n *lab.Network, suite, number string) *lab.Host {
	t.Helper()
	h := lab.Boot(t, lab.Options{Base: tooled(suite), Hostname: "lab-testing-local1-" + number, Network: n,
		Address: "172.31.0.1" + number})
	h.CopyTree(s.dir, "/opt/store")
	h.Copy(s.keys+"/root.json", "/root/root.json")
	install(t, h)
	h.Write("/etc/corpus/agent.yaml", "store: file:///opt/store\ntop: merge\n")
	h.Write("/etc/corpus-node/backup.json", `{"repository": "/srv/of-node", "paths": ["/etc", "/root", "/srv/data"], `+
		`"keep": {"daily": 2}}`) // as a node hands it to a guest
	// Containers have no clock of their own, and the unit of chrony is skipped in them.
	h.Write("/etc/systemd/system/chrony.service.d/lab.conf", "[Unit]\nConditionCapability=\n")
	h.Write("/etc/default/chrony", "DAEMON_OPTS=\"-F -1 -x\"\n")
	h.Sh("systemctl daemon-reload; grep -q ' lab-testing' /etc/hosts || echo 127.0.1.1 $(hostname) >> /etc/hosts")
	return h
}

// TestBaseTreeOnRealHosts deploys the base tree twice and uses what it set up.
func TestBaseTreeOnRealHosts(t *testing.T) {
	for _, suite := range lab.Suites() {
		t.Run(suite, func(t *testing.T) {
			s, n := baseTree(t, repository+"/testdata/base"), lab.NewNetwork(t)
			one, two := baseHost(t, s, n, suite, "1"), baseHost(t, s, n, suite, "2")
			for _, h := range []*lab.Host{one, two} {
				deployTwice(t, h)
			}
			one.Sh("systemctl start corpus-agent.service") // writes the metrics
			for command, want := range map[string]string{
				"fail2ban-client ping":                             "pong",
				"postconf -nh relayhost inet_interfaces":           "[mail.example.org]:587\nloopback-only",
				"curl -fsS http://127.0.0.1:80/metrics":            "corpus_agent_", // through haproxy
				"nft list chain inet base input":                   "policy drop",
				"dig +short @172.31.0.11 mail.example.org":         "172.31.0.20",
				"dig +short @172.31.0.12 mail.example.org AAAA":    "2001:db8::20",
				"dig +short @172.31.0.12 -x 172.31.0.20":           "mail.example.org.",
				"dig +short @172.31.0.12 -x 2001:db8::20":          "mail.example.org.",
				"dig +short @172.31.0.11 two.dyn.example.org":      "172.31.0.12\n172.31.0.13",
				"dig +noall +comments @172.31.0.12 example.com":    "REFUSED",
				"dig @172.31.0.11 example.org AXFR | tail -n 2":    "Transfer failed",
				"getent hosts www":                                 "mail.example.org", // from the cache
				"id -nG alice":                                     "shop",
				"sss_ssh_authorizedkeys alice":                     "ssh-ed25519 AAAA",
				"sudo -l -U alice":                                 "(root) NOPASSWD: ALL",
				"sudo -l -U bob":                                   "not allowed to run sudo",
				"systemctl --failed --no-legend; echo none failed": "none failed",
				"systemctl list-timers --no-legend":                "corpus-backup.timer",
			} {
				lab.Eventually(t, time.Minute, command+" has "+want, func() bool {
					return strings.Contains(one.Run("sh", "-c", command+" 2>&1").Out, want)
				})
			}
		})
	}
}

// TestBackupsOfGuestsAreRestored deploys the base tree on a guest whose node has settings of backups for it, saves
// files and databases, removes them, and restores them with the documented commands.
func TestBackupsOfGuestsAreRestored(t *testing.T) {
	for _, suite := range lab.Suites() {
		t.Run(suite, func(t *testing.T) {
			s := baseTree(t, tree(t, map[string]string{"pillar/base.sls": "restic: {password: 'it''s secret'}\n"}))
			h := baseHost(t, s, lab.NewNetwork(t), suite, "1")
			deployTwice(t, h)
			backsUp(t, h)
		})
	}
}

// deployTwice compares a dry run of the first deploy with the deploy, and checks that another run changes nothing.
func deployTwice(t *testing.T, h *lab.Host) {
	t.Helper()
	dry := agent(t, h, "deploy", "--trust-root", "/root/root.json", "--test").converged(t)
	done := agent(t, h, "deploy", "--trust-root", "/root/root.json").converged(t)
	var predicted []string
	for _, step := range dry.Steps {
		if step.Unknown || step.Result == "would change" {
			predicted = append(predicted, step.ID+" "+step.Function)
		}
	}
	for _, step := range done.Steps {
		if id := step.ID + " " + step.Function; step.Result == "changed" && !slices.Contains(predicted, id) {
			t.Errorf("the dry run did not predict %s: %s", id, step.Comment)
		}
	}
	if again := agent(t, h, "converge").converged(t); again.States.Changed != 0 {
		t.Errorf("the second run changed the host:\n%s", changed(again))
	}
}

// backsUp saves files and databases, removes them and restores them.
func backsUp(t *testing.T, h *lab.Host) {
	t.Helper()
	h.Sh("apt-get install -y --no-install-recommends postgresql mariadb-server")
	h.Sh("mkdir -p /srv/data/below && head -c 300000 /dev/urandom > /srv/data/blob && " +
		"ln -s ../blob /srv/data/below/link && chown -R games /srv/data && chmod 600 /srv/data/blob")
	h.Sh(`runuser -u postgres -- psql -qc "create table t as select generate_series(1, 100) as a"`)
	h.Sh(`mysql -e "create database shop; create table shop.t (a int); insert into shop.t values (1), (20), (300)"`)
	const list = "cd /srv/data && find . -printf '%p %m %u %l\\n' | sort; sha256sum blob"
	before := h.Sh(list)
	h.Sh("systemctl start corpus-backup.service; rm -r /srv/data /var/backups/dumps")
	h.Sh("runuser -u postgres -- psql -qc 'drop table t'; mysql -e 'drop database shop'")
	h.Sh("corpus-backup restore latest --target / --include /srv/data")
	h.Sh("corpus-backup dump latest /var/backups/dumps/postgres.sql | runuser -u postgres -- psql -q")
	h.Sh("corpus-backup dump latest /var/backups/dumps/mysql.sql | mysql")
	if !h.Exists("/srv/of-node/config") {
		t.Error("the backups are not in the repository that the node names")
	}
	if after := h.Sh(list); after != before {
		t.Errorf("the files are\n%s\nnot\n%s", after, before)
	}
	if rows := h.Sh("runuser -u postgres -- psql -tAc 'select count(*) from t'"); rows != "100" {
		t.Errorf("the table of PostgreSQL has %s rows", rows)
	}
	if sum := h.Sh("mysql -BNe 'select sum(a) from shop.t'"); sum != "321" {
		t.Errorf("the rows of MariaDB add up to %s", sum)
	}
}
