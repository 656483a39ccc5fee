package members_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/members"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// clocked is a store in memory with a virtual clock.
type clocked struct {
	*mem.Store
	now     time.Time
	at      map[string]time.Time
	away    bool
	gets    int
	puts    int
	refused int
	before  func() // called before the next Put
}

var errAway = errors.New("the store is away")

func (s *clocked) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	if s.away {
		return nil, store.Info{}, errAway
	}
	s.gets++
	body, info, err := s.Store.Get(ctx, key, from)
	info.Modified, info.Now = s.at[key], s.now
	if answered := new(store.Error); errors.As(err, &answered) {
		answered.Now = s.now
	}
	return body, info, err
}

func (s *clocked) Put(ctx context.Context, key string, r io.Reader, size int64, c store.Condition) (store.Info, error) {
	if s.away {
		return store.Info{}, errAway
	}
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	s.puts++
	info, err := s.Store.Put(ctx, key, r, size, c)
	if err == nil {
		s.at[key] = s.now
	} else {
		s.refused++
	}
	return info, err
}

func (s *clocked) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if s.away {
			yield(store.Info{}, errAway)
			return
		}
		for info, err := range s.Store.List(ctx, prefix) {
			info.Modified = s.at[info.Key]
			if !yield(info, err) {
				return
			}
		}
	}
}

// simulated is a cloud with nodes that tick on a virtual clock.
type simulated struct {
	t      testing.TB
	store  *clocked
	data   *cloud.Cloud
	nodes  map[string]*simulatedNode
	loads  map[string]float64 // of a class, divided among its members
	lies   map[string]float64 // what members answer instead
	firsts map[string]hostkey.Public
	shared map[string]members.Read // what nodes have read, so that each lease is verified once and not by each node
}

type simulatedNode struct {
	host   string
	key    hostkey.Key
	memory *members.Memory
	disks  map[string]string // IDs by member
	off    bool
	cut    bool          // from the store
	skew   time.Duration // of its clock
}

func simulate(t testing.TB, nodes, slots int, classes map[string]cloud.Class) *simulated {
	t.Helper()
	s := &simulated{t: t, data: cloud.New(), nodes: map[string]*simulatedNode{}, loads: map[string]float64{},
		lies: map[string]float64{}, firsts: map[string]hostkey.Public{}}
	s.store = &clocked{Store: mem.New(), now: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), at: map[string]time.Time{}}
	s.data.Images["tiny"] = cloud.Image{Project: "image", Version: "1", Digest: "sha256:" + strings.Repeat("ab", 32)}
	dir := t.TempDir()
	for i := range nodes {
		name := fmt.Sprint("n", i+1)
		s.data.Nodes[name] = cloud.Node{Mode: "prod", Region: "eu1", Driver: "nspawn", Slots: slots}
		key, _, err := hostkey.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n := &simulatedNode{host: "cloud-prod-eu1-" + name, key: key, memory: members.NewMemory(),
			disks: map[string]string{}}
		s.nodes[name], s.firsts[n.host] = n, key.Public()
	}
	maps.Copy(s.data.Classes, classes)
	s.publish()
	return s
}

func (s *simulated) publish() {
	s.t.Helper()
	if err := errors.Join(s.data.Allocate(rand.Reader), s.data.Check()); err != nil {
		s.t.Fatal(err)
	}
}

func class(least, most int) cloud.Class {
	return cloud.Class{Project: "shop", Env: "prod", Region: "eu1", Image: "tiny", Min: least, Max: most, Metric: "busy",
		Answers: ":80/metrics", Above: "50", Below: "20", For: "2m", Drain: "3m", Away: "5m", Size: "1GiB"}
}

// tick lets a node look once, and do what its states would do.
func (s *simulated) tick(name string) error {
	n := s.nodes[name]
	var before []byte
	if s.store.away || n.cut {
		before, _ = json.Marshal(n.memory)
	} else if s.shared != nil {
		n.memory.Read = s.shared
	}
	node := members.Node{Store: s.store, Key: n.key, Host: n.host, Name: name, Channel: "prod", Cloud: s.data,
		Memory: n.memory, Now: s.store.now.Add(n.skew),
		Disk:    func(member string) (string, error) { return n.disks[member], nil },
		First:   func(_ context.Context, host string) (hostkey.Public, error) { return s.firsts[host], nil },
		Measure: func(_ context.Context, g cloud.Guest, of cloud.Class) (float64, error) { return s.measure(n, g, of) },
	}
	if n.cut {
		node.Store = &clocked{away: true}
	}
	err := node.Tick(s.t.Context())
	if err != nil && before != nil { // the caller keeps the memory of before
		n.memory = &members.Memory{}
		if err := json.Unmarshal(before, n.memory); err != nil {
			s.t.Fatal(err)
		}
	}
	maps.DeleteFunc(n.disks, func(_, disk string) bool { return slices.Contains(n.memory.Removed, disk) })
	for member, g := range n.memory.Guests {
		n.disks[member] = g.ID
	}
	return err
}

