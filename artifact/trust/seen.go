package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// seen is what was verified before: the directory that makes going back in time visible.
type seen struct {
	dir string
	// held is what was loaded and kept, by name; nil where nothing has to be remembered.
	held map[string][]byte
	// memory says that held is all there is: the directory is neither read nor written.
	memory bool
	// pending says that nothing is written to the directory yet: held has what is new, with nil for what was forgotten.
	pending bool
}

const (
	rootFile      = "root.json"
	timestampFile = "timestamp.json"
	snapshotFile  = "snapshot.json"
	pinFile       = "pinned" // digest of the root that the host pinned
)

func digestOf(data []byte) artifact.Digest { return artifact.NewDigest(sha256.Sum256(data)) }

// load reads a file that was kept; nil where there is none.
func (s seen) load(name string) ([]byte, error) {
	if data, held := s.held[name]; s.memory || s.pending && held {
		return data, nil
	}
	data, err := walk.ReadFile(filepath.Join(s.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		s.remember(name, data)
	}
	return data, err
}

func (s seen) remember(name string, data []byte) {
	if s.held != nil {
		s.held[name] = data
	}
}

func (s seen) keep(name string, data []byte) error {
	s.remember(name, data)
	if s.memory || s.pending {
		return nil
	}
	path := filepath.Join(s.dir, name)
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keeping %s: %w", name, err)
	}
	return durable.WriteFile(path, data, 0o600)
}

// forget removes what was kept.
func (s seen) forget(names ...string) error {
	for _, name := range names {
		delete(s.held, name)
		if s.pending {
			s.held[name] = nil
		}
		if s.memory || s.pending {
			continue
		}
		if err := durable.Remove(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("forgetting %s: %w", name, err)
		}
	}
	return nil
}

// roleFile is the name under which a targets role is kept.
func roleFile(role string) string {
	if role == targetsRole {
		return MetaName(role)
	}
	return filepath.Join("projects", MetaName(role))
}
