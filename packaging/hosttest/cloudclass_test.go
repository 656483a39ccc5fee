//go:build hosts

package hosttest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// classNodes is the nodes of a cloud whose members the test follows.
type classNodes struct {
	t     *testing.T
	hosts map[string]*lab.Host
	off   map[string]bool
}

// running returns the nodes that run each member of the class app, by what systemd says, and lets all nodes look at the
// class, as their timers do each minute.
func (c *classNodes) running() map[string][]string {
	all := map[string][]string{}
	for name, h := range c.hosts {
		if c.off[name] {
			continue
		}
		_ = h.Run("systemctl", "start", "corpus-members.service")
		for i := range 4 {
			member := "app" + strconv.Itoa(i+1)
			if h.Run("systemctl", "is-active", "-q", "systemd-nspawn@"+member).Code == 0 {
				all[member] = append(all[member], name)
			}
		}
	}
	return all
}

// wants waits until members 1 to count run, each on one node, and no others.
func (c *classNodes) wants(what string, count int, within time.Duration) map[string][]string {
	c.t.Helper()
	began, all := time.Now(), map[string][]string{}
	for ; time.Since(began) < within; time.Sleep(2 * time.Second) {
		all = c.running()
		right := len(all) == count
		for i := range count {
			right = right && len(all["app"+strconv.Itoa(i+1)]) == 1
		}
		if right {
			c.t.Logf("%s: %v after %v", what, all, time.Since(began).Round(time.Second))
			return all
		}
	}
	for name, h := range c.hosts {
		if !c.off[name] {
			c.t.Logf("%s: %s", name, h.Run("sh", "-c", "cat /var/lib/corpus/members.json; "+
				"journalctl -u corpus-members -n 20 --no-pager; corpus-agent status | tail -n 40").Out)
		}
	}
	c.t.Fatalf("%s: %v runs, want %d members", what, all, count)
	return nil
}

// busy sets the metric of all members that run.
func (c *classNodes) busy(value string) {
	c.t.Helper()
	for member, nodes := range c.running() {
		for _, node := range nodes {
			c.hosts[node].Sh("echo " + value + " >/var/lib/machines/" + member + "/srv/busy")
		}
	}
}

// sharingNode boots a node that has the directory of the store, and deploys it.
func sharingNode(t *testing.T, s *store, n *lab.Network, number string) *lab.Host {
	t.Helper()
	h := cloudNode(t, s, n, "n"+number, "172.31.0.1"+number, func(h *lab.Host) {
		dir := filepath.Join(h.Root, "srv", "store")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, "mount", "--bind", s.dir, dir)
		t.Cleanup(func() { _ = exec.Command("umount", "--lazy", dir).Run() })
	})
	h.Write("/etc/corpus/agent.yaml", "store: file:///srv/store\n")
	h.Copy(filepath.Join(s.keys, "root.json"), "/root/root.json")
	agent(t, h, "deploy", "--trust-root", "/root/root.json").converged(t)
	return h
}

// TestThreeNodesScaleAClass runs a class on three nodes: its members start, more do when they are busy, those of a node
// that cannot reach the store or has no power come up on others, and fewer run when they are idle. The nodes share the
// directory of the store.
func TestThreeNodesScaleAClass(t *testing.T) {
	n, s := lab.NewNetwork(t), newStore(t)
	for _, i := range []string{"1", "2", "3"} {
		s.corpus("node", "add", "n"+i, "--mode", "prod", "--region", "eu1", "--address", "172.31.0.1"+i, "--yes")
	}
	s.corpus("node", "domain", "cloud.example.org", "--yes")
	guestImage(t, s)
	s.corpus(strings.Fields("guest class set app --project shop --env prod --image tiny --min 2 --max 4 --metric busy " +
		"--answers :8080/metrics --above 50 --below 10 --for 1m --drain 1m --away 3m --yes")...)
	c := &classNodes{t: t, hosts: map[string]*lab.Host{}, off: map[string]bool{}}
	for _, i := range []string{"1", "2", "3"} {
		c.hosts["n"+i] = sharingNode(t, s, n, i)
	}
	first := c.wants("the minimum", 2, 4*time.Minute)
	node := first["app1"][0]
	if other := first["app2"][0]; other == node {
		t.Errorf("both members run on %s", node)
	}
	h := c.hosts[node]
	asked := func(h *lab.Host) string {
		return h.Run("curl", "-s", "-m", "5", "-H", "Host: app.cloud.example.org", "http://127.0.0.1/").Out
	}
	lab.Eventually(t, time.Minute, "the proxy leads to the member", func() bool {
		return strings.Contains(asked(h), "shop-prod-eu1-app1")
	})
	c.busy("90")
	c.wants("busy members", 4, 6*time.Minute)
	c.busy("30")
	h.Sh("mount -t tmpfs none /srv/store")
	lab.Eventually(t, 8*time.Minute, "another node runs the member of a node that cannot reach the store",
		func() bool { on := c.running()["app1"]; return len(on) == 2 && slices.Contains(on, node) })
	c.busy("30")
	h.Sh("umount /srv/store")
	back := c.wants("the node reaches the store again", 4, 5*time.Minute)
	if back["app1"][0] == node || h.Exists("/var/lib/machines/app1") {
		t.Errorf("the members run on %v, and node %s, which lost app1, has %s", back, node, h.Sh("ls /var/lib/machines"))
	}
	c.busy("30")
	dead := back["app1"][0]
	run(t, "umount", "--lazy", filepath.Join(c.hosts[dead].Root, "srv", "store"))
	c.hosts[dead].Cut()
	c.off[dead] = true
	c.wants("a node without power", 4, 8*time.Minute)
	var info struct{ Wanted int }
	out := s.corpus("guest", "class", "info", "app", "--json")
	if err := json.Unmarshal([]byte(out), &info); err != nil || info.Wanted != 4 {
		t.Errorf("corpus guest class info says (%v)\n%s", err, out)
	}
	c.busy("0")
	c.wants("idle members", 2, 9*time.Minute)
	delete(c.hosts, dead)
	for name, h := range c.hosts {
		if r := agent(t, h, "deploy").converged(t); r.States.Changed > 0 {
			t.Errorf("a run of %s with nothing to do changed %d states: %+v", name, r.States.Changed, r.Steps)
		}
		if out := h.Sh("ls /var/lib/machines"); strings.Contains(out, "app3") || strings.Contains(out, "app4") {
			t.Errorf("node %s still has the disks of members that stopped: %s", name, out)
		}
	}
}
