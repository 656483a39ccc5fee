// Package members decides which members of the classes of a cloud run on a node.
//
// All nodes read the same signed cloud, and the same objects in the store, below members/CHANNEL/ID of each class:
//
//	wanted.json   how many members run, written by a node with members when the rule says so
//	N.json        the lease of the node that runs member N, with what the node has measured of it
//
// Each object is signed with the key of the node that wrote it, and written on the condition that no other node has
// written since it was read. So no node leads: members 1 to the wanted number run, and a member that no node holds is
// taken by the first node, in an order that follows from a hash, that has a free slot. A node that does not renew its
// leases loses them. While the store cannot be read, nothing changes.
package members

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Prefix is the key prefix of the leases in a store.
const Prefix = "members/"

// Every is the interval at which a node calls Tick.
const Every = time.Minute

// Node is a node that looks at the classes of its cloud.
type Node struct {
	Store   store.Store
	Key     hostkey.Key
	Host    string // its name as in its reports
	Name    string // in the cloud
	Channel string // of the cloud
	Cloud   *cloud.Cloud
	Memory  *Memory
	Now     time.Time // by this host's clock
	All     bool      // read all classes, and not only those that the node may run

	// Measure returns the metric of a member.
	Measure func(ctx context.Context, g cloud.Guest, of cloud.Class) (float64, error)
	// Disk returns the ID of the disk that the node has of a member; "" if it has none.
	Disk func(member string) (string, error)
	// First returns the key that a host registered first; "" if it has none.
	First func(ctx context.Context, host string) (hostkey.Public, error)

	views map[string]*view // by class
	now   time.Time        // by the store's clock if it sends one
}

// Lease says that a node runs a member.
type Lease struct {
	Class  string     `json:"class"` // its ID
	Number int        `json:"number"`
	Node   string     `json:"node"`
	Host   string     `json:"host"`
	Drain  *time.Time `json:"drain,omitempty"` // since when it is to stop
	Value  *float64   `json:"value,omitempty"` // of the metric; nil if the member did not answer
}

// wanted says how many members of a class run.
type wanted struct {
	Class string `json:"class"`
	Count int    `json:"count"`
	Node  string `json:"node"`
	Host  string `json:"host"`
	Why   string `json:"why"`
}

// view is what the store has of a class.
type view struct {
	name    string
	of      cloud.Class
	members []held    // by number - 1
	count   int       // that run
	tag     string    // of wanted.json; "" if there is none
	since   time.Time // when wanted.json was written
}

// held is the lease of a member. Without a Lease no node holds it.
type held struct {
	*Lease
	tag string    // of the object; "" if there is none
	at  time.Time // when it was written
}

func (v *view) place(channel, object string) string {
	return Prefix + channel + "/" + v.of.ID + "/" + object + ".json"
}

// Tick looks at all classes, and takes, renews and releases leases of this node. On an error the caller keeps the
// Memory of before, so that members go on as they are.
func (n *Node) Tick(ctx context.Context) error {
	if err := n.checkKey(ctx); err != nil {
		return err
	}
	n.views, n.now = map[string]*view{}, n.Now
	for _, name := range slices.Sorted(maps.Keys(n.Cloud.Classes)) {
		if !n.concerns(name) {
			continue
		}
		v, err := n.view(ctx, name)
		if err != nil {
			return fmt.Errorf("reading the leases of the class %s: %w", name, hintRights(err))
		}
		n.views[name] = v
	}
	for _, act := range []func(context.Context, *view) error{n.renew, n.take, n.decide} {
		for _, name := range slices.Sorted(maps.Keys(n.views)) {
			if err := act(ctx, n.views[name]); err != nil {
				return fmt.Errorf("the class %s: %w", name, hintRights(err))
			}
		}
	}
	return n.conclude()
}

func hintRights(err error) error {
	if !errors.Is(err, store.ErrForbidden) {
		return err
	}
	return diag.Credentials.Hint(err, "let nodes read and write below %s in the store (docs/buckets.md)", Prefix)
}

