package cmd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	baseTree    = "../packaging/trees/base"
	basePillars = "../testdata/base" // switches every state of the tree on
)

// baseReader returns a reader with the base tree, and its call of a function for a suite.
func baseReader(t *testing.T, name, release, suite string) (*reader, string) {
	t.Helper()
	r := newReader(t)
	grains := fmt.Sprintf(`{"os": %q, "os_family": "Debian", "osrelease": %q, "oscodename": %q, "virtual": "physical",
		"fqdn": "one.example.org", "ipv4": ["127.0.0.1", "172.31.0.11"], "ipv6": ["::1"]}`, name, release, suite)
	r.write("grains.json", grains)
	r.write("hosts.json", `{"lab-testing-local1-1": `+grains+"}")
	for from, to := range map[string]string{baseTree: "tree", basePillars: "test"} {
		if err := os.CopyFS(filepath.Join(r.dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	return r, "corpus-agent call --id lab-testing-local1-1 --states tree/states --pillar test/pillar --grains grains.json "
}

// TestBaseTreePlans compiles every SLS file of the base tree for each system, and makes a dry run of them.
func TestBaseTreePlans(t *testing.T) {
	t.Parallel()
	for _, system := range [][3]string{{"Debian", "12", "bookworm"}, {"Debian", "13", "trixie"},
		{"Ubuntu", "24.04", "noble"}} {
		t.Run(system[2], func(t *testing.T) {
			t.Parallel()
			r, call := baseReader(t, system[0], system[1], system[2])
			r.must("cd root && mkdir -p etc/default etc/apt/apt.conf.d etc/postfix etc/ldap etc/sssd etc/ssh/sshd_config.d " +
				"etc/bind usr/local/sbin var/lib/ldap")
			if out := r.must("corpus check test tree --grains hosts.json"); !strings.Contains(out, " 0 mistakes, 1 note\n") {
				t.Errorf("corpus check prints\n%s", out)
			}
			var answer struct {
				Local map[string]struct {
					Result  *bool
					Comment string
					SLS     string `json:"__sls__"`
				}
			}
			out, _ := r.run(call + "--out json state.apply test=True") // the results below say what failed
			if err := json.Unmarshal([]byte(out), &answer); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			tried := map[string]bool{}
			for id, state := range answer.Local {
				tried[state.SLS] = true
				if state.Result != nil && !*state.Result {
					t.Errorf("%s: %s", id, state.Comment)
				}
			}
			files, err := filepath.Glob(baseTree + "/states/*/init.sls")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if sls := filepath.Base(filepath.Dir(file)); !tried[sls] {
					t.Errorf("the pillar of the test does not switch %s on", sls)
				}
			}
		})
	}
}

// TestBackupsThatNodesSet lists what the top file gives to guests of both drivers, and to a machine, if there are
// settings of a node.
func TestBackupsThatNodesSet(t *testing.T) {
	t.Parallel()
	r, _ := baseReader(t, "Debian", "12", "bookworm")
	r.must("mkdir -p root/etc/corpus-node && echo {} >root/etc/corpus-node/backup.json")
	for virtual, want := range map[string]bool{"container": true, "systemd-nspawn": true, "physical": false} {
		r.write("grains.json", fmt.Sprintf(`{"os": "Debian", "os_family": "Debian", "virtual": %q}`, virtual))
		out := r.must("corpus-agent call --id lab-testing-local1-1 --states tree/states --pillar tree/pillar " +
			"--grains grains.json --out json state.show_top")
		if strings.Contains(out, `"restic"`) != want {
			t.Errorf("a host that is %s has %s", virtual, out)
		}
	}
}

// TestSerialsOfZonesOnlyGrow renders a zone of the base tree as its file on the host and its records change.
func TestSerialsOfZonesOnlyGrow(t *testing.T) {
	t.Parallel()
	r, call := baseReader(t, "Debian", "12", "bookworm")
	r.must("mkdir -p root/etc/bind/zones")
	const file = "root/etc/bind/zones/example.org"
	serial := func(extra string) int {
		out := r.must(call + "--out newline_values_only slsutil.renderer salt://bind/zone.jinja default_renderer=jinja " +
			"file=/etc/bind/zones/example.org name=example.org zones='{example.org: {primary: 192.0.2.1, " + extra + "}}'")
		r.write(file, out)
		zone := regexp.MustCompile(`^(; serial (\d+) of [0-9a-f]{64}\n)(?s:.*)@ SOA \S+ \S+ (\d+) 3600`)
		found := zone.FindStringSubmatch(out)
		if found == nil || found[2] != found[3] {
			t.Fatalf("the zone is\n%s", out)
		}
		r.write(file+".serial", found[1]) // as check_cmd does
		n, err := strconv.Atoi(found[2])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := serial("records: {www: {A: 192.0.2.2}}")
	if last < 2026_01_01_00 || last > 2100_01_01_00 || last%100 > 95 {
		t.Errorf("the first serial is %d, not that of a quarter of an hour", last)
	}
	before, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		extra string
		grows bool
		want  int
	}{
		{"records: {www: {A: 192.0.2.2}}", false, 0},
		{"records: {www: {A: 192.0.2.3}}", true, 0},
		{"records: {www: {A: [192.0.2.3]}}", false, 0},
		{"ttl: 60, records: {www: {A: 192.0.2.3}}", true, 0},
		{"serial: 2101010107, ttl: 60, records: {www: {A: 192.0.2.3}}", true, 2101010107},
		{"ttl: 60, records: {www: {A: 192.0.2.3}}", false, 2101010107},
		{"ttl: 60, records: {www: {A: 192.0.2.4}}", true, 2101010108},
	} {
		got := serial(c.extra)
		if got > last != c.grows || got < last || c.want != 0 && got != c.want {
			t.Errorf("%s has the serial %d after %d", c.extra, got, last)
		}
		last = got
	}
	r.write(file, string(before)) // an undo
	if got := serial("records: {www: {A: 192.0.2.2}}"); got != 2101010109 {
		t.Errorf("after an undo, the serial is %d, not greater than the one that was served", got)
	}
}

// TestReverseZonesOfBaseTree renders reverse zones from the addresses of other zones.
func TestReverseZonesOfBaseTree(t *testing.T) {
	t.Parallel()
	r, call := baseReader(t, "Debian", "12", "bookworm")
	for name, want := range map[string]string{
		"2.0.192.in-addr.arpa": "\n7.2.0.192.in-addr.arpa. PTR www.example.org.\n8.2.0.192.in-addr.arpa. PTR example.org.",
		"8.b.d.0.1.0.0.2.ip6.arpa": "\n7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa. PTR " +
			"www.example.org.",
	} {
		out := r.must(call + "--out newline_values_only slsutil.renderer salt://bind/zone.jinja default_renderer=jinja " +
			"file=/none name=" + name + " zones='{example.org: {records: {www: {A: [192.0.2.7], AAAA: 2001:DB8:1:2::7}, " +
			`"@": {A: 192.0.2.8}, "*": {A: 192.0.2.9}, other: {A: 192.0.3.1}}}, ` + name + ": {}}'")
		if !strings.HasSuffix(strings.TrimSpace(out), want) {
			t.Errorf("%s is\n%s", name, out)
		}
	}
}

// TestPillarsThatTheBaseTreeRefuses compiles SLS files with pillars that miss something or open too much.
func TestPillarsThatTheBaseTreeRefuses(t *testing.T) {
	t.Parallel()
	r, call := baseReader(t, "Debian", "12", "bookworm")
	r.write("test/pillar/top.sls", "base: {'*': [base]}\n")
	for _, c := range [][3]string{
		{"nftables", "nftables: {allow: [{from: 192.0.2.0/24, tpc: [9100]}]}", "nftables:allow has no key tpc"},
		{"nftables", "nftables: {allow: [{from: 192.0.2.0/24, tcp: []}]}", "needs tcp or udp for 192.0.2.0/24"},
		{"nftables", "nftables: {allow: [{from: 192.0.2.0/24, tcp: [22], all: true}]}", "nftables:allow needs tcp or udp"},
		{"nftables", "nftables: {allow: [{tcp: [22]}]}", "a rule of nftables:allow lacks from"},
		{"nftables", "nftables: {alow: []}", "nftables has no key alow"},
		{"nftables", "nftables: {allow: [{from: 192.0.2.1, all: true}, {from: '2001:db8::/32', udp: [53]}]}", ""},
		{"restic", "restic: {paths: [/etc]}", "the pillar lacks restic:password"},
		{"restic", "restic: {password: x}", ""},
		{"slapd", "ldap: {server: ldap://a}", "the pillar lacks ldap:base"},
		{"sssd", "ldap: {base: 'dc=a'}", "the pillar lacks ldap:server"},
		{"sssd", "ldap: {base: 'dc=a', server: ldap://a, project: shop}", ""},
		{"bind", "bind: {zones: {192.0.2.0/25: {primary: 192.0.2.1}}}", "192.0.2.0/25 is no reverse zone"},
		{"bind", "bind: {zones: {'2001:db8::/33': {primary: 192.0.2.1}}}", "2001:db8::/33 is no reverse zone"},
		{"resolver", "resolver: {zones: {192.0.2.0/24: [192.0.2.1]}}", ""},
		{"nsupdate", "nsupdate: {records: {a.b: {SSHFP: x}}}", "nsupdate does not know records like SSHFP x"},
		{"nsupdate", "nsupdate: {records: {a.b: {MX: mail}}}", "nsupdate does not know records like MX mail"},
	} {
		r.write("test/pillar/base.sls", c[1]+"\n")
		out, err := r.run(call + "state.show_low_sls " + c[0])
		if refused := err != nil; refused != (c[2] != "") || !strings.Contains(out, c[2]) {
			t.Errorf("%s with %s: %v, want %q:\n%s", c[0], c[1], err, c[2], out)
		}
	}
}

// TestStatesOfBaseTree looks at what states of the base tree do on hosts.
func TestStatesOfBaseTree(t *testing.T) {
	t.Parallel()
	r, call := baseReader(t, "Ubuntu", "24.04", "noble")
	r.write("test/pillar/second.sls", `nsupdate:
  records:
    '*.dyn.example.org': {AAAA: '2001:DB8:0::1', MX: [20 Mail, 10 a.example.org.], TXT: "v=spf1 it's"}
    two.dyn.example.org: {CNAME: www.example.org}
`)
	r.write("test/pillar/top.sls", "base: {'*': [base, second]}\n")
	for sls, wants := range map[string][]string{
		"chrony":  {`"tmp_dir": "/etc/chrony"`},
		"slapd":   {`"openssl"`, `"tmp_dir": "/etc/ldap"`},
		"postfix": {`"libsasl2-modules"`, `"ca-certificates"`},
		"bind":    {`head -n 1 "$0" > /etc/bind/zones/example.org.serial`},
		"nsupdate": {`dig +short '@172.31.0.11' '*.dyn.example.org' AAAA | tr A-Z a-z | sort)" = "$(printf`,
			`printf '%s\n' '2001:db8::1' | sort`,
			`printf '%s\n' '20 mail.' '10 a.example.org.' | sort`, `'*.dyn.example.org' TXT | sort`,
			`printf '%s\n' '"v=spf1 it'\''s"' | sort`, `printf '%s\n' 'www.example.org.' | sort`,
			`update add *.dyn.example.org 300 TXT "v=spf1 it's"`},
	} {
		out := r.must(call + "--out json state.show_low_sls " + sls)
		out = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\u003e`, ">").Replace(out)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("the states of %s lack %s:\n%s", sls, want, out)
			}
		}
		if sls == "postfix" && strings.Contains(out, `"reload"`) {
			t.Errorf("Postfix is reloaded, and keeps its interfaces:\n%s", out)
		}
	}
	render := call + "--out newline_values_only slsutil.renderer default_renderer=jinja "
	for args, wants := range map[string][]string{
		`salt://bind/named.conf.jinja mine='["192.0.2.1"]' bind='{options: [], recursion: [], loopback: false}' ` +
			`zones='{a.org: {primary: 192.0.2.1, updates: {k: [web1, "@"]}}, b.org: {primary: 192.0.2.1, updates: c}}'`: {
			`grant "k" name web1.a.org;`, `grant "k" name a.org;`, `grant "c" zonesub;`},
		"salt://nftables/nftables.conf.jinja nftables='{ping: true, tcp: [], udp: [], rules: [], " +
			"allow: [{from: 192.0.2.1, all: true}]}'": {"ip6 saddr fe80::/10 udp sport 547", "ip saddr 192.0.2.1 accept"},
		"salt://slapd/slapd.conf.jinja ldap='{base: dc=a, certificate: \"\"}'": {"maxsize 1073741824"},
	} {
		out := r.must(render + args)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("the file lacks %s:\n%s", want, out)
			}
		}
	}
}

