package members_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/members"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

func values(all ...float64) (out []*float64) {
	for _, one := range all {
		if one < 0 {
			out = append(out, nil)
			continue
		}
		out = append(out, &one)
	}
	return out
}

func TestTheRule(t *testing.T) {
	of := class(2, 9)
	for _, c := range []struct {
		values []*float64
		want   int
	}{
		{values(50, 50), 2},
		{values(51, 51), 3},
		{values(200, 200), 4},                           // at most twice as many
		{values(100, 0, 0), 3},                          // one member that is busy
		{values(math.MaxFloat64, 0, 0), 3},              // a lie of one counts as twice the limit
		{values(math.MaxFloat64, math.Inf(1)), 4},       // lies of all bring at most twice as many
		{values(90, 90, 90, 90, 90, 90, 90, 90, 90), 9}, // and never more than the maximum
		{values(80, -1), 4},
		{values(-1, -1), 2},
		{values(10, 10, 10), 2},
		{values(10, 10, -1), 3}, // one that does not answer may be the busy one
		{values(10, 10), 2},     // the minimum
		{values(0, 0, 0, math.NaN()), 3},
	} {
		if got, _ := members.Judge(of, c.values); got != c.want {
			t.Errorf("%v gives %d members, want %d", c.values, got, c.want)
		}
	}
	of.Below = "49"
	if got, _ := members.Judge(of, values(45, 45, 45)); got != 3 {
		t.Errorf("three members with 45 become %d, which would be above 50 at once", got)
	}
}

// TestMembersFollowTheLoad follows a class of three nodes: up, down with draining, and a liar.
func TestMembersFollowTheLoad(t *testing.T) {
	s := simulate(t, 3, 5, map[string]cloud.Class{"web": class(2, 5), "app": class(1, 2)})
	s.pass(4 * time.Minute)
	s.wants("web", 2)
	s.wants("app", 1)
	if a, b := s.running("web")["web1"][0], s.running("web")["web2"][0]; a == b {
		t.Errorf("node %s runs both members, and two nodes run none", a)
	}
	s.loads["web"] = 170
	s.pass(8 * time.Minute)
	s.wants("web", 4)
	s.loads["web"] = 70
	s.pass(4 * time.Minute)
	s.wants("web", 4) // member 4 drains
	node := s.nodes[s.running("web")["web4"][0]]
	if got := node.memory.Guests["web4"].Proxy; got != "backup" {
		t.Errorf("the proxy of a member that drains is %q", got)
	}
	if _, asked := node.memory.Where["web4"]; asked {
		t.Error("DNS names a member that drains")
	}
	s.pass(2 * time.Minute)
	if got := node.memory.Guests["web4"].Proxy; got != "no" {
		t.Errorf("the proxy of a member that is about to stop is %q", got)
	}
	s.pass(8 * time.Minute)
	s.wants("web", 3)
	if node.disks["web4"] != "" || len(node.memory.Removed) > 0 {
		t.Errorf("the disk of a member that was stopped is there: %v", node.memory.Removed)
	}
	s.lies["web1"], s.lies["web2"], s.lies["web3"] = math.Inf(1), 1e300, 1e9
	s.pass(30 * time.Minute)
	s.wants("web", 5)
	s.wants("app", 1)
}

// TestANodeThatIsAwayLosesItsMembers cuts a node from the store: its members go on until it is back, and others run
// them meanwhile with other addresses. A clock that is wrong changes nothing.
func TestANodeThatIsAwayLosesItsMembers(t *testing.T) {
	s := simulate(t, 3, 5, map[string]cloud.Class{"web": class(2, 5)})
	s.nodes["n2"].skew, s.nodes["n3"].skew = 6*time.Hour, -6*time.Hour
	s.pass(4 * time.Minute)
	s.wants("web", 2)
	lost := s.running("web")["web1"][0]
	s.nodes[lost].cut = true
	s.pass(2 * time.Minute)
	s.wants("web", 2)
	s.pass(7 * time.Minute)
	if on := s.running("web")["web1"]; len(on) != 2 {
		t.Fatalf("member 1 runs on %v, want its node and another one", on)
	}
	s.nodes[lost].cut = false
	s.pass(2 * time.Minute)
	s.wants("web", 2)
	if _, there := s.nodes[lost].disks["web1"]; there {
		t.Errorf("node %s still has the disk of the member that it lost", lost)
	}
	closed := s.running("web")["web2"][0]
	node := s.data.Nodes[closed]
	node.Closed = cloud.Yes
	s.data.Nodes[closed] = node
	s.pass(8 * time.Minute)
	s.wants("web", 2)
	if on := s.running("web")["web2"][0]; s.data.Nodes[on].Closed != "" {
		t.Errorf("node %s is closed, and runs a member", on)
	}
	delete(s.data.Classes, "web")
	s.pass(2 * time.Minute)
	for name, n := range s.nodes {
		if len(n.disks) > 0 {
			t.Errorf("the class is removed, and node %s has %v", name, n.disks)
		}
	}
}

