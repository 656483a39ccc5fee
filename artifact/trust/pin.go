package trust

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Pinned reports whether a host that keeps its trust in dir has a pinned root.
func Pinned(dir string) (bool, error) { return walk.Exists(filepath.Join(dir, rootFile)) }

// ReadRoot reads a root file that a person gave. If the file is not a root, the error says what it is instead.
func ReadRoot(file string) ([]byte, error) {
	data, err := walk.ReadGiven(file)
	if err != nil {
		return nil, diag.Root.Hint(fmt.Errorf("reading the root of trust: %w", err),
			"give the keys/root.json of `corpus store init`, or sha256:HEX of it")
	}
	if err := isRoot(data); err != nil {
		is := "not a root of trust"
		if block, _ := pem.Decode(data); block != nil {
			is = "a key and not a root of trust"
		}
		return nil, diag.Root.Hint(fmt.Errorf("%s is %s: %w", file, is, err),
			"give the root.json that `corpus store init` wrote beside the keys (keys/root.json), or sha256:HEX of it")
	}
	return data, nil
}

// Pin makes a host trust a root. Pinning the same root again changes nothing; pinning another root is an error, since
// it would remove the host's protection.
func Pin(dir string, root []byte) error {
	if done, err := checkPin(dir, root); done || err != nil {
		return err
	}
	s := seen{dir: dir}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping the root of trust: %w", err)
	}
	// root.json marks the host as bootstrapped, so it is written after the digest, and the given root is removed last.
	if err := errors.Join(s.keep(pinFile, []byte(digestOf(root))), s.keep(rootFile, root)); err != nil {
		return err
	}
	return s.forget(givenFile)
}

// checkPin returns an error for an invalid root, and for one that differs from the pinned one. done reports that it is
// pinned already.
func checkPin(dir string, root []byte) (done bool, err error) {
	before, pinned, err := walk.Read(filepath.Join(dir, pinFile))
	if err != nil {
		return false, fmt.Errorf("reading which root this host trusts: %w", err)
	}
	digest := digestOf(root)
	switch {
	case !pinned, isPin(before) != nil: // nothing is pinned, or the pin is damaged
	case string(before) == string(digest):
		if have, err := walk.ReadFile(filepath.Join(dir, rootFile)); err == nil && isRoot(have) == nil {
			return true, nil
		} // a process was killed between writing the two files, or root.json was lost
	default:
		return false, diag.Root.Hint(&Refused{Check: CheckPin, Of: rootFile,
			Err: fmt.Errorf("this host trusts root %s, not %s", before, digest)},
			"leave out --trust-root if the host is to follow the store that it has followed; to follow the store of that "+
				"root instead: rm -r %s, and then the same command again", dir)
	}
	if _, err := newSet(root); err != nil {
		return false, refuse(rootFile, err)
	}
	return false, nil
}

// OpenGiven is like Open for a host that was given its first root. The root is pinned after it has verified the store's
// timestamp. Until then nothing in dir changes, so that giving the root of another store does no harm.
func OpenGiven(s store.Store, dir string, root []byte, now func() time.Time) (*Client, error) {
	done, err := checkPin(dir, root)
	if err != nil {
		return nil, err
	}
	if done {
		return Open(s, dir, now)
	}
	if now == nil {
		now = time.Now
	}
	knew, err := Remembers(dir)
	if err != nil {
		return nil, err
	}
	held := map[string][]byte{rootFile: root, pinFile: []byte(digestOf(root))}
	c := &Client{store: s, seen: seen{dir: dir, held: held, pending: true}, now: now, given: root, knew: knew}
	if c.set, err = newSet(root); err != nil {
		return nil, refuse(rootFile, err)
	}
	c.set.RefTime = now().UTC()
	return c, nil
}

// PinOf is like Pin for a publisher: it pins the root only if the store belongs to it.
func PinOf(ctx context.Context, s store.Store, dir string, root []byte) error {
	c, err := OpenGiven(s, dir, root, nil)
	if err != nil || c.Pinned() {
		return err
	}
	if err := c.Belongs(ctx); err != nil {
		if !errors.Is(err, ErrRootMissing) || !c.signsTimestamp(ctx) {
			return err
		} // the store has lost its root, which `corpus refresh --rebuild` restores
	}
	return Pin(dir, root)
}

