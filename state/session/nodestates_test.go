package session_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// nodesCloud is a cloud with a node of each driver.
const nodesCloud = `form: 1
images:
  tiny: {project: image-tiny, version: '1.0', digest: 'sha256:aa'}
nodes:
  n1: {mode: prod, region: eu1, range4: 10.80.0.0/24, range6: 'fd12:3456:789a::/64', driver: nspawn, slots: 20}
  n2: {mode: prod, region: eu1, range4: 10.80.1.0/24, range6: 'fd12:3456:789a:1::/64', driver: lxc, slots: 20}
guests:
  web1: {id: 0a, node: n1, project: shop, env: prod, image: tiny, address4: 10.80.0.2, address6: 'fd12:3456:789a::2',
    ssh_port: 40000, size: 5GiB, names: [www.example.com]}
  withalongname: {id: 0b, node: n1, project: shop, env: prod, image: tiny, address4: 10.80.0.3,
    address6: 'fd12:3456:789a::3', ssh_port: 40001, size: 5GiB}
  db1: {id: 0c, node: n2, project: shop, env: prod, image: tiny, address4: 10.80.1.2, address6: 'fd12:3456:789a:1::2',
    ssh_port: 40002, size: 5GiB}
`

// nodeStates has the states of the nodes of nodesCloud.
type nodeStates struct {
	t   *testing.T
	h   *statetest.Host
	dir string // of the states
}

func newNodeStates(t *testing.T) nodeStates {
	t.Helper()
	n := nodeStates{t, statetest.NewHost(t), t.TempDir()}
	of := os.DirFS("../../packaging/trees/starter/cloud/salt/config/states")
	if err := os.CopyFS(filepath.Join(n.dir, "states"), of); err != nil {
		t.Fatal(err)
	}
	n.cloud(nodesCloud)
	return n
}

func (n nodeStates) cloud(text string) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, "states", "cloud.yaml"), []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// call calls a function on a node and returns its answer, as JSON if that is not a text.
func (n nodeStates) call(node, function string, args ...any) string {
	n.t.Helper()
	real, err := machine.New(host.Options{})
	if err != nil {
		n.t.Fatal(err)
	}
	s := families.New(session.Settings{Host: n.h.Host, Trees: real.Files, ID: node,
		Grains: value.NewMap("id", node, "service_node", node, "os_family", "Debian"),
		States: []roots.Env{{Name: "base", Dirs: []string{n.dir + "/states"}}}})
	named := value.NewMap()
	if function == renderer {
		named.Set("default_renderer", "jinja")
	}
	got, err := s.Call(n.t.Context(), function, args, named, nil)
	if err != nil {
		n.t.Fatalf("%s: %s %v: %v", node, function, args, err)
	}
	if text, is := got.Value.(string); is {
		return text
	}
	text, err := json.Marshal(got.Value)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(text)
}

// has checks which of several texts the answer of a function has.
func (n nodeStates) has(node, function string, arg any, texts map[string]bool) {
	n.t.Helper()
	answer := n.call(node, function, arg)
	for text, want := range texts {
		if strings.Contains(answer, text) != want {
			n.t.Errorf("%s: %s has %q: %t, want %t\n%s", node, arg, text, !want, want, answer)
		}
	}
}

// Functions that render states and files.
const (
	lowstate = "state.show_lowstate"
	renderer = "slsutil.renderer"
)

// TestGuestsHaveTheirUserIDsForThemselves lets accounts of a node have user IDs of guests, or others.
func TestGuestsHaveTheirUserIDsForThemselves(t *testing.T) {
	n := newNodeStates(t)
	n.h.Put("/etc/login.defs", "SUB_UID_MAX\t\t600100000\n")
	for text, named := range map[string]string{"": "", "bob:100000:65536\nroot:524288:655425536\n": "",
		"al:655949824:65536\n": "", "bob:458752:65536\nann:493216:65536\n": "ann has ann:493216:65536 in /etc/subuid",
		"1000:655949823:1\n": "1000 has", "all:0:4294967295\n": "all has"} {
		n.h.Put("/etc/subuid", text)
		for _, node := range []string{"n1", "n2"} {
			n.has(node, lowstate, "guests", map[string]bool{named: true, "bob has": false,
				"fail_without_changes": named != "", `"text":"root:524288:655425536"`: true,
				`"repl":"SUB_GID_MAX 1878982655"`: true, `{"test":"only root has the user IDs of guests"}`: true})
		}
	}
}

// TestOnlyRootOfAGuestChangesItsKeys checks the owners of the directory that a guest has as /etc/corpus-node: sshd
// takes keys only from one of its root's, and no other user of the node may have a way into it.
func TestOnlyRootOfAGuestChangesItsKeys(t *testing.T) {
	n := newNodeStates(t)
	for node, want := range map[string]struct{ guest, uid, mode string }{
		"n1": {"web1", "524288", "0700"}, "n2": {"db1", "655360", "0711"}} {
		var all []map[string]any
		if err := json.Unmarshal([]byte(n.call(node, lowstate, "guests")), &all); err != nil {
			t.Fatal(err)
		}
		const top = "/var/lib/corpus-guests"
		found := map[string]string{}
		for _, one := range all {
			if one["state"] == "file" {
				text, _ := json.Marshal([]any{one["user"], one["mode"]})
				found[one["name"].(string)] = string(text)
			}
		}
		for file, owner := range map[string]string{top: `["root","` + want.mode + `"]`,
			top + "/" + want.guest:                      "[" + want.uid + `,"0755"]`,
			top + "/" + want.guest + "/authorized_keys": "[" + want.uid + `,"0644"]`} {
			if found[file] != owner {
				t.Errorf("%s: %s has owner and mode %s, want %s", node, file, found[file], owner)
			}
		}
	}
}