// TestBackupsOfBaseTree runs corpus-backup of the base tree with a program in the place of restic.
func TestBackupsOfBaseTree(t *testing.T) {
	t.Parallel()
	r, call := baseReader(t, "Debian", "12", "bookworm")
	script := r.must(call + "--out newline_values_only slsutil.renderer salt://restic/corpus-backup.jinja " +
		`default_renderer=jinja restic='{"paths": ["` + r.dir + `/a b", "` + r.dir + `/gone"], "dumps": "", "keep": {}}'`)
	r.write("backup", strings.NewReplacer("/etc/restic/environment", r.dir+"/environment", "/var/lib/corpus-backup",
		r.dir+"/state").Replace(script))
	r.write("environment", "export RESTIC_REPOSITORY="+r.dir+"/repository\n")
	r.write("a b", "")
	r.write("restic", `#!/bin/sh
case $1 in
cat) [ -d "$RESTIC_REPOSITORY" ] ;;
init) mkdir "$RESTIC_REPOSITORY" ;;
backup) for last; do :; done; echo "saves $last" ;;
esac
`)
	r.must("chmod 755 restic")
	backup := func(good bool, want string) {
		t.Helper()
		out, err := r.run("PATH=$PWD:$PATH sh backup")
		if (err == nil) != good || !strings.Contains(out, want) {
			t.Errorf("the backup ends with %v, want %q:\n%s", err, want, out)
		}
	}
	backup(false, "there is no "+r.dir+"/gone\nsaves "+r.dir+"/a b")
	r.write("gone", "")
	backup(true, "saves "+r.dir+"/gone")
	r.must("rmdir repository")
	backup(false, "the repository with the backups of this host cannot be opened")
	r.must("test ! -e repository && rm state/repository")
	backup(true, "saves")
}

