package fleet

import (
	"cmp"
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
	At      time.Time      `json:"at"`            // when the store received its newest report or record
	Agent   string         `json:"agent"`         // version; empty if unknown
	Key     hostkey.Public `json:"key,omitempty"` // the registered key that signed its report; empty for none
	Region  string         `json:"region,omitempty"`
	Cluster string         `json:"cluster"`
}

// Followers returns the hosts that follow a channel: from their signed records, which takes one listing, and from the
// newest reports of hosts whose records do not name a channel. A report that the store received before since is
// ignored, unless the store received a record of that host later than since. A report in the directory of another host
// is ignored, as are those of a host that a person removed.
func Followers(ctx context.Context, s store.Store, keys Keys, ref artifact.Ref, since time.Time) ([]Follower, error) {
	project := ref.Project
	if project == artifact.Base {
		project = ""
	}
	l, err := live(ctx, s, keys, project, since)
	if err != nil {
		return nil, err
	}
	found := l.recordedFollowers(ref)
	runs, err := l.unanswered(ctx, s, Prefix(ref.Project))
	if err != nil {
		return nil, err
	}
	read := make([]*Follower, len(runs))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, host := range runs {
		group.Go(func() (err error) {
			read[i], err = follower(within, &reader{store: s, known: l.known}, host, ref, since)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found = append(found, read...)
	found = slices.DeleteFunc(found, func(f *Follower) bool { return f == nil })
	slices.SortStableFunc(found, func(a, b *Follower) int { return cmp.Compare(a.Host, b.Host) })
	return newestOf(found), nil
}

// recordedFollowers returns the hosts whose signed records name the channel. Reports of hosts whose records name this
// or another channel need not be read.
func (l *activeHosts) recordedFollowers(ref artifact.Ref) (found []*Follower) {
	for of, r := range l.recorded {
		place := r.Service
		if ref.Project == artifact.Base {
			place = r.Base
		}
		cluster, region, ok := clusterOf(r.Host, r.Project)
		if place == nil || place.Channel == "" || r.Agent == "" || !ok {
			continue
		}
		l.answered[of] = true
		if place.Channel == ref.Channel {
			found = append(found, &Follower{Host: r.Host, At: r.Seen, Agent: r.Agent, Key: l.known[r.Host][0].Key,
				Region: region, Cluster: cluster})
		}
	}
	return found
}

// clusterOf parses the cluster and the region from the name of a host of a project, PROJECT-INSTANCE-NODE or
// PROJECT-INSTANCE-REGION-NODE. It returns false for other names, whose cluster only reports have.
func clusterOf(host, project string) (cluster, region string, ok bool) {
	short, _, _ := strings.Cut(host, ".")
	rest, ok := strings.CutPrefix(short, project+"-")
	parts := strings.Split(rest, "-")
	if !ok || slices.Contains(parts, "") {
		return "", "", false
	}
	switch len(parts) {
	case 2:
		return project + "-" + parts[0], "", true
	case 3:
		return project + "-" + parts[0] + "-" + parts[1], parts[1], true
	}
	return "", "", false
}

// newestOf returns one follower for each host: a host that moved to another project has reports of both.
func newestOf(found []*Follower) (hosts []Follower) {
	for _, f := range found {
		switch last := len(hosts) - 1; {
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

// follower reads the newest report of a host that names its channels; nil if the host follows another channel.
func follower(ctx context.Context, d *reader, h hostRuns, ref artifact.Ref, since time.Time) (*Follower, error) {
	for _, key := range h.keys[:min(len(h.keys), mostTried)] {
		r, err := d.read(ctx, h.host, key)
		if err != nil {
			return nil, err
		}
		if r == nil || r.Test || r.Host != h.host || h.later(r.seen).Before(since) || len(r.Channels) == 0 {
			continue
		}
		if !slices.Contains(r.Channels, ref) || d.forgotten(h, r) {
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

// regionOf parses the region from the name of a host, SERVICE-INSTANCE-REGION-NODE; "" for other names.
func regionOf(host, group string) string {
	short, _, _ := strings.Cut(host, ".")
	rest, ok := strings.CutPrefix(short, group+"-")
	if region, _, more := strings.Cut(rest, "-"); ok && more {
		return region
	}
	return ""
}