// signsTimestamp reports whether the store's timestamp is signed by keys that the trusted root allows.
func (c *Client) signsTimestamp(ctx context.Context) bool {
	data, err := read(ctx, c.store, TimestampKey, maxTimestamp)
	if err != nil {
		return false
	}
	timestamp, err := Decode[tuf.TimestampType](data)
	return err == nil && Guard(func() error { return c.set.Root.VerifyDelegate(tuf.RoleTimestamp, timestamp) }) == nil
}

// Pinned reports whether the root of this client is pinned, and not only given.
func (c *Client) Pinned() bool { return !c.seen.pending }

// settle pins a given root after it has verified the timestamp, and keeps the metadata that was verified since.
func (c *Client) settle() error {
	if !c.seen.pending || c.set.Timestamp == nil {
		return nil
	}
	c.seen.pending = false
	if err := Pin(c.seen.dir, c.given); err != nil {
		return err
	}
	if !c.knew { // versions that the host ran before it followed this store do not concern the store
		c.seen.held[versionsFile] = []byte("{}")
	}
	for _, name := range slices.Sorted(maps.Keys(c.seen.held)) {
		var err error
		if data := c.seen.held[name]; data == nil {
			err = c.seen.forget(name)
		} else if name != pinFile {
			err = c.seen.keep(name, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unlessForeign replaces a refused signature by a clearer error if the store belongs to another root: its own root is
// valid and shares no key with the trusted one.
func (c *Client) unlessForeign(ctx context.Context, err error) error {
	var refused *Refused
	if !errors.As(err, &refused) || refused.Check != CheckSignature {
		return err
	}
	trusted := c.set.Root.Signed.Version
	for _, version := range slices.Compact([]int64{trusted, 1}) {
		data, readErr := read(ctx, c.store, RoleKey(tuf.RoleRoot, version), maxMetadata)
		if errors.Is(readErr, store.ErrNotFound) || errors.Is(readErr, store.ErrForbidden) {
			continue
		}
		if readErr != nil || !c.isForeign(data) {
			return err
		}
		mine, loadErr := c.seen.load(rootFile)
		if loadErr != nil {
			return errors.Join(err, loadErr)
		}
		return foreign(data, mine)
	}
	return err
}

// foreign returns the refusal of a store whose root does not follow from the trusted one.
func foreign(root, trusted []byte) error {
	return diag.Root.Hint(&Refused{Check: CheckPin, Of: "the store",
		Err: fmt.Errorf("this store is not the one these keys belong to: its root is %s, and the trusted one is %s",
			digestOf(root), digestOf(trusted))},
		"give the --store that these keys and this root.json belong to, or the --keys (and --trust-root) of this store; "+
			"if this is the right store, its root was replaced: do not trust it until you know who did that")
}

// isForeign reports whether a root belongs to another store: it is signed by its own keys, and none of them may sign
// the trusted root.
func (c *Client) isForeign(data []byte) bool {
	mine, err := c.seen.load(rootFile)
	if err != nil || bytes.Equal(data, mine) {
		return false
	}
	root, err := Decode[tuf.RootType](data)
	if err != nil || Guard(func() error { return root.VerifyDelegate(tuf.RoleRoot, root) }) != nil {
		return false
	}
	trusted := RootDelegation(c.set.Root, tuf.RoleRoot).Keys
	return !slices.ContainsFunc(RootDelegation(root, tuf.RoleRoot).Keys,
		func(id string) bool { return slices.Contains(trusted, id) })
}

// PutBack restores the files in the client's directory from its memory if the root was removed from the directory, and
// reports whether it was.
func (c *Client) PutBack() (lost bool, err error) {
	if c.seen.memory || c.seen.pending || c.seen.held[rootFile] == nil {
		return false, nil
	}
	found, err := walk.Named(filepath.Join(c.seen.dir, rootFile))
	if found || err != nil {
		return false, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.seen.held)) {
		if data := c.seen.held[name]; data != nil && name != rootFile {
			err = errors.Join(err, c.seen.keep(name, data))
		}
	}
	if err != nil {
		return true, err
	}
	return true, c.seen.keep(rootFile, c.seen.held[rootFile]) // last, since it marks the host as bootstrapped
}
