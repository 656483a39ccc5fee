package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// seen is what was verified before: the directory that makes going back in time visible.
type seen struct {
	dir string
	// held is what was loaded and kept, by name; nil where nothing has to be remembered.
	held map[string][]byte
	// memory says that held is all there is: the directory is neither read nor written.
	memory bool
}

const (
	rootFile      = "root.json"
	timestampFile = "timestamp.json"
	snapshotFile  = "snapshot.json"
	pinFile       = "pinned" // digest of the root the host was told to trust
)

// Pinned reports whether a host that keeps its trust in dir has been told whom to trust.
func Pinned(dir string) (bool, error) { return walk.Exists(filepath.Join(dir, rootFile)) }

// Pin tells a host to trust what this root leads to. Doing it again with the same root changes
// nothing; another root is refused, since it would drop all that protects the host.
func Pin(dir string, root []byte) error {
	digest := digestOf(root)
	before, pinned, err := walk.Read(filepath.Join(dir, pinFile))
	if err != nil {
		return fmt.Errorf("reading which root this host trusts: %w", err)
	}
	switch {
	case !pinned, isPin(before) != nil: // nothing is pinned, or what was written down is lost
	case string(before) == string(digest):
		if have, err := os.ReadFile(filepath.Join(dir, rootFile)); err == nil && isRoot(have) == nil {
			return nil
		} // else a process was killed between the two files, or root.json was lost
	default:
		return diag.WithHint(&Refused{Check: CheckPin, Of: rootFile, Err: fmt.Errorf("this host trusts root %s, not %s", before, digest)},
			"to trust another store from scratch, remove %s first", dir)
	}
	if _, err := newSet(root); err != nil {
		return refuse(rootFile, err)
	}
	s := seen{dir: dir}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping the root of trust: %w", err)
	}
	// root.json comes last: it is what says that the host is bootstrapped.
	return errors.Join(s.keep(pinFile, []byte(digest)), s.keep(rootFile, root))
}

func digestOf(data []byte) artifact.Digest { return artifact.NewDigest(sha256.Sum256(data)) }

// load reads a file that was kept; nil where there is none.
func (s seen) load(name string) ([]byte, error) {
	if s.memory {
		return s.held[name], nil
	}
	data, err := os.ReadFile(filepath.Join(s.dir, name))
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
	if s.memory {
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
		if s.memory {
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