// write writes a file of the reader.
func (r *reader) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// TestZonesOfACloud compiles the DNS of a cloud for a node that is its primary and for one that has no part in it.
func TestZonesOfACloud(t *testing.T) {
	t.Parallel()
	r, _ := baseReader(t, "Debian", "12", "bookworm")
	of := os.DirFS("../packaging/trees/starter/cloud/salt/config/states")
	if err := os.CopyFS(filepath.Join(r.dir, "cloud"), of); err != nil {
		t.Fatal(err)
	}
	r.write("cloud/cloud.yaml", `domain: cloud.example.org
nodes:
  n1: {region: eu1, address: 192.0.2.1, range4: 10.80.0.0/24, range6: 'fd00:1:0:1::/64'}
  n2: {region: eu1, address: '2001:db8::2', range4: 10.80.1.0/25, range6: 'fd00:1:0:2::/65'}
guests:
  web1: {node: n1, address4: 10.80.0.2, address6: 'fd00:1:0:1::2', names: [www.cloud.example.org, www.example.com]}
`)
	r.write("dns.yaml", "dns: {primary: n1, secondaries: [n2], key: transfer}\n")
	states := func(node, address string) string {
		r.write("node.json", `{"os_family": "Debian", "service_node": "`+node+`", "ipv4": ["`+address+`"]}`)
		return r.must("corpus-agent call --states cloud --states tree/states --pillar dns.yaml --grains node.json " +
			"--out json state.show_lowstate dns")
	}
	low := states("n1", "192.0.2.1")
	for _, want := range []string{`"/etc/bind/zones/cloud.example.org"`, `"/etc/bind/zones/1.80.10.in-addr.arpa"`,
		`"/etc/bind/zones/1.0.0.0.0.0.0.0.1.0.0.0.0.0.d.f.ip6.arpa"`, `"2001:db8::2"`, `"www.cloud.example.org."`,
		`"web1.guests"`} {
		if !strings.Contains(low, want) {
			t.Errorf("the states of the primary lack %s:\n%s", want, low)
		}
	}
	if strings.Contains(low, "www.example.com") {
		t.Errorf("the zone has a name of another domain:\n%s", low)
	}
	if low := states("n3", "192.0.2.3"); strings.Contains(low, "bind") {
		t.Errorf("a node that the pillar does not name has\n%s", low)
	}
}

