package fleet

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Follower is a host of a channel.
type Follower struct {
	Host    string         `json:"host"`
	At      time.Time      `json:"at"`            // when the store got its newest report or record
	Agent   string         `json:"agent"`         // version; empty for an agent that does not say
	Key     hostkey.Public `json:"key,omitempty"` // that its report is signed with and that it registered; empty for none
	Region  string         `json:"region,omitempty"`
	Cluster string         `json:"cluster"`
}

// Followers reads which hosts follow a channel, by their newest reports. Reports that the store got before since do not
// count, unless it got the host's record since then, nor does one that is not about the host in whose directory it
// lies.
func Followers(ctx context.Context, s store.Store, keys Keys, ref artifact.Ref, since time.Time) ([]Follower, error) {
	project := ref.Project
	if project == artifact.Base {
		project = ""
	}
	known, runs, err := live(ctx, s, keys, project, Prefix(ref.Project), since)
	if err != nil {
		return nil, err
	}
	found := make([]*Follower, len(runs))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, host := range runs {
		group.Go(func() (err error) {
			found[i], err = follower(within, &reader{store: s, known: known}, host, ref, since)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return newestOf(found), nil
}

// newestOf is one follower for each host: a host that moved to another project has reports of both.
func newestOf(found []*Follower) (hosts []Follower) {
	for _, f := range found {
		switch last := len(hosts) - 1; {
		case f == nil:
		case last >= 0 && hosts[last].Host == f.Host:
			if f.At.After(hosts[last].At) {
				hosts[last] = *f
			}
		default:
			hosts = append(hosts, *f)
		}
	}
	return hosts
}

// follower reads the newest report of a host that says which channels it follows; nil where it follows another one.
func follower(ctx context.Context, d *reader, h hostRuns, ref artifact.Ref, since time.Time) (*Follower, error) {
	for _, key := range h.keys[:min(len(h.keys), mostTried)] {
		r, err := d.read(ctx, h.host, key)
		if err != nil {
			return nil, err
		}
		if r == nil || r.Test || r.Host != h.host || h.later(r.seen).Before(since) || len(r.Channels) == 0 {
			continue
		}
		if !slices.Contains(r.Channels, ref) {
			return nil, nil
		}
		f := &Follower{Host: h.host, At: h.later(r.seen), Agent: r.Agent, Cluster: r.Service + "-" + r.Instance}
		if r.signed {
			f.Key = d.known[h.host][0].Key
		}
		f.Region = regionOf(h.host, f.Cluster)
		if f.Region != "" {
			f.Cluster += "-" + f.Region
		}
		return f, nil
	}
	return nil, nil
}

// regionOf reads the region off the name of a host, SERVICE-INSTANCE-REGION-NODE; "" where it is named otherwise.
func regionOf(host, group string) string {
	short, _, _ := strings.Cut(host, ".")
	rest, ok := strings.CutPrefix(short, group+"-")
	if region, _, more := strings.Cut(rest, "-"); ok && more {
		return region
	}
	return ""
}