// measure returns the share that a member has of the load of its class.
func (s *simulated) measure(n *simulatedNode, g cloud.Guest, of cloud.Class) (float64, error) {
	for member, placed := range n.memory.Guests {
		if placed.ID != g.ID {
			continue
		}
		if lie, is := s.lies[member]; is {
			return lie, nil
		}
		asked := 0
		for other := range s.running(placed.Class) {
			if _, there := n.memory.Where[other]; there {
				asked++
			}
		}
		return s.loads[placed.Class] / float64(max(1, asked)), nil
	}
	return 0, errors.New("it does not run yet")
}

// running returns the nodes that run each member of a class.
func (s *simulated) running(class string) map[string][]string {
	all := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		for member, g := range s.nodes[name].memory.Guests {
			if g.Class == class && !s.nodes[name].off {
				all[member] = append(all[member], name)
			}
		}
	}
	return all
}

// pass lets all nodes tick once a minute, each second some of them, and checks what must hold at any time.
func (s *simulated) pass(d time.Duration) {
	s.t.Helper()
	for end := s.store.now.Add(d); s.store.now.Before(end); s.store.now = s.store.now.Add(time.Minute) {
		began := s.store.now
		for i, name := range slices.Sorted(maps.Keys(s.nodes)) {
			s.store.now = began.Add(time.Duration(i) * time.Minute / time.Duration(len(s.nodes)))
			if !s.nodes[name].off {
				if err := s.tick(name); err != nil && !errors.Is(err, errAway) {
					s.t.Fatalf("%s: %v", name, err)
				}
			}
		}
		s.store.now = began
		s.check()
	}
}

// check checks that no two guests have one address, no node has more than its slots, and no class more than its
// maximum.
func (s *simulated) check() {
	s.t.Helper()
	seen := map[string]string{}
	for name, n := range s.nodes {
		if free := s.data.Nodes[name].Slots - len(s.data.On(name)) - len(n.memory.Guests); free < 0 {
			s.t.Fatalf("node %s has %d members too many", name, -free)
		}
		for member, g := range n.memory.Guests {
			for _, value := range []string{g.Address4, g.Address6, g.ID} {
				if other, taken := seen[value]; taken {
					s.t.Fatalf("%s on %s and %s have %s", member, name, other, value)
				}
				seen[value] = member + " on " + name
			}
			if !netip.MustParsePrefix(s.data.Nodes[name].Range4).Contains(netip.MustParseAddr(g.Address4)) {
				s.t.Fatalf("%s has the address %s on %s", member, g.Address4, name)
			}
		}
	}
	for name, of := range s.data.Classes {
		if n := len(s.running(name)); n > of.Max {
			s.t.Fatalf("%d members of %s run", n, name)
		}
	}
}

// lacks reports whether one of the first members of a class does not run.
func (s *simulated) lacks(class string, count int) bool {
	all := s.running(class)
	for i := 1; i <= count; i++ {
		if len(all[cloud.MemberName(class, i)]) == 0 {
			return true
		}
	}
	return false
}

// wants checks how many members of a class run, each on one node.
func (s *simulated) wants(class string, count int) {
	s.t.Helper()
	all := s.running(class)
	if len(all) != count {
		s.t.Fatalf("%d members of %s run, want %d: %v", len(all), class, count, all)
	}
	for i := 1; i <= count; i++ {
		if on := all[cloud.MemberName(class, i)]; len(on) != 1 {
			s.t.Fatalf("member %d of %s runs on %v", i, class, on)
		}
	}
}

// TestTwoHundredNodesScale simulates 200 nodes: a load that grows and falls, a fifth of the nodes dying at once, and
// the store away for a while.
func TestTwoHundredNodesScale(t *testing.T) {
	s := simulate(t, 200, 2, map[string]cloud.Class{"web": class(2, 30), "app": class(3, 12)})
	s.shared = map[string]members.Read{}
	s.pass(4 * time.Minute)
	s.wants("web", 2)
	s.wants("app", 3)
	s.loads["web"], s.loads["app"] = 600, 120
	until := func(what string, most time.Duration) {
		t.Helper()
		took := time.Duration(0)
		for ; s.lacks("web", 12) && took < most; took += time.Minute {
			s.pass(time.Minute)
		}
		s.wants("web", max(12, len(s.running("web")))) // those that are left may have been too busy meanwhile
		s.wants("app", max(3, len(s.running("app"))))
		t.Logf("%s in %v", what, took)
	}
	until("from 2 to 12 members", 12*time.Minute)
	s.loads["web"] = 250 // not too much for those that are left
	died := map[string]bool{}
	for _, on := range s.running("web") {
		if len(died) < 6 {
			died[on[0]] = true
		}
	}
	for i := range 34 {
		died[fmt.Sprint("n", 5*i+3)] = true
	}
	for name := range died {
		s.nodes[name].off = true
	}
	until(fmt.Sprintf("%d nodes died, and others run their members", len(died)), 10*time.Minute)
	s.store.away, s.loads["web"] = true, 0
	had := len(s.running("web"))
	s.pass(6 * time.Minute)
	s.wants("web", had)
	s.store.away = false
	s.pass(2 * time.Minute)
	for name := range died {
		s.nodes[name].off = false
	}
	s.pass(10 * time.Minute)
	if n := len(s.running("web")); n >= had {
		t.Errorf("without load, %d members run", n)
	}
	t.Logf("%d writes, %d of them refused since another node was first", s.store.puts, s.store.refused)
}
