package trust

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// seen is the metadata that was verified before, kept in a directory, with which an older state of the store is
// noticed.
type seen struct {
	dir string
	// held has the content that was loaded or kept, by name; nil if it is not needed again.
	held map[string][]byte
	// memory means that only held is used: the directory is neither read nor written.
	memory bool
	// pending means that nothing is written to the directory yet: held has the new content, and nil for forgotten files.
	pending bool
}

const (
	rootFile      = "root.json"
	timestampFile = "timestamp.json"
	snapshotFile  = "snapshot.json"
	pinFile       = "pinned" // digest of the pinned root
)

func digestOf(data []byte) artifact.Digest { return artifact.NewDigest(sha256.Sum256(data)) }

// load returns the content of a kept file; nil if there is none.
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
		return s.unwritable(fmt.Errorf("keeping %s: %w", name, err))
	}
	return s.unwritable(durable.WriteFile(path, data, 0o600))
}

// unwritable adds a hint to the error of a user who may not write into the directory.
func (s seen) unwritable(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return diag.Rights.Hint(err, "this user must be allowed to write in %s: run the command as its owner, or change "+
		"its owner (chown -R)", s.dir)
}

// forget removes kept files.
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

// roleFile returns the name under which a targets role is kept.
func roleFile(role string) string {
	if role == targetsRole {
		return MetaName(role)
	}
	return filepath.Join("projects", MetaName(role))
}

// seenWait is how long a publisher waits for another one that updates the same directory.
const seenWait = 5 * time.Minute

// lock prevents other publishers with the same directory from updating it at the same time. Otherwise, if one of them
// kept a newer snapshot between this publisher's timestamp and snapshot, the store would seem to have an older state.
// The kernel releases the lock when its process ends. A host needs no lock here, since it holds one during each run.
func (s seen) lock(ctx context.Context) (unlock func(), err error) {
	if err := durable.MkdirAll(s.dir, 0o700); err != nil {
		return nil, s.unwritable(fmt.Errorf("keeping the metadata of the store: %w", err))
	}
	f, err := os.OpenFile(filepath.Join(s.dir, ".lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, s.unwritable(fmt.Errorf("keeping the metadata of the store: %w", err))
	}
	if err := s.waitFor(ctx, f); err != nil {
		_ = f.Close() // it was not locked
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// waitFor locks a file, and waits for another publisher that has locked it, for seenWait at most.
func (s seen) waitFor(ctx context.Context, f *os.File) error {
	late := time.After(seenWait)
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for another publisher with %s: %w", s.dir, context.Cause(ctx))
		case <-late:
			return diag.Busy.Hint(fmt.Errorf("another publisher with %s has followed the store for more than %v",
				s.dir, seenWait),
				"see which process it is (lslocks, fuser -v %s), and let it continue (kill -CONT) or end it", f.Name())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Remind copies the metadata of a store from another directory into dir, where root is pinned, so that a client of dir
// refuses an older state of the store. It copies nothing if the other directory pins another root, or none. It takes no
// lock. A concurrent publisher does no harm: each file that is read is at least as new as the one before, and a
// snapshot older than the timestamp only means that a client reads the newer one from the store.
func Remind(dir, from string, root []byte) error {
	if err := keptAs(from, "directory", os.FileMode.IsDir); err != nil {
		return err
	}
	pin, found, err := walk.Read(filepath.Join(from, pinFile))
	if err != nil {
		return unreadKept(filepath.Join(from, pinFile), err)
	}
	if !found || string(pin) != string(digestOf(root)) {
		return nil
	}
	for _, file := range []struct {
		name  string
		sound func([]byte) error
	}{{snapshotFile, isJSON}, {timestampFile, isJSON}, {rootFile, isRoot}} {
		data, found, err := walk.Read(filepath.Join(from, file.name))
		if err != nil {
			return unreadKept(filepath.Join(from, file.name), err)
		}
		if !found || file.sound(data) != nil { // a publisher repairs damaged files
			continue
		}
		if err := (seen{dir: dir}).keep(file.name, data); err != nil {
			return err
		}
	}
	return nil
}
