// Package guests finds guests of a node that have become ready and of which no notification was sent.
//
// A guest is ready when its SSH answers. The package reads the records that guest.present writes and the cloud that the
// node runs; the caller sends the notifications, and keeps the IDs of the disks whose guests were named in one.
package guests

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/notify"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Times of guests, since they were made.
const (
	awaited = 30 * time.Second // a run waits for a new guest until then
	given   = 24 * time.Hour   // a guest that is not ready by then is never named
	probing = 2 * time.Second  // longest wait for an answer of SSH
	pausing = time.Second      // between two probes of a guest
)

// Node looks at the guests of one node.
type Node struct {
	Layout layout.Layout
	Name   string // of the node in its cloud
	Now    func() time.Time
	Known  []string // IDs of disks of which a notification was sent
	// Dial connects to a guest; nil for the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// record is what guest.present writes about a guest.
type record struct {
	ID, Disk, Step string
	Made           time.Time
}

func (r record) disk() string { return cmp.Or(r.Disk, r.ID) }

// records returns the records of the guests on this node, by the names of the guests. It omits damaged ones, about
// which guest.present complains.
func (n *Node) records() (map[string]record, error) {
	files, err := walk.Glob(filepath.Join(n.Layout.GuestRecords(), "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]record{}
	for _, file := range files {
		data, _, err := walk.Read(file)
		if err != nil {
			return nil, err
		}
		r := record{}
		if json.Unmarshal(data, &r) == nil {
			all[strings.TrimSuffix(filepath.Base(file), ".json")] = r
		}
	}
	return all, nil
}

// Ready returns the guests that are ready and of which no notification was sent, sorted by name, and the IDs of the
// disks in Known that the node still has. It waits for guests that were made just now if wait is set or one of them has
// a contact.
func (n *Node) Ready(ctx context.Context, wait bool) (ready []notify.Guest, known []string, err error) {
	all, err := n.records()
	if err != nil {
		return nil, n.Known, err
	}
	known = n.knownAmong(all)
	if len(all) == 0 {
		return nil, known, nil
	}
	data, err := Cloud(n.Layout)
	if err != nil {
		return nil, known, err
	}
	maps.DeleteFunc(all, func(name string, r record) bool {
		g := data.Guests[name]
		return g.Node != n.Name || g.From != "" || g.DiskOf() != r.disk()
	})
	var until time.Time
	for name, r := range all {
		wait = wait || data.Guests[name].Contact != ""
		until = latest(until, r.Made.Add(awaited))
	}
	if !wait {
		until = time.Time{}
	}
	for _, name := range n.answering(ctx, data, slices.Sorted(maps.Keys(all)), until.Sub(n.Now())) {
		ready = append(ready, about(data, name))
	}
	return ready, known, nil
}

// DiskOf returns the ID of the disk that a node has of a guest; "" if it has none.
func DiskOf(l layout.Layout, guest string) (string, error) {
	data, found, err := walk.Read(filepath.Join(l.GuestRecords(), guest+".json"))
	if err != nil || !found {
		return "", err
	}
	r := record{}
	if err := json.Unmarshal(data, &r); err != nil {
		return "", fmt.Errorf("reading the record of guest %s: %w", guest, err)
	}
	return r.disk(), nil
}

// knownAmong removes the guests from records that need no notification, and returns the disks of those that had one.
func (n *Node) knownAmong(records map[string]record) (known []string) {
	for name, r := range records {
		announced := slices.Contains(n.Known, r.disk())
		if announced {
			known = append(known, r.disk())
		}
		if announced || r.Made.IsZero() || r.Step != "ready" || n.Now().Sub(r.Made) >= given {
			delete(records, name)
		}
	}
	slices.Sort(known)
	return known
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Cloud returns the data of the cloud that a node runs.
func Cloud(l layout.Layout) (*cloud.Cloud, error) {
	project := l.Project(cloud.Project)
	links, err := link.Of(project).Read()
	if err != nil {
		return nil, err
	}
	data, err := walk.ReadFile(filepath.Join(project.Release(links.Current), cloud.Name))
	if err != nil {
		return nil, err
	}
	return cloud.Parse(cloud.Name, data)
}

// answering returns the guests whose SSH answers, and probes the others again until the time is over.
func (n *Node) answering(ctx context.Context, data *cloud.Cloud, names []string, limit time.Duration) (some []string) {
	answers := make([]bool, len(names))
	end := time.Now().Add(limit)
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { answers[i] = n.answersBy(ctx, data.Guests[name].Address4, end) })
	}
	all.Wait()
	for i, name := range names {
		if answers[i] {
			some = append(some, name)
		}
	}
	return some
}

// answersBy reports whether SSH answers at an address, now or until a time.
func (n *Node) answersBy(ctx context.Context, address string, end time.Time) bool {
	for {
		if n.answers(ctx, address) {
			return true
		}
		if ctx.Err() != nil || !time.Now().Add(pausing).Before(end) {
			return false
		}
		time.Sleep(pausing)
	}
}

// answers reports whether a server of SSH answers at an address.
func (n *Node) answers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, probing)
	defer cancel()
	dial := n.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(address, "22"))
	if err != nil {
		return false
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(probing)) != nil {
		return false
	}
	first := make([]byte, len("SSH-"))
	_, err = io.ReadFull(conn, first)
	return err == nil && string(first) == "SSH-"
}

// about returns what a notification says of a guest.
func about(data *cloud.Cloud, name string) notify.Guest {
	g := data.Guests[name]
	return notify.Guest{Name: name, Host: data.Hostname(name), Node: g.Node, Project: g.Project, Env: g.Env,
		Disk: g.DiskOf(), Names: data.AllNames(name), SSH: data.SSH(name), Contact: g.Contact}
}
