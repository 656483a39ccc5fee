//go:build hosts

package hosttest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// cutCloud is a cloud of two nodes with different drivers that lose power.
type cutCloud struct {
	t       *testing.T
	s       *store
	nodes   map[string]*lab.Host
	drivers map[string]string
	on      map[string]string // the node of each guest
	whole   time.Duration     // time of a run that makes a guest
	cuts    map[string]int
}

func newCutCloud(t *testing.T) *cutCloud {
	t.Helper()
	n, s := lab.NewNetwork(t), newStore(t)
	c := &cutCloud{t: t, s: s, nodes: map[string]*lab.Host{}, drivers: map[string]string{"n1": "nspawn", "n2": "lxc"},
		on: map[string]string{}, cuts: map[string]int{}}
	for name, address := range map[string]string{"n1": "172.31.0.11", "n2": "172.31.0.12"} {
		s.corpus("node", "add", name, "--mode", "prod", "--region", "eu1", "--address", address, "--driver",
			c.drivers[name], "--yes")
	}
	guestImage(t, s)
	server := s.serve(n)
	for name, address := range map[string]string{"n1": "172.31.0.11", "n2": "172.31.0.12"} {
		h := nodeOf(t, n, name, lab.Options{Address: address, Crash: true})
		s.joins(h, server)
		agent(t, h, "deploy", "--trust-root", "/root/root.json").converged(t)
		h.Sh("sync")
		c.nodes[name] = h
	}
	return c
}

func (c *cutCloud) create(guest, node string) {
	c.s.corpus(strings.Fields("guest create --yes --project shop --env prod --image tiny --node " + node + " " + guest)...)
	c.on[guest] = node
}

// cut starts a run on a node, whose power fails at a random moment, and finishes it with the next run.
func (c *cutCloud) cut(node, what string) {
	c.t.Helper()
	h := c.nodes[node]
	h.Sh("systemctl start --no-block corpus-agent.service")
	after := rand.N(c.whole + c.whole/4)
	time.Sleep(after)
	h.Cut()
	h.Start()
	c.cuts[what]++
	c.deploy(node)
	if c.t.Failed() {
		c.t.Fatalf("%s: node %s lost power %s after the start of a run of %s", what, node, after, c.whole)
	}
}

// deploy waits for a run that the boot may have started, and runs the agent.
func (c *cutCloud) deploy(node string) {
	c.t.Helper()
	h := c.nodes[node]
	lab.Eventually(c.t, time.Minute, "the run at boot ends", func() bool {
		return !strings.Contains(h.Run("systemctl", "is-active", "corpus-agent.service").Out, "activating")
	})
	r := agent(c.t, h, "deploy").converged(c.t)
	for _, note := range r.Notes {
		if strings.Contains(note, "quarantined") {
			c.t.Fatal(note)
		}
	}
}

// check looks at both nodes: each guest runs on its node alone, with its data and an address of its own, and nothing is
// left over.
func (c *cutCloud) check(what string, kept ...string) {
	c.t.Helper()
	addresses := map[string]string{}
	for node, h := range c.nodes {
		want := slices.Clone(kept)
		for guest, on := range c.on {
			runs := h.Run("systemctl", "is-active", "-q", unitOf(c.drivers[node], guest)).Code == 0
			if runs != (on == node) {
				c.t.Errorf("%s: guest %s runs on %s: %t, and belongs to %s", what, guest, node, runs, on)
			}
			if on != node {
				continue
			}
			want = append(want, node+":"+guest)
			if got := h.Run("cat", "/var/lib/machines/"+guest+"/srv/kept").Out; got != "" && got != guest+"\n" {
				c.t.Errorf("%s: guest %s has %q", what, guest, got)
			}
			for line := range strings.Lines(h.Read("/var/lib/corpus-guests/" + guest + "/host0.network")) {
				if address, is := strings.CutPrefix(line, "Address="); is {
					if other := addresses[address]; other != "" {
						c.t.Errorf("%s: guests %s and %s have the address %s", what, other, guest, address)
					}
					addresses[address] = guest
				}
			}
		}
		var there []string
		for _, name := range strings.Fields(h.Sh("ls -A /var/lib/machines")) {
			if !strings.HasPrefix(name, ".#") { // locks of systemd-nspawn
				there = append(there, node+":"+name)
			}
		}
		want = slices.DeleteFunc(want, func(one string) bool { return !strings.HasPrefix(one, node+":") })
		slices.Sort(want)
		if slices.Sort(there); !slices.Equal(want, there) {
			c.t.Errorf("%s: the disks are %v, want %v", what, there, want)
		}
		if records := h.Run("sh", "-c", "grep -L '\"step\":\"ready\"' /var/lib/corpus-guests/*.json").Out; records != "" {
			c.t.Errorf("%s: not ready: %s", what, records)
		}
	}
}

// TestNodesSurvivePowerCuts makes a guest, moves it to the other node with its disk, and deletes it, again and again.
// Power fails in each of these runs, on disks that lose unsynced data.
func TestNodesSurvivePowerCuts(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv(cuts))
	if err != nil {
		times = 1
	}
	c := newCutCloud(t)
	c.create("first1", "n1")
	began := time.Now()
	c.deploy("n1")
	c.whole = time.Since(began)
	c.create("first2", "n2")
	c.deploy("n2")
	c.check("at first")
	c.bridges()
	for i := range times {
		guest, from, to := "g"+strconv.Itoa(i), "n1", "n2"
		if i%2 == 1 {
			from, to = to, from
		}
		c.create(guest, from)
		c.cut(from, "create")
		c.check("create")
		c.nodes[from].Sh("echo " + guest + " >/var/lib/machines/" + guest + "/srv/kept; sync")
		c.s.move(guest+" "+to+" --copy", 3)
		c.on[guest] = ""
		c.cut(from, "leave")
		out := c.s.move(guest+" "+to+" --stopped", 0)
		_, file, _ := strings.Cut(out, "root@")
		_, file, _ = strings.Cut(file, ":")
		file, _, _ = strings.Cut(file, " ")
		run(t, "cp", filepath.Join(c.nodes[from].Root, file), filepath.Join(c.nodes[to].Root, file))
		c.nodes[to].Sh("sync")
		c.on[guest] = to
		c.cut(to, "arrive")
		c.check("arrive", from+":"+guest, from+":"+filepath.Base(file))
		if got := c.nodes[to].Run("cat", "/var/lib/machines/"+guest+"/srv/kept").Out; got != guest+"\n" {
			t.Fatalf("the disk of %s was lost: %q", guest, got)
		}
		c.s.corpus("guest", "delete", guest, "--yes")
		delete(c.on, guest)
		c.cut(to, "delete")
		c.cut(from, "delete")
		c.check("delete")
		if t.Failed() {
			t.FailNow()
		}
		t.Logf("round %d: %v cuts, each within about a run of %s", i+1, c.cuts, c.whole.Round(time.Millisecond))
	}
}

// bridges removes the bridges of guests that run.
func (c *cutCloud) bridges() {
	c.t.Helper()
	for node, h := range c.nodes {
		h.Sh("ip link delete guests")
		c.deploy(node)
		lab.Eventually(c.t, 20*time.Second, "the guest is on the bridge of "+fmt.Sprint(node, " ", c.drivers[node]),
			func() bool { return strings.Contains(h.Run("ls", "/sys/class/net/guests/brif").Out, "vb-") })
	}
}
