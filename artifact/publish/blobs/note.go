package blobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Note protects the objects of a draft from package collect. Signing offline may take days, and nothing else in the
// store shows that a draft is being signed. A note is beside the packs. Only package collect removes it: when all
// objects in it are signed, or when it is too old. A note is not signed, and a false one can do no more than keep
// objects.
type Note struct {
	Version string            `json:"version"`
	Packs   []artifact.Digest `json:"packs"`
	// Objects are the names of the artifact and its sidecars. Notes of earlier versions of corpus have none; then
	// all objects with the note's version in their names are kept.
	Objects []string `json:"objects,omitempty"`
}

const (
	noteSuffix = ".draft"
	// maxNote limits how much of a note is read. An index names at most one pack for each version.
	maxNote = 1 << 20
)

// LeaveNote writes the note of a draft that publishes a release: the keys of its objects, and the packs that were
// uploaded for it.
func LeaveNote(ctx context.Context, s store.Store, r artifact.Release, keys []string, packs []artifact.Digest) error {
	n := Note{Version: r.Version, Packs: packs}
	for _, key := range keys {
		n.Objects = append(n.Objects, path.Base(key))
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	key := chunk.PackPrefix(r.Project) + artifact.NewDigest(sha256.Sum256(data)).Hex() + noteSuffix
	// An existing note is from an earlier attempt; writing it again renews its time.
	if _, err := s.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
		return fmt.Errorf("writing the note of the draft of %s: %w", r, err)
	}
	return nil
}

// Keys returns the keys of the objects that a note names. objects are all objects of the project.
func (n Note) Keys(project string, objects []store.Info) map[string]bool {
	keys := map[string]bool{}
	for _, pack := range n.Packs {
		keys[chunk.PackKey(project, pack)] = true
	}
	for _, name := range n.Objects {
		keys["deploy/"+project+"/"+name] = true
	}
	for _, info := range objects {
		_, name, _ := strings.Cut(path.Base(info.Key), ".") // the part after the digest
		if len(n.Objects) == 0 && strings.HasPrefix(name, n.Version+".") {
			keys[info.Key] = true
		}
	}
	return keys
}

// ReadNote reads a note. If it cannot be parsed, the error is a *trust.Refused.
func ReadNote(ctx context.Context, s store.Store, key string) (Note, error) {
	var n Note
	data, _, err := store.ReadUpTo(ctx, s, key, maxNote)
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, &trust.Refused{Check: trust.CheckForm, Of: key,
			Err: fmt.Errorf("it is not a note of a draft (remove it if no draft is being signed): %w", err)}
	}
	return n, nil
}