// TestPortsOfTheBridgeCarryTheirGuestsAddressesOnly checks the packet filter of the ports of guests.
func TestPortsOfTheBridgeCarryTheirGuestsAddressesOnly(t *testing.T) {
	n := newNodeStates(t)
	for node, want := range map[string]map[string]bool{
		"n1": {`{ "vb-web1" . 10.80.0.2, "vb-9" . 10.80.0.3 }`: true,
			`iifname "vb-web1" @th,64,128 0xfd123456789a00000000000000000002 accept`: true, "10.80.1.2": false},
		"n2": {`elements = { "vb-10" . fd12:3456:789a:1::2 }`: true, "table bridge guests {": true,
			`iifname "vb-10" @th,64,128 0xfd123456789a00010000000000000002 accept`: true},
	} {
		n.has(node, renderer, "salt://nftables.conf.jinja", want)
	}
}

// TestGuestsReachNoMetadataService checks that the packet filter drops what leads to credentials of the node.
func TestGuestsReachNoMetadataService(t *testing.T) {
	text := newNodeStates(t).call("n1", renderer, "salt://nftables.conf.jinja")
	_, chain, _ := strings.Cut(text, "chain forward {")
	dropped, after, _ := strings.Cut(chain, "ct state established")
	for _, address := range []string{"169.254.0.0/16", "fd00:ec2::254", "168.63.129.16", "100.100.100.200"} {
		if !strings.Contains(dropped, address) || !strings.Contains(after, `iifname "guests" accept`) {
			t.Errorf("guests reach %s:\n%s", address, text)
		}
	}
}

// TestHaproxyHasToListenOnAllPorts runs the check of a node's proxy where another program has a port of a guest, and
// where none has.
func TestHaproxyHasToListenOnAllPorts(t *testing.T) {
	n := newNodeStates(t)
	var all []map[string]any
	if err := json.Unmarshal([]byte(n.call("n1", lowstate, "proxy")), &all); err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{}
	for _, one := range all {
		if one["state"] == "cmd" {
			scripts["reload"], scripts["check"] = one["name"].(string), one["unless"].(string)
		}
	}
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(dir+file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("/etc/haproxy/haproxy.cfg", n.call("n1", renderer, "salt://haproxy.cfg.jinja"))
	write("/bin/systemctl", "#!/bin/sh\ntest \"$1\" != show || echo /system.slice/haproxy.service\n")
	write("/bin/ss", "#!/bin/sh\nfor port in 80 443 40000; do "+
		"echo \"LISTEN 0 9 *:$port *:* ((haproxy,pid=7,fd=5))\"; done\n"+
		"echo 'LISTEN 0 9 *:40001 *:* users:((\"haproxy\",pid=6,fd=5),(\"haproxy\",pid=8,fd=7))'\n")
	write("/bin/sleep", "#!/bin/sh\n")
	write("/bin/seq", "#!/bin/sh\necho 1\n")
	write("/proc/8/comm", "haproxy\n")
	for own, says := range map[string]string{"7\n8\n": "", "7\n": "port 40001 is in use by process 8 (haproxy)"} {
		write("/sys/fs/cgroup/system.slice/haproxy.service/cgroup.procs", own)
		for name, script := range scripts {
			script = strings.NewReplacer("/etc/", dir+"/etc/", "/proc/", dir+"/proc/", "/sys/", dir+"/sys/").Replace(script)
			cmd := exec.Command("sh", "-c", script)
			cmd.Env = []string{"PATH=" + dir + "/bin:" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if (err == nil) != (says == "") || name == "reload" && !strings.Contains(string(out), says) {
				t.Errorf("%s with the processes %q: %v\n%s", name, own, err, out)
			}
		}
	}
	n.has("n1", lowstate, "proxy", map[string]bool{`"net.ipv4.ip_local_reserved_ports"`: true, `"40000-50000"`: true})
}

// TestNamesOfGuestsAreInOneBlock checks what a node enters into /etc/hosts: no name of one label, and no other guest.
func TestNamesOfGuestsAreInOneBlock(t *testing.T) {
	n := newNodeStates(t)
	n.has("n1", lowstate, "hosts", map[string]bool{`"fun":"blockreplace"`: true, `"replace":false`: true,
		"10.80.0.2 web1.guests # guest": true,
		"db1":                           false, "host.present": false, `^10[.]80[.]0([.][0-9]+){1}[ `: true})
	n.cloud("domain: example.org\n" + nodesCloud)
	n.has("n1", lowstate, "hosts", map[string]bool{
		"10.80.0.2 web1.guests web1.guests.example.org web1.example.org #": true})
}

// TestNetworkdThatManagesOnlyGuestsDelaysNoBoot runs the condition of systemd-networkd-wait-online.
func TestNetworkdThatManagesOnlyGuestsDelaysNoBoot(t *testing.T) {
	low := newNodeStates(t).call("n1", lowstate, "network")
	_, script, _ := strings.Cut(low, "ExecCondition=/bin/sh -c '")
	script, _, _ = strings.Cut(script, "'")
	for file, waits := range map[string]bool{"40-guests-ports.network": false, "10-netplan-eth0.network": true} {
		dir := t.TempDir()
		for _, name := range []string{"40-guests.network", "40-guests.netdev", file} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command("sh", "-c", strings.Replace(script, "/etc/systemd/network", dir, 1)).CombinedOutput()
		if script == "" || (err == nil) != waits {
			t.Errorf("with %s, %q ends with %v\n%s", file, script, err, out)
		}
	}
}
