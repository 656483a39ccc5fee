package collect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Prefixes of the reports of hosts, reports/PROJECT/HOST/RUN.json, and of their records, fleet/PROJECT/HOST/...
const (
	reportsPrefix = "reports/"
	recordsPrefix = "fleet/"
)

// removedAtOnce is the number of reports that are removed concurrently.
const removedAtOnce = 16

// Reports removes the reports of hosts that are older than age by the store's clock. The newest report of each host
// that has a record stays: a host whose runs change nothing uploads no report, so that this one is the last. A dry run
// removes nothing.
func Reports(ctx context.Context, p *publish.Publisher, age time.Duration, dry bool) (Tally, int64, error) {
	recorded, err := recordedHosts(ctx, p.Store)
	if err != nil {
		return Tally{}, 0, err
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(removedAtOnce)
	var tally Tally
	var bytes int64
	remove := func(info store.Info) {
		tally.Removed, bytes = tally.Removed+1, bytes+info.Size
		if !dry {
			group.Go(func() error { return p.Store.Delete(within, info.Key) })
		}
	}
	var last store.Info // of the host whose reports are being listed; names are in the order of their runs
	judge := func(next string) {
		switch old := !last.Modified.IsZero() && p.Time().Sub(last.Modified) >= age; {
		case last.Key == "":
		case old && (next == reportOf(last.Key) || !recorded[reportOf(last.Key)]):
			remove(last)
		default:
			tally.Kept++
		}
	}
	for info, err := range p.Store.List(within, reportsPrefix) {
		if err != nil {
			_ = group.Wait()
			return tally, bytes, fmt.Errorf("listing reports: %w", err)
		}
		host := reportOf(info.Key)
		if host == "" {
			continue
		}
		judge(host)
		last = info
	}
	judge("")
	if err := group.Wait(); err != nil {
		return tally, bytes, fmt.Errorf("removing reports: %w", err)
	}
	return tally, bytes, nil
}

// reportOf returns PROJECT/HOST of a report's key; "" for another object, which stays.
func reportOf(key string) string {
	parts := strings.Split(key, "/")
	if len(parts) != 4 {
		return ""
	}
	run, ok := strings.CutSuffix(parts[3], ".json")
	if _, err := time.Parse("20060102T150405.000000", run); err != nil || !ok {
		return ""
	}
	return parts[1] + "/" + parts[2]
}

// recordedHosts returns the hosts that have a record, as PROJECT/HOST.
func recordedHosts(ctx context.Context, s store.Store) (map[string]bool, error) {
	hosts := map[string]bool{}
	for info, err := range s.List(ctx, recordsPrefix) {
		if err != nil {
			return nil, fmt.Errorf("listing the records of hosts: %w", err)
		}
		if parts := strings.SplitN(strings.TrimPrefix(info.Key, recordsPrefix), "/", 3); len(parts) == 3 {
			hosts[parts[0]+"/"+parts[1]] = true
		}
	}
	return hosts, nil
}
