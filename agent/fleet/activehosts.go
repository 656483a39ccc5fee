package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// activeHosts holds the hosts from which the store received a report or a record since a given time. A query about a
// host is answered from its signed record if possible, which takes no further request, and otherwise from its reports.
type activeHosts struct {
	known    hostkey.Registry
	since    time.Time
	beats    hostRecords     // valid records
	recorded hostRecords     // the signed ones of them that the store received since then
	answered map[string]bool // hosts whose reports do not have to be read, by PROJECT/HOST
}

// live reads the records of a project's hosts, or of all hosts for "", and the keys in the registry of the store.
func live(ctx context.Context, s store.Store, keys Keys, project string, since time.Time) (*activeHosts, error) {
	known, err := keys(ctx, s)
	if err != nil {
		return nil, err
	}
	all, err := readBeats(ctx, s, project, known)
	recorded := maps.Clone(all)
	maps.DeleteFunc(recorded, func(_ string, r hostrecord.Listed) bool { return !r.Signed || r.Seen.Before(since) })
	return &activeHosts{known, since, all, recorded, map[string]bool{}}, err
}

// unanswered returns the reports of hosts that have to be read, below a prefix of PROJECT/HOST or HOST. It first lists
// the names of the hosts, a thousand in a request, regardless of the number of their reports.
func (l *activeHosts) unanswered(ctx context.Context, s store.Store, prefix string) ([]hostRuns, error) {
	folders, err := hostFolders(ctx, s, prefix)
	if err != nil {
		return nil, err
	}
	count := len(folders)
	folders = slices.DeleteFunc(folders, func(f string) bool { return l.answered[ofFolder(f)] })
	if len(folders) > fewHosts+count/fewHosts {
		all, err := listBelow(ctx, s, prefix, l.since, l.beats)
		return slices.DeleteFunc(all, func(h hostRuns) bool { return l.answered[h.of] }), err
	}
	read := make([][]hostRuns, len(folders))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, folder := range folders {
		group.Go(func() (err error) {
			read[i], err = listBelow(within, s, folder, l.since, l.beats)
			return err
		})
	}
	err = group.Wait()
	return slices.Concat(read...), err
}

// fewHosts is the number of hosts that are always listed one by one; one more is allowed for each fewHosts hosts.
// Beyond that, listing all reports takes fewer requests.
const fewHosts = 20

// ofFolder returns the PROJECT/HOST of a folder of reports.
func ofFolder(folder string) string {
	return strings.TrimSuffix(strings.TrimPrefix(folder, prefix), "/")
}

// hostFolders returns the folders of hosts below the prefix of a project, or of all projects.
func hostFolders(ctx context.Context, s store.Store, below string) (folders []string, err error) {
	for info, err := range store.ListFolders(ctx, s, below) {
		if err != nil {
			return nil, fmt.Errorf("reading the reports of hosts: %w", err)
		}
		if below != prefix {
			folders = append(folders, info.Key)
			continue
		}
		of, err := hostFolders(ctx, s, info.Key)
		if err != nil {
			return nil, err
		}
		folders = append(folders, of...)
	}
	return folders, nil
}
