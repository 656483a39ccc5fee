package trust

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
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

// ReadRoot reads the file of a root that a person gave. An error says what the file is, where it is none.
func ReadRoot(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("reading the root of trust: %w", err), "give the keys/root.json of `corpus store init`, or sha256:HEX of it")
	}
	if err := isRoot(data); err != nil {
		is := "no root of trust"
		if block, _ := pem.Decode(data); block != nil {
			is = "a key, and no root of trust"
		}
		return nil, diag.WithHint(fmt.Errorf("%s is %s: %w", file, is, err),
			"give the root.json that `corpus store init` wrote beside the keys (keys/root.json), or sha256:HEX of it")
	}
	return data, nil
}

// Pin tells a host to trust what this root leads to. Doing it again with the same root changes
// nothing; another root is refused, since it would drop all that protects the host.
func Pin(dir string, root []byte) error {
	if done, err := checkPin(dir, root); done || err != nil {
		return err
	}
	s := seen{dir: dir}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keeping the root of trust: %w", err)
	}
	// root.json says that the host is bootstrapped, so it is written after the digest, and what was given goes last.
	if err := errors.Join(s.keep(pinFile, []byte(digestOf(root))), s.keep(rootFile, root)); err != nil {
		return err
	}
	return s.forget(givenFile)
}

// checkPin refuses a root that is none, and one in the place of another; done says that it is pinned already.
func checkPin(dir string, root []byte) (done bool, err error) {
	before, pinned, err := walk.Read(filepath.Join(dir, pinFile))
	if err != nil {
		return false, fmt.Errorf("reading which root this host trusts: %w", err)
	}
	digest := digestOf(root)
	switch {
	case !pinned, isPin(before) != nil: // nothing is pinned, or what was written down is lost
	case string(before) == string(digest):
		if have, err := walk.ReadFile(filepath.Join(dir, rootFile)); err == nil && isRoot(have) == nil {
			return true, nil
		} // else a process was killed between the two files, or root.json was lost
	default:
		return false, diag.WithHint(&Refused{Check: CheckPin, Of: rootFile, Err: fmt.Errorf("this host trusts root %s, not %s", before, digest)},
			"to trust another store from scratch, remove %s first", dir)
	}
	if _, err := newSet(root); err != nil {
		return false, refuse(rootFile, err)
	}
	return false, nil
}

// OpenGiven is Open for a host that was given its first root. The root is pinned when it has verified the store's
// timestamp, and not before: until then nothing of what dir says was seen changes, so that a root of another store does no harm.
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

// PinOf is Pin for a publisher: it pins the root of a store that lies under it, and of no other.
func PinOf(ctx context.Context, s store.Store, dir string, root []byte) error {
	c, err := OpenGiven(s, dir, root, nil)
	if err != nil || c.Pinned() {
		return err
	}
	if err := c.Belongs(ctx); err != nil {
		if !errors.Is(err, ErrRootMissing) || !c.signsTimestamp(ctx) {
			return err
		} // else the store has lost its root, which a rebuild puts back
	}
	return Pin(dir, root)
}

// signsTimestamp reports whether the trusted root lets sign who signed the store's timestamp.
func (c *Client) signsTimestamp(ctx context.Context) bool {
	data, err := read(ctx, c.store, TimestampKey, maxTimestamp)
	if err != nil {
		return false
	}
	timestamp, err := Decode[tuf.TimestampType](data)
	return err == nil && Guard(func() error { return c.set.Root.VerifyDelegate(tuf.RoleTimestamp, timestamp) }) == nil
}

// Pinned reports whether the root that this client follows is pinned, and not only given.
func (c *Client) Pinned() bool { return !c.seen.pending }

// settle pins the root that was given once it has verified something, and keeps what was verified since.
func (c *Client) settle() error {
	if !c.seen.pending || c.set.Timestamp == nil {
		return nil
	}
	c.seen.pending = false
	if err := Pin(c.seen.dir, c.given); err != nil {
		return err
	}
	if !c.knew { // what the host ran before it followed this store says nothing of the store's versions
		c.seen.held[versionsFile] = []byte("{}")
	}
	for _, name := range slices.Sorted(maps.Keys(c.seen.held)) {
		data := c.seen.held[name]
		if data == nil {
			if err := c.seen.forget(name); err != nil {
				return err
			}
		} else if name != pinFile {
			if err := c.seen.keep(name, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlessForeign explains a refused signature where the store is another one than the trusted root belongs to: its own
// root is sound and shares no key with it.
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
		return diag.WithHint(&Refused{Check: CheckPin, Of: "the store", Err: fmt.Errorf("this store is not the one these keys belong to: its root is %s, and the trusted one is %s", digestOf(data), digestOf(mine))},
			"give the --store that these keys and this root.json belong to, or the --keys (and --trust-root) of this store; if this is the right store, somebody replaced its root: do not trust it until you know who")
	}
	return err
}

// isForeign reports whether a root is one of another store: signed by its own keys, none of which may sign the trusted one.
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
	return !slices.ContainsFunc(RootDelegation(root, tuf.RoleRoot).Keys, func(id string) bool { return slices.Contains(trusted, id) })
}
