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
			if out := r.must("corpus check test tree --grains hosts.json"); !strings.Contains(out, " 0 mistakes, 0 notes") {
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

// TestSerialsOfZonesOnlyGrow renders a zone of the base tree as its file on the host and its records change.
func TestSerialsOfZonesOnlyGrow(t *testing.T) {
	t.Parallel()
	r, call := baseReader(t, "Debian", "12", "bookworm")
	r.must("mkdir -p root/etc/bind/zones")
	serial := func(extra string) int {
		out := r.must(call + "--out newline_values_only slsutil.renderer salt://bind/zone.jinja default_renderer=jinja " +
			"file=/etc/bind/zones/example.org name=example.org zones='{example.org: {primary: 192.0.2.1, " + extra + "}}'")
		r.write("root/etc/bind/zones/example.org", out)
		zone := regexp.MustCompile(`^; serial (\d+) of [0-9a-f]{64}\n(?s:.*)@ SOA \S+ \S+ (\d+) 3600`)
		found := zone.FindStringSubmatch(out)
		if found == nil || found[1] != found[2] {
			t.Fatalf("the zone is\n%s", out)
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := serial("records: {www: {A: 192.0.2.2}}")
	if first < 2026_01_01_00 || first > 2100_01_01_00 {
		t.Errorf("the first serial is %d, not that of a day", first)
	}
	for _, c := range []struct {
		extra string
		want  int
	}{
		{"records: {www: {A: 192.0.2.2}}", first},
		{"records: {www: {A: 192.0.2.3}}", first + 1},
		{"records: {www: {A: [192.0.2.3]}}", first + 1},
		{"ttl: 60, records: {www: {A: 192.0.2.3}}", first + 2},
		{"serial: 2101010107, ttl: 60, records: {www: {A: 192.0.2.3}}", 2101010107},
		{"ttl: 60, records: {www: {A: 192.0.2.3}}", 2101010107},
		{"ttl: 60, records: {www: {A: 192.0.2.4}}", 2101010108},
	} {
		if got := serial(c.extra); got != c.want && got/100 == c.want/100 {
			t.Errorf("%s has the serial %d, want %d", c.extra, got, c.want)
		}
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
  n2: {region: eu1, address: '2001:db8::2', range4: 10.80.1.0/24, range6: 'fd00:1:0:2::/64'}
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
