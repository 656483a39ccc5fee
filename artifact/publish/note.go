package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// note tells whoever collects garbage which packs a draft names. Signing offline may take days, and
// nothing else in the store tells that somebody is at it. It lies beside the packs, and is removed by
// Collect alone: when all of them are signed for, or when nobody signed for too long. It is not signed
// and not believed: the worst that a false one does is to keep packs.
type note struct {
	Version string            `json:"version"`
	Packs   []artifact.Digest `json:"packs"`
}

const (
	noteSuffix = ".draft"
	// maxNote bounds what is read of a note: an index names a pack for each version at most.
	maxNote = 1 << 20
)

// leaveNote writes the note of a draft, where it brings packs.
func (p *Publisher) leaveNote(ctx context.Context, d described) error {
	if len(d.packs) == 0 {
		return nil
	}
	data, err := json.Marshal(note{Version: d.release.Version, Packs: d.packs})
	if err != nil {
		return err
	}
	key := chunk.PackPrefix(d.release.Project) + artifact.NewDigest(sha256.Sum256(data)).Hex() + noteSuffix
	// One that is there is from an earlier try: the time of this one counts.
	if _, err := p.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
		return fmt.Errorf("noting what the draft of %s needs: %w", d.release, err)
	}
	return nil
}

// pending are the keys of packs that drafts name. Notes that are of no more use it removes.
func (p *Publisher) pending(ctx context.Context, project string, notes []store.Info, used map[string]bool, grace time.Duration, dry bool) (map[string]bool, error) {
	named := map[string]bool{}
	for _, info := range notes {
		n, err := p.readNote(ctx, info.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue // somebody else collects too
		}
		if err != nil {
			return nil, err
		}
		done := !info.Modified.IsZero() && p.now().Sub(info.Modified) >= grace
		keys := map[string]bool{}
		for _, pack := range n.Packs {
			if key := chunk.PackKey(project, pack); !used[key] {
				keys[key] = true
			}
		}
		if !done && len(keys) > 0 {
			for key := range keys {
				named[key] = true
			}
		} else if !dry {
			if err := p.Store.Delete(ctx, info.Key); err != nil {
				return nil, err
			}
		}
	}
	return named, nil
}

func (p *Publisher) readNote(ctx context.Context, key string) (note, error) {
	var n note
	body, _, err := p.Store.Get(ctx, key, 0)
	if err != nil {
		return n, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxNote))
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, &trust.Refused{Check: trust.CheckForm, Of: key, Err: fmt.Errorf("it is no note of a draft (remove it if nobody is signing): %w", err)}
	}
	return n, nil
}