// TestAccountsOfACloud compiles the LDAP server of a node with the users of its cloud and those of the pillar.
func TestAccountsOfACloud(t *testing.T) {
	t.Parallel()
	r, _ := baseReader(t, "Debian", "12", "bookworm")
	of := os.DirFS("../packaging/trees/starter/cloud/salt/config/states")
	if err := os.CopyFS(filepath.Join(r.dir, "cloud"), of); err != nil {
		t.Fatal(err)
	}
	r.write("cloud/cloud.yaml", `users:
  alice: {uid: 10001, name: Alice Ash, ssh_keys: [ssh-ed25519 AAAA alice]}
  bob: {uid: 10002, closed: "yes"}
projects:
  shop: {gid: 20001, members: [alice], sudo: [alice /usr/bin/systemctl restart nginx, alice /bin/true]}
`)
	render := func(users string) (string, error) {
		r.write("ldap.yaml", "ldap: {base: 'dc=a', users: {"+users+"}, projects: {blog: {gid: 20009, members: [carl]}}}\n")
		return r.run("corpus-agent call --states cloud --states tree/states --pillar ldap.yaml --grains grains.json " +
			"--out json state.show_low_sls slapd")
	}
	low, err := render("carl: {uid: 10009}")
	for _, want := range []string{`"name": "Alice Ash"`, `"/usr/bin/systemctl restart nginx"`, `"/bin/true"`,
		`"!authenticate"`, `"uid": 10009`, `"gid": 20009`} {
		if err != nil || !strings.Contains(low, want) {
			t.Errorf("the states lack %s (%v):\n%s", want, err, low)
		}
	}
	if strings.Contains(low, "bob") {
		t.Errorf("the states have a user who was removed:\n%s", low)
	}
	for users, says := range map[string]string{"alice: {uid: 10005}": "ldap:users:alice of the pillar is among",
		"carl: {uid: 10001}": "carl and alice have the same uid"} {
		if out, err := render(users); err == nil || !strings.Contains(out, says) {
			t.Errorf("with %s: %v, want %q:\n%s", users, err, says, out)
		}
	}
}

