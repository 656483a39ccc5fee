package members

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Memory is what a node keeps between two looks, in a file that its states read.
type Memory struct {
	Generation string            `json:"generation"` // changes with what states have to do
	Guests     map[string]Placed `json:"guests"`     // members that run on this node
	Removed    []string          `json:"removed"`    // IDs of disks of members that do not
	Where      map[string]Where  `json:"where"`      // members, with the node of each, that get new requests

	Taken map[string]string    `json:"taken"` // members by the IDs of their disks, which may be on this node
	Free  map[string]time.Time `json:"free"`  // since when a member is free
	Above map[string]time.Time `json:"above"` // since when more members of a class are needed, by its ID
	Below map[string]time.Time `json:"below"`
	Read  map[string]Read      `json:"read"` // objects by their keys in the store
	Keys  map[string]known     `json:"keys"` // keys of hosts
}

// Placed is a member that runs on this node.
type Placed struct {
	cloud.Guest
	Class string `json:"class"`
	Of    string `json:"of"` // the ID of the class
	// Proxy says whether the node's proxy forwards to it: yes, backup if there is no other member on this node, or no.
	Proxy string `json:"proxy"`
}

// Where is the node of a member, and the member's addresses.
type Where struct {
	Class    string `json:"class"`
	Node     string `json:"node"`
	Address4 string `json:"address4"`
	Address6 string `json:"address6"`
}

// Read is an object as this node has read it: a lease, or how many members are wanted. With neither it is invalid.
type Read struct {
	Stamp string `json:"stamp"`
	Tag   string `json:"tag"`
	Lease *Lease `json:"lease,omitempty"`
	Count int    `json:"count,omitempty"` // that is wanted
}

// known is the key that a host registered first, and when this node has looked.
type known struct {
	Key hostkey.Public `json:"key"`
	At  time.Time      `json:"at"`
}

// keyAge is how long a node uses a key that it has looked up.
const keyAge = time.Hour

// ReadMemory reads the file. A damaged one is like none: what it had is in the store.
func ReadMemory(file string) (*Memory, error) {
	m := &Memory{}
	data, err := walk.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && json.Unmarshal(data, m) != nil {
		m = &Memory{}
	}
	m.complete()
	return m, nil
}

// NewMemory returns the memory of a node that has not looked yet.
func NewMemory() *Memory {
	m := &Memory{}
	m.complete()
	return m
}

// complete makes the maps that are missing.
func (m *Memory) complete() {
	for _, one := range []*map[string]time.Time{&m.Free, &m.Above, &m.Below} {
		if *one == nil {
			*one = map[string]time.Time{}
		}
	}
	if m.Guests == nil {
		m.Guests = map[string]Placed{}
	}
	if m.Taken == nil {
		m.Taken = map[string]string{}
	}
	if m.Read == nil {
		m.Read = map[string]Read{}
	}
	if m.Keys == nil {
		m.Keys = map[string]known{}
	}
}

// Write writes the file.
func (m *Memory) Write(file string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return durable.WriteFile(file, append(data, '\n'), 0o600)
}

// FirstOf returns the key that a host registered first, looking it up at most once an hour.
func (m *Memory) FirstOf(host string, now time.Time, look func() (hostkey.Public, error)) (hostkey.Public, error) {
	k, is := m.Keys[host]
	if age := now.Sub(k.At); is && age >= 0 && age < keyAge {
		return k.Key, nil
	}
	key, err := look()
	if err == nil && key != "" {
		m.Keys[host] = known{key, now}
	}
	return key, err
}

// conclude writes into the memory what the states of this node have to do.
func (n *Node) conclude() error {
	m := n.Memory
	m.Guests, m.Where = map[string]Placed{}, map[string]Where{}
	for class, v := range n.views {
		for i, one := range v.members {
			if one.Lease == nil {
				continue
			}
			name := cloud.MemberName(class, i+1)
			g := n.Cloud.Member(class, i+1, one.Node)
			if one.Drain == nil {
				m.Where[name] = Where{class, one.Node, g.Address4, g.Address6}
			}
			if proxy := n.proxy(v, one); n.mine(one) && proxy != "" {
				m.Guests[name] = Placed{g, class, v.of.ID, proxy}
				m.Taken[g.ID] = name
			}
		}
	}
	if err := n.remove(); err != nil {
		return err
	}
	hash := sha256.New()
	_ = json.NewEncoder(hash).Encode(m.Guests)
	if n.All {
		_ = json.NewEncoder(hash).Encode(m.Where)
	}
	m.Generation = hex.EncodeToString(hash.Sum(nil)[:8])
	return nil
}

// proxy returns whether the proxy forwards to a member; "" for one that is not to run. A member that drains first gets
// only requests that no other one can get, as from clients that still have the address of this node, then none.
func (n *Node) proxy(v *view, one held) string {
	if one.Drain == nil {
		return "yes"
	}
	drains, limit := n.now.Sub(*one.Drain), cloud.Period(v.of.Drain)
	switch {
	case drains < limit/2:
		return "backup"
	case drains < limit:
		return "no"
	}
	return ""
}

// remove sets the disks that are removed: those of members that this node has run and does not run.
func (n *Node) remove() error {
	m := n.Memory
	for class, of := range n.Cloud.Classes {
		for i := 1; i <= of.Max; i++ {
			name := cloud.MemberName(class, i)
			disk, err := n.Disk(name)
			if err != nil {
				return err
			}
			if disk != "" && disk == n.Cloud.Member(class, i, n.Name).ID {
				m.Taken[disk] = name
			}
		}
	}
	for id, name := range m.Taken {
		disk, err := n.Disk(name)
		if err != nil {
			return err
		}
		if m.Guests[name].ID != id && disk != id {
			delete(m.Taken, id)
		}
	}
	m.Removed = []string{}
	for _, id := range slices.Sorted(maps.Keys(m.Taken)) {
		if m.Guests[m.Taken[id]].ID != id {
			m.Removed = append(m.Removed, id)
		}
	}
	return nil
}

// Text describes for a person what runs on this node.
func (m *Memory) Text() string {
	text := fmt.Sprintf("%d members of classes run on this node", len(m.Guests))
	for _, name := range slices.Sorted(maps.Keys(m.Guests)) {
		text += "\n  " + name + " " + m.Guests[name].Address4
		if m.Guests[name].Proxy != "yes" {
			text += " (it drains)"
		}
	}
	return text
}
