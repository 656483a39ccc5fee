package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// note says for Collect what a draft names. Signing offline may take days, and nothing else in the
// store says that it goes on. It lies beside the packs, and is removed by Collect alone: when all that
// it names is signed, or when it is too old. It is not signed and not believed: the worst that a false
// one does is to keep objects.
type note struct {
	Version string            `json:"version"`
	Packs   []artifact.Digest `json:"packs"`
	// Objects are the names of the artifact and what lies beside it. Notes of before have none: what has
	// their version in its name stays.
	Objects []string `json:"objects,omitempty"`
}

const (
	noteSuffix = ".draft"
	// maxNote bounds what is read of a note: an index names a pack for each version at most.
	maxNote = 1 << 20
)

// leaveNote writes the note of a draft.
func (p *Publisher) leaveNote(ctx context.Context, r artifact.Release, keys []string, packs []artifact.Digest) error {
	n := note{Version: r.Version, Packs: packs}
	for _, key := range keys {
		n.Objects = append(n.Objects, path.Base(key))
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	key := chunk.PackPrefix(r.Project) + artifact.NewDigest(sha256.Sum256(data)).Hex() + noteSuffix
	// One that is there is from an earlier try: the time of this one counts.
	if _, err := p.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
		return fmt.Errorf("noting what the draft of %s needs: %w", r, err)
	}
	return nil
}

// pending are the keys of what drafts name. Notes that are of no more use it removes.
func (p *Publisher) pending(ctx context.Context, project string, there lying, used map[string]bool, grace time.Duration, dry bool) (map[string]bool, error) {
	named := map[string]bool{}
	for _, info := range there.notes {
		n, err := p.readNote(ctx, info.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue // another collection removed it
		}
		if err != nil {
			return nil, err
		}
		keys := n.keys(project, there.objects)
		maps.DeleteFunc(keys, func(key string, _ bool) bool { return used[key] })
		done := !info.Modified.IsZero() && p.now().Sub(info.Modified) >= grace
		if !done && len(keys) > 0 {
			maps.Copy(named, keys)
		} else if !dry {
			if err := p.Store.Delete(ctx, info.Key); err != nil {
				return nil, err
			}
		}
	}
	return named, nil
}

// keys are the keys of what a note names.
func (n note) keys(project string, objects []store.Info) map[string]bool {
	keys := map[string]bool{}
	for _, pack := range n.Packs {
		keys[chunk.PackKey(project, pack)] = true
	}
	for _, name := range n.Objects {
		keys["deploy/"+project+"/"+name] = true
	}
	for _, info := range objects {
		_, name, _ := strings.Cut(path.Base(info.Key), ".") // what follows the digest
		if len(n.Objects) == 0 && strings.HasPrefix(name, n.Version+".") {
			keys[info.Key] = true
		}
	}
	return keys
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