// TestBackupsOfGuests compiles the file that a node hands to a guest with backups, and the states restic of the guest.
func TestBackupsOfGuests(t *testing.T) {
	t.Parallel()
	r, call := baseReader(t, "Debian", "12", "bookworm")
	r.must("sed -i s/physical/container/ grains.json")
	of := os.DirFS("../packaging/trees/starter/cloud/salt/config/states")
	if err := os.CopyFS(filepath.Join(r.dir, "cloud"), of); err != nil {
		t.Fatal(err)
	}
	r.write("cloud/cloud.yaml", `images: {tiny: {project: tiny, version: "1", digest: 'sha256:00'}}
nodes: {n1: {driver: nspawn, region: eu1, range4: 10.80.0.0/24, range6: 'fd00:1:0:1::/64'}}
guests:
  db1: {id: x, node: n1, project: shop, env: prod, image: tiny, size: 5GiB, ssh_port: 40000, address4: 10.80.0.2,
    address6: 'fd00:1:0:1::2', backup_to: '/srv/b', backup_paths: [/srv/data], backup_keep: [daily=3]}
`)
	r.write("guests.yaml", "guests: {backups: {db1: {password: it's secret}}}\n")
	r.write("node.json", `{"os_family": "Debian", "service_node": "n1"}`)
	var answer struct {
		Local []struct {
			ID       string `json:"__id__"`
			Name     string
			Contents any
			MayFail  bool `json:"may_fail"`
		}
	}
	out := r.must("corpus-agent call --states cloud --pillar guests.yaml --grains node.json --out json " +
		"state.show_low_sls guests")
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	contents := ""
	for _, state := range answer.Local {
		if strings.Contains(state.ID, "db1") && !state.MayFail {
			t.Errorf("if the state %q of one guest fails, the others are not started", state.ID)
		}
		if state.Name == "/var/lib/corpus-guests/db1/backup.json" {
			contents = fmt.Sprint(state.Contents)
		}
	}
	r.must("mkdir -p root/etc/corpus-node")
	r.write("root/etc/corpus-node/backup.json", contents)
	r.write("test/pillar/base.sls", "motd: none\n")
	out = r.must(call + "--out json state.show_lowstate")
	for _, want := range []string{`"password": "it's secret"`, `"/srv/data"`, `"daily": 3`, `"repository": "/srv/b"`} {
		if !strings.Contains(out, want) {
			t.Errorf("with %q, the states of the guest lack %s:\n%s", contents, want, out)
		}
	}
	r.write("test/pillar/base.sls", "tools: {restic: false}\n")
	if out := r.must(call + "--out json state.show_lowstate"); strings.Contains(out, "restic") {
		t.Errorf("the pillar does not switch backups off:\n%s", out)
	}
}