// concerns reports whether the node looks at a class: it may run its members, or did.
func (n *Node) concerns(class string) bool {
	of, node := n.Cloud.Classes[class], n.Cloud.Nodes[n.Name]
	if n.All || node.Mode == of.Env && node.Region == of.Region {
		return true
	}
	for _, g := range n.Memory.Guests {
		if g.Class == class {
			return true
		}
	}
	return false
}

// checkKey returns an error if other nodes would not accept what this node signs. A key that is not registered is.
func (n *Node) checkKey(ctx context.Context) error {
	first, err := n.First(ctx, n.Host)
	if err == nil && first == "" {
		err = n.Key.Register(ctx, n.Store, hostkey.Registration{Host: n.Host, At: n.Now})
		first = n.Key.Public()
	}
	if err == nil && first != n.Key.Public() {
		return diag.Host.Hint(
			errors.New("this node signs with another key than the one that is registered first for its name"),
			"corpus host forget %s", n.Host)
	}
	return err
}

// view reads what the store has of a class.
func (n *Node) view(ctx context.Context, name string) (*view, error) {
	v := &view{name: name, of: n.Cloud.Classes[name], members: make([]held, cloud.MostMembers)}
	w, err := n.readWanted(ctx, v)
	if err != nil {
		return nil, err
	}
	prefix := strings.TrimSuffix(v.place(n.Channel, ""), ".json")
	seen, most := map[string]bool{v.place(n.Channel, "wanted"): true}, 0
	for info, err := range n.Store.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(info.Key, prefix), ".json"))
		if err != nil || number < 1 || number > cloud.MostMembers ||
			info.Key != v.place(n.Channel, strconv.Itoa(number)) {
			continue
		}
		seen[info.Key] = true
		one, err := n.readLease(ctx, v, number, info)
		if err != nil {
			return nil, err
		}
		v.members[number-1] = one
		if one.Lease != nil && one.Drain == nil {
			most = number
		}
	}
	for key := range n.Memory.Read {
		if strings.HasPrefix(key, prefix) && !seen[key] {
			delete(n.Memory.Read, key)
		}
	}
	if w == 0 {
		w = most // wanted.json is lost, or was never written
	}
	v.count = min(max(w, v.of.Min), v.of.Max)
	return v, nil
}

// readWanted reads how many members are wanted; 0 if no node has written it.
func (n *Node) readWanted(ctx context.Context, v *view) (int, error) {
	place := v.place(n.Channel, "wanted")
	data, info, err := n.get(ctx, place)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	v.tag, v.since = info.ETag, info.Modified
	stamp := stampOf(info)
	if known := n.Memory.Read[place]; known.Stamp == stamp {
		return known.Count, nil
	}
	w := wanted{}
	is, err := n.signed(ctx, place, data, &w, func() (string, string) { return w.Node, w.Host })
	switch {
	case err != nil:
		return 0, err
	case !is || w.Class != v.of.ID:
		w.Count = 0
	}
	n.Memory.Read[place] = Read{Stamp: stamp, Tag: info.ETag, Count: w.Count}
	return w.Count, nil
}

// mostBytes bounds the objects that are read.
const mostBytes = 4 << 10

func (n *Node) get(ctx context.Context, place string) ([]byte, store.Info, error) {
	data, info, err := store.ReadUpTo(ctx, n.Store, place, mostBytes+1)
	at, answered := info.Now, new(store.Error)
	if errors.As(err, &answered) {
		at = answered.Now
	}
	if at.After(n.now) || n.now.Equal(n.Now) && !at.IsZero() {
		n.now = at
	}
	return data, info, err
}

// signed parses an object, and reports whether a node of the cloud signed it: the key is the first of the host, and the
// host has the name of the node.
func (n *Node) signed(ctx context.Context, place string, data []byte, to any, by func() (node, host string)) (bool,
	error) {
	signer, err := hostkey.Unseal(place, data)
	if err != nil || json.Unmarshal(data, to) != nil {
		return false, nil
	}
	node, host := by()
	first, _, _ := strings.Cut(host, ".")
	if _, known := n.Cloud.Nodes[node]; !known || artifact.CheckHost(host) != nil ||
		first != n.Cloud.NodeHostname(node, n.Channel) {
		return false, nil
	}
	key, err := n.First(ctx, host)
	return err == nil && key == signer, err
}

