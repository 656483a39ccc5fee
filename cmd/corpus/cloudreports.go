package main

import (
	"context"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// reported returns what the host with this name, whatever its domain, has reported; nil if that is nothing. Records
// that the host's key did not sign do not count.
func (k *clouds) reported(ctx context.Context, project, name string) (*fleet.Host, error) {
	s, err := k.openStore()
	if err != nil {
		return nil, err
	}
	client, done := k.readerClient()
	defer done()
	v, err := fleet.Look(ctx, fleet.Query{Store: s, Now: time.Now(), SilentAfter: silentAfter, Keys: k.hostKeys(client),
		Project: project})
	if err != nil {
		return nil, err
	}
	for _, h := range v.Hosts {
		if first, _, _ := strings.Cut(h.Host, "."); first == name && h.Signed && !h.OtherRoot {
			return &h, nil
		}
	}
	return nil, nil
}

// works reports whether the newest run of a host left it with what it reports to have. States of it that may fail do
// not count, such as those of one broken guest of a node.
func works(h *fleet.Host) bool {
	failed := h != nil && h.State == fleet.Failed && (!h.Excused || h.Unserved)
	return h != nil && !h.Unbegun && !failed && h.State != fleet.RolledBack
}

// follows reports whether a node runs the cloud that is published, and returns the name of its host.
func (k *clouds) follows(ctx context.Context, node string) (bool, string, error) {
	now, done, err := k.read(ctx)
	if err != nil {
		return false, "", err
	}
	defer done()
	name := now.data.NodeHostname(node, k.channel)
	h, err := k.reported(ctx, cloud.Project, name)
	return works(h) && h.Service.Is(now.digest) && h.Service.Channel == k.channel, name, err
}

// health is what a guest or node reports of itself.
type health struct {
	Healthy bool       `json:"healthy"` // its newest run succeeded, and is of this guest on its present node
	State   string     `json:"state,omitempty"`
	Has     string     `json:"has,omitempty"`      // its deployed release
	At      *time.Time `json:"reported,omitempty"` // when
	Ignored string     `json:"ignored,omitempty"`  // why its newest report does not count; empty if it does
}

func (h health) String() string {
	if h.At == nil {
		return "no report yet"
	}
	text := strings.TrimSpace(h.State+" "+h.Has) + ", reported " + diag.Stamp(*h.At)
	if h.Ignored != "" {
		text += "; this does not count, since " + h.Ignored
	}
	return text
}

// clockMargin is how far the clock of a person who moves a guest may be behind that of the store.
const clockMargin = 10 * time.Minute

// since reports whether the store got a report after a move. moved is the time of the move by the clock of the person
// who ended it, "" for none.
func since(seen time.Time, moved string) bool {
	left, err := time.Parse(time.RFC3339, moved) // checked when it was read
	return err != nil || seen.After(left.Add(clockMargin))
}

// healthOf returns what a guest reports of itself. A report from before its last move does not count.
func (k *clouds) healthOf(ctx context.Context, c *cloud.Cloud, name string) (health, error) {
	g := c.Guests[name]
	h, err := k.reported(ctx, g.Project, c.Hostname(name))
	if err != nil || h == nil {
		return health{}, err
	}
	one := health{State: stateText(*h), At: &h.Seen}
	if h.Service != nil {
		ref := artifact.Ref{Project: g.Project, Channel: h.Service.Channel}
		one.Has = trust.Printable(ref.String() + " " + h.Service.Version)
	}
	switch {
	case g.From != "":
		one.Ignored = "it is moving"
	case !since(h.Seen, g.Moved) && h.Conflicts > 0: // a new disk has a new key
		one.Ignored = "it is of before the move, and another key was registered for it since; if that is the key of its " +
			"new disk: corpus host forget " + h.Host
	case !since(h.Seen, g.Moved):
		one.Ignored = "it is of before the move"
	}
	one.Healthy = works(h) && one.Ignored == ""
	return one, nil
}