// TestOnlyNodesHoldMembers writes objects that no node of the cloud signed: of another host, of a node whose key is
// another one, of another member, and more members than there may be.
func TestOnlyNodesHoldMembers(t *testing.T) {
	s := simulate(t, 2, 9, map[string]cloud.Class{"web": class(2, 5), "app": class(1, 2)})
	of := s.data.Classes["web"]
	place := func(object string) string { return "members/prod/" + of.ID + "/" + object + ".json" }
	put := func(object string, key hostkey.Key, content any) {
		t.Helper()
		data, err := json.Marshal(content)
		if err == nil {
			data, err = key.Seal(place(object), data)
		}
		if err == nil {
			_, err = s.store.Put(t.Context(), place(object), bytes.NewReader(data), int64(len(data)), store.Condition{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stranger, _, err := hostkey.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	n1 := s.nodes["n1"]
	s.data.Nodes["off"] = cloud.Node{Mode: "dev", Region: "eu1", Driver: "nspawn", Slots: 1}
	s.publish()
	const off = "cloud-prod-eu1-off"
	s.firsts["shop-prod-eu1-web1"], s.firsts[off] = stranger.Public(), n1.key.Public()
	put("1", stranger, members.Lease{Class: of.ID, Number: 1, Node: "off", Host: off})
	put("2", stranger, members.Lease{Class: of.ID, Number: 2, Node: "off", Host: "shop-prod-eu1-web1"})
	put("wanted", stranger, map[string]any{"class": of.ID, "count": 5, "node": "n1", "host": n1.host})
	put("3", n1.key, members.Lease{Class: of.ID, Number: 4, Node: "n1", Host: n1.host})
	put("101", n1.key, members.Lease{Class: of.ID, Number: 101, Node: "n1", Host: n1.host})
	s.pass(3 * time.Minute) // a lease that counts would hold for 5 minutes
	s.wants("web", 2)
	s.wants("app", 1)
	put("wanted", n1.key, map[string]any{"class": of.ID, "count": 500, "node": "n1", "host": n1.host})
	s.pass(3 * time.Minute)
	s.wants("web", 5) // the maximum
	s.wants("app", 1)
	s.firsts[n1.host] = stranger.Public()
	if err := s.tick("n1"); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("a node whose key is not registered first goes on: %v", err)
	}
}

// TestOneNodeTakesAMember lets another node look between the moment at which a node reads that a member is free and its
// write.
func TestOneNodeTakesAMember(t *testing.T) {
	s := simulate(t, 2, 9, map[string]cloud.Class{"web": class(1, 2)})
	for _, n := range s.nodes {
		n.memory.Free[s.data.Classes["web"].ID+"/1"] = s.store.now.Add(-time.Hour)
	}
	s.store.before = func() {
		if err := s.tick("n2"); err != nil {
			t.Error(err)
		}
	}
	if err := s.tick("n1"); err != nil {
		t.Fatal(err)
	}
	if on := s.running("web")["web1"]; len(on) != 1 || on[0] != "n2" || s.store.refused != 1 {
		t.Errorf("member 1 runs on %v, and the store refused %d writes", on, s.store.refused)
	}
}

func TestPersonsGuestsComeFirst(t *testing.T) {
	s := simulate(t, 2, 2, map[string]cloud.Class{"web": class(3, 4)})
	s.pass(5 * time.Minute)
	s.wants("web", 3)
	for _, name := range []string{"db1", "db2"} {
		s.data.Guests[name] = cloud.Guest{Node: "n1", Project: "db", Env: "prod", Image: "tiny", Size: "1GiB"}
	}
	s.publish()
	n1 := s.nodes["n1"]
	for range 8 { // without pass, which checks the slots
		if err := errors.Join(s.tick("n1"), s.tick("n2")); err != nil {
			t.Fatal(err)
		}
		s.store.now = s.store.now.Add(time.Minute)
	}
	if len(n1.memory.Guests) > 0 {
		t.Errorf("node n1 has 2 slots, 2 guests and %v", n1.memory.Guests)
	}
	s.check()
}

func TestMembersAnswerWithNumbers(t *testing.T) {
	body, code := "", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code == http.StatusFound {
			http.Redirect(w, r, "http://192.0.2.1/metrics", code)
			return
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	host, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	of := cloud.Class{Metric: "busy", Answers: ":" + port + "/metrics"}
	for text, want := range map[string]float64{"busy 7\n": 7,
		"# busy 3\nbusyness 9\nbusy{a=\"b}\"} 2.5 1700000000\nbusy{} 1\n": 3.5,
		"busy -1\n": -1, "busy NaN\n": -1, "busy +Inf\n": -1, "busy seven\n": -1, "": -1, "busy\nbusy \n": -1,
		"busy 1\nbusy x\n": -1, strings.Repeat("x", 1<<17) + "\nbusy 1\n": -1} {
		body = text
		got, err := members.Measure(t.Context(), cloud.Guest{Address4: host}, of)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%.40q gives %v (%v), want %v", text, got, err, want)
		}
	}
	for _, code = range []int{http.StatusFound, http.StatusInternalServerError} {
		if got, err := members.Measure(t.Context(), cloud.Guest{Address4: host}, of); err == nil {
			t.Errorf("an answer with the code %d gives %v", code, got)
		}
	}
}

func TestTheMemoryIsKept(t *testing.T) {
	s := simulate(t, 1, 5, map[string]cloud.Class{"web": class(2, 5)})
	s.pass(3 * time.Minute)
	file := filepath.Join(t.TempDir(), "members.json")
	m := s.nodes["n1"].memory
	if err := m.Write(file); err != nil {
		t.Fatal(err)
	}
	again, err := members.ReadMemory(file)
	if err != nil || !reflect.DeepEqual(again.Guests, m.Guests) || again.Generation != m.Generation || len(m.Guests) != 2 {
		t.Errorf("%+v was written, and %+v read (%v)", m, again, err)
	}
}
