package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet/pages"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// mostHeads is how many earlier heads of a project are read for the history of its channels.
const mostHeads = 30

// histories are the moves of a project's channels, as far as the store has the heads that it replaced: corpus gc takes
// them away in time. The newest is what the verified head says; of the earlier ones only what a page shows is read.
func histories(ctx context.Context, s store.Store, l trust.Listing) ([]pages.History, error) {
	moves := map[string][]pages.Move{}
	for serial := max(1, l.Serial-mostHeads); serial <= l.Serial; serial++ {
		channels, at, err := headOf(ctx, s, l.Project, serial)
		if err != nil {
			return nil, err
		}
		if serial == l.Serial {
			channels = l.Channels
		}
		for name, pointer := range channels {
			all := moves[name]
			if len(all) > 0 && all[len(all)-1].Digest == pointer.Digest.Short() {
				continue
			}
			moves[name] = append(all, pages.Move{At: at, Version: trust.Printable(pointer.Version), Digest: pointer.Digest.Short()})
		}
	}
	var out []pages.History
	for _, name := range slices.Sorted(maps.Keys(moves)) {
		if artifact.CheckChannel(name) == nil {
			slices.Reverse(moves[name])
			out = append(out, pages.History{Ref: artifact.Ref{Project: l.Project, Channel: name}, Moves: moves[name]})
		}
	}
	return out, nil
}

// largestHead is how many bytes are read of a head.
const largestHead = 4 << 20

// headOf is what the channels of a project named at one of its serials, and when the store got that; nothing where the
// store no longer has it.
func headOf(ctx context.Context, s store.Store, project string, serial int64) (map[string]trust.Pointer, time.Time, error) {
	key := fmt.Sprintf("metadata/%d.%s.json", serial, trust.HeadRole(project))
	data, info, err := store.ReadUpTo(ctx, s, key, largestHead)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading the history of %s: %w", project, err)
	}
	role := &trust.Role{}
	if json.Unmarshal(data, role) != nil {
		return nil, time.Time{}, nil //nolint:nilerr // an older head that is damaged is no head
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return nil, time.Time{}, nil //nolint:nilerr // as above
	}
	return channels, info.Modified.UTC(), nil
}
