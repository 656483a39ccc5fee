package members

import (
	"cmp"
	"context"
	"hash/fnv"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
)

// renew renews the leases of this node, drains members that are not wanted, and releases those that are gone.
func (n *Node) renew(ctx context.Context, v *view) error {
	values := n.measureAll(ctx, v)
	for i, one := range v.members {
		if !n.mine(one) {
			continue
		}
		disk, err := n.Disk(cloud.MemberName(v.name, i+1))
		if err != nil {
			return err
		}
		next := *one.Lease
		next.Value = values[i]
		wants := i < v.count && n.Cloud.MayRun(v.name, n.Name) && !n.crowded(v.name, i)
		switch {
		case wants:
			next.Drain = nil
		case next.Drain == nil:
			at := n.now.UTC()
			next.Drain = &at
		case n.now.Sub(*next.Drain) >= cloud.Period(v.of.Drain) &&
			disk != n.Cloud.Member(v.name, i+1, n.Name).ID:
			if _, _, err := n.put(ctx, v.place(n.Channel, strconv.Itoa(i+1)), one.tag, struct{}{}); err != nil {
				return err
			}
			v.members[i] = held{}
			continue
		}
		if n.now.Sub(one.at).Abs() < cloud.Period(v.of.Away)/3 && !differ(*one.Lease, next, v.of) {
			continue
		}
		if err := n.write(ctx, v, i, next); err != nil {
			return err
		}
	}
	return nil
}

// write writes the lease of a member. If another node has written it, the member is that node's.
func (n *Node) write(ctx context.Context, v *view, i int, l Lease) error {
	info, done, err := n.put(ctx, v.place(n.Channel, strconv.Itoa(i+1)), v.members[i].tag, l)
	if err != nil {
		return err
	}
	v.members[i] = held{tag: v.members[i].tag}
	if done {
		v.members[i] = held{&l, info.ETag, n.now}
	}
	return nil
}

// differ reports whether a lease has to be written before it is due: the member drains or does not, or its value is
// another one by more than a twentieth of the limit.
func differ(a, b Lease, of cloud.Class) bool {
	if (a.Drain == nil) != (b.Drain == nil) || (a.Value == nil) != (b.Value == nil) {
		return true
	}
	if a.Value == nil {
		return false
	}
	d := clamp(*a.Value, of) - clamp(*b.Value, of)
	return max(d, -d) > cloud.Limit(of.Above)/20
}

// crowded reports whether the node has no slot for a member that it holds: a person gave it more guests.
func (n *Node) crowded(class string, i int) bool {
	free := n.Cloud.Nodes[n.Name].Slots - len(n.Cloud.On(n.Name))
	for _, name := range slices.Sorted(maps.Keys(n.views)) {
		for j, one := range n.views[name].members {
			if name == class && j == i {
				return free < 1
			}
			if n.mine(one) && one.Drain == nil {
				free--
			}
		}
	}
	return free < 1
}

// room returns how many members the node may still take.
func (n *Node) room() int {
	free := n.Cloud.Nodes[n.Name].Slots - len(n.Cloud.On(n.Name))
	for _, v := range n.views {
		for _, one := range v.members {
			if n.mine(one) {
				free--
			}
		}
	}
	return free
}

// take takes members that no node holds, if this node is among the first that may.
func (n *Node) take(ctx context.Context, v *view) error {
	for i, one := range v.members {
		key := v.of.ID + "/" + strconv.Itoa(i+1)
		if one.Lease != nil || i >= v.count {
			delete(n.Memory.Free, key)
			continue
		}
		since, known := n.Memory.Free[key]
		if !known || since.After(n.now) {
			since = n.now
			n.Memory.Free[key] = since
		}
		if n.room() < 1 || !n.Cloud.MayRun(v.name, n.Name) || n.now.Sub(since) < delay(n.rank(v, i)) {
			continue
		}
		l := Lease{Class: v.of.ID, Number: i + 1, Node: n.Name, Host: n.Host}
		if err := n.write(ctx, v, i, l); err != nil {
			return err
		}
	}
	return nil
}

// delay returns how long the node at a place of the order leaves a free member to those before it. The first takes it
// at once; each later round has twice as many nodes, so that few write at the same time, and a member is taken soon
// even if most nodes are off.
func delay(rank int) time.Duration { return time.Duration(bits.Len(uint(rank))) * (Every - Every/6) }

// rank returns how many nodes may take a member before this one: those with fewer members of the class, and of those
// with as many, the ones with a smaller hash of the member and the node.
func (n *Node) rank(v *view, i int) (before int) {
	has := map[string]int{}
	for _, one := range v.members {
		if one.Lease != nil {
			has[one.Node]++
		}
	}
	own := score(v, i, n.Name)
	for name, node := range n.Cloud.Nodes {
		if name == n.Name || has[name] > has[n.Name] || !n.Cloud.MayRun(v.name, name) || node.Slots-has[name] < 1 {
			continue
		}
		first := cmp.Or(has[name]-has[n.Name], cmp.Compare(score(v, i, name), own), cmp.Compare(name, n.Name))
		if first < 0 && node.Slots-has[name]-len(n.Cloud.On(name)) > 0 {
			before++
		}
	}
	return before
}

// score returns the hash of a member and a node.
func score(v *view, i int, node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(v.of.ID + "/" + strconv.Itoa(i+1) + "/" + node))
	return mixed(h.Sum64())
}

// mixed spreads the bits of a hash (the finalizer of MurmurHash3): FNV alone leaves names with other last letters close
// to each other.
func mixed(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