// stampOf returns what differs between two versions of an object that were read in the same way. Some stores send no
// ETag in a list.
func stampOf(info store.Info) string {
	return strconv.FormatInt(info.Size, 10) + " " + info.ETag + " " + info.Modified.UTC().Format(time.RFC3339Nano)
}

// readLease reads a lease that a listing shows, unless this node has read it before.
func (n *Node) readLease(ctx context.Context, v *view, number int, info store.Info) (held, error) {
	stamp := stampOf(info)
	known, is := n.Memory.Read[info.Key]
	if !is || known.Stamp != stamp {
		data, got, err := n.get(ctx, info.Key)
		if errors.Is(err, store.ErrNotFound) {
			return held{}, nil
		}
		if err != nil {
			return held{}, err
		}
		known = Read{Stamp: stamp, Tag: got.ETag}
		l := &Lease{}
		valid, err := n.signed(ctx, info.Key, data, l, func() (string, string) { return l.Node, l.Host })
		if err != nil {
			return held{}, err
		}
		if valid && l.Class == v.of.ID && l.Number == number {
			known.Lease = l
		}
		n.Memory.Read[info.Key] = known
	}
	one := held{known.Lease, known.Tag, info.Modified}
	if one.Lease != nil && one.Node != n.Name && n.now.Sub(one.at).Abs() >= cloud.Period(v.of.Away) {
		one.Lease = nil // its node is away. One from the future does not hold for good
	}
	return one, nil
}

// mine reports whether this node holds a member.
func (n *Node) mine(one held) bool { return one.Lease != nil && one.Node == n.Name }

// put writes an object if no other node has written it since it was read, and reports whether that is so.
func (n *Node) put(ctx context.Context, place, tag string, object any) (info store.Info, done bool, err error) {
	data, err := json.Marshal(object)
	if err == nil && object != (struct{}{}) {
		data, err = n.Key.Seal(place, data)
	}
	if err != nil {
		return info, false, err
	}
	cond := store.Condition{IfMatch: tag, IfAbsent: tag == ""}
	info, err = n.Store.Put(store.Displacing(ctx), place, strings.NewReader(string(data)), int64(len(data)), cond)
	if errors.Is(err, store.ErrPrecondition) {
		return info, false, nil
	}
	return info, err == nil, err
}

// measureAll measures the members of a class that run on this node.
func (n *Node) measureAll(ctx context.Context, v *view) map[int]*float64 {
	values, all, lock := map[int]*float64{}, sync.WaitGroup{}, sync.Mutex{}
	for i, one := range v.members {
		if !n.mine(one) || v.of.Metric == "" {
			continue
		}
		all.Go(func() {
			value, err := n.Measure(ctx, n.Cloud.Member(v.name, i+1, n.Name), v.of)
			if err != nil {
				return // a member that does not answer has no value
			}
			lock.Lock()
			defer lock.Unlock()
			value = clamp(value, v.of)
			values[i] = &value
		})
	}
	all.Wait()
	return values
}

// Member is a member that a node holds.
type Member struct {
	Name     string     `json:"name"`
	Node     string     `json:"node"`
	Address4 string     `json:"address4"`
	Address6 string     `json:"address6"`
	SSHPort  int        `json:"ssh_port"`
	Drain    *time.Time `json:"drain,omitempty"`
	Value    *float64   `json:"value,omitempty"`
	Renewed  time.Time  `json:"renewed"`
}

// Class returns how many members of a class are wanted, and those that nodes hold, for people.
func (n *Node) Class(ctx context.Context, name string) (wanted int, held []Member, err error) {
	n.now = n.Now
	v, err := n.view(ctx, name)
	if err != nil {
		return 0, nil, err
	}
	for i, one := range v.members {
		if one.Lease == nil {
			continue
		}
		g := n.Cloud.Member(name, i+1, one.Node)
		held = append(held, Member{cloud.MemberName(name, i+1), one.Node, g.Address4, g.Address6, g.SSHPort, one.Drain,
			one.Value, one.at.UTC()})
	}
	return v.count, held, nil
}
