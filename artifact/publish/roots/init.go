package roots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// RootName is the name of the public root beside the keys, which hosts are configured to trust.
const RootName = "root.json"

// InitResult is the result of setting up a store.
type InitResult struct {
	RootFile string          `json:"root_file"`
	Digest   artifact.Digest `json:"digest"` // digest of the root, for --trust-root
	// the store supports conditional writes, with which publishers exclude each other
	Conditional bool `json:"conditional"`
}

// Init sets up an empty store: root, empty targets, snapshot and timestamp. threshold is the number of root keys that
// must sign the next root; 0 means more than half of those in the keyring.
func Init(ctx context.Context, p *publish.Publisher, threshold int) (InitResult, error) {
	root, err := firstRoot(p, threshold)
	if err != nil {
		return InitResult{}, err
	}
	own := trust.RootDelegation(root, tuf.RoleRoot)
	if p.Hand != nil {
		return InitResult{}, p.MakeRootDraft(root, 0, own)
	}
	keys, err := p.KeysFor(tuf.RoleRoot, own)
	if err != nil {
		return InitResult{}, err
	}
	data, err := publish.Sign(root, keys)
	if err != nil {
		return InitResult{}, err
	}
	return InitWith(ctx, p, data)
}

// InitWith sets up an empty store with a signed root.
func InitWith(ctx context.Context, p *publish.Publisher, root []byte) (InitResult, error) {
	whole := *p
	whole.Store = unmade{p.Store}
	p = &whole
	if err := checkEmpty(ctx, p, root); err != nil {
		return InitResult{}, err
	}
	if _, err := stageEmpty(ctx, p, root); err != nil { // missing keys are reported before the first write
		return InitResult{}, err
	}
	if err := setSeenAside(p); err != nil {
		return InitResult{}, err
	}
	root, err := putFirstRoot(store.Creating(ctx), p, root)
	if err != nil {
		return InitResult{}, err
	}
	conditional, err := probe(ctx, p, root)
	if err != nil {
		return InitResult{}, err
	}
	// The root's file is written before the store is complete: after an interruption, Init completes the store, or its
	// keys can publish into it.
	result := InitResult{Digest: artifact.NewDigest(sha256.Sum256(root)), Conditional: conditional}
	if p.Keys.Dir != "" {
		result.RootFile = filepath.Join(p.Keys.Dir, RootName)
		if err := durable.WriteFile(result.RootFile, root, 0o644); err != nil {
			return InitResult{}, err
		}
	}
	if err := putEmpty(ctx, p, root); err != nil {
		return InitResult{}, err
	}
	return result, trust.Pin(p.Seen, root)
}

// unmade is a store whose directory may not exist yet; the write of the first root makes it. A missing bucket is
// reported by that write.
type unmade struct{ store.Store }

func (u unmade) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := u.Store.Get(ctx, key, from)
	if errors.Is(err, store.ErrNoStore) {
		err = &store.Error{Op: store.OpGet, Object: key, Kind: store.ErrNotFound}
	}
	return body, info, err
}

func (u unmade) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range u.Store.List(ctx, prefix) {
			if errors.Is(err, store.ErrNoStore) || !yield(info, err) {
				return
			}
		}
	}
}

// firstRoot makes a root that has the public keys of the keyring for every role.
func firstRoot(p *publish.Publisher, threshold int) (*publish.RootRole, error) {
	root := tuf.NewRoot(p.Expires(p.Expiry.WithDefaults().Root))
	for _, name := range tuf.TopRoles() {
		keys, err := p.Keys.Public(name)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if err := root.Signed.AddKey(key, name); err != nil {
				return nil, err
			}
		}
	}
	keys := len(root.Signed.Roles[tuf.RoleRoot].KeyIDs)
	if threshold == 0 {
		threshold = keys/2 + 1
	}
	if threshold < 1 || threshold > keys {
		return nil, diag.Keys.Hint(fmt.Errorf("a threshold of %d needs as many root keys, and there are %d", threshold,
			keys), "make more with `corpus keys new --root-keys %d`", threshold)
	}
	root.Signed.Roles[tuf.RoleRoot].Threshold = threshold
	return root, nil
}

// putFirstRoot writes the first root. If the store has one that checkEmpty has accepted, an interrupted attempt left
// it, and it is used unchanged.
func putFirstRoot(ctx context.Context, p *publish.Publisher, root []byte) ([]byte, error) {
	key := trust.RoleKey(tuf.RoleRoot, 1)
	_, err := p.Store.Put(ctx, key, bytes.NewReader(root), int64(len(root)), store.Condition{IfAbsent: true})
	if !errors.Is(err, store.ErrPrecondition) {
		return root, err
	}
	there, err := trust.ReadMetadata(ctx, p.Store, key)
	if err == nil && !sameKeys(there, root) {
		err = setUpBefore(key)
	}
	return there, err
}

// sameKeys reports whether two roots give every role the same keys.
func sameKeys(a, b []byte) bool {
	rootA, errA := trust.Decode[tuf.RootType](a)
	rootB, errB := trust.Decode[tuf.RootType](b)
	return errA == nil && errB == nil && publish.SameRoles(rootA, rootB)
}

// putEmpty writes the first targets, snapshot and timestamp, without projects.
func putEmpty(ctx context.Context, p *publish.Publisher, root []byte) error {
	objects, err := stageEmpty(ctx, p, root)
	if err != nil {
		return err
	}
	return p.Write(ctx, objects)
}

// stageEmpty signs the first targets, snapshot and timestamp.
func stageEmpty(ctx context.Context, p *publish.Publisher, root []byte) ([]publish.Object, error) {
	parsed, err := trust.Decode[tuf.RootType](root)
	if err != nil {
		return nil, err
	}
	keys := map[string][]keyring.Key{}
	for _, role := range []string{tuf.RoleTargets, tuf.RoleSnapshot, tuf.RoleTimestamp} {
		if keys[role], err = p.KeysFor(role, trust.RootDelegation(parsed, role)); err != nil {
			return nil, err
		}
	}
	expires := p.Expires(p.Expiry.WithDefaults().Snapshot)
	targets := tuf.NewTargets(expires)
	targets.Signed.Version = 0
	first, file, err := publish.StageRole(ctx, p, tuf.RoleTargets, targets, &targets.Signed.Version, keys[tuf.RoleTargets])
	if err != nil {
		return nil, err
	}
	snapshot := tuf.NewSnapshot(expires)
	snapshot.Signed.Version = 0
	snapshot.Signed.Meta = map[string]*tuf.MetaFiles{trust.MetaName(tuf.RoleTargets): file}
	second, file, err := publish.StageRole(ctx, p, tuf.RoleSnapshot, snapshot, &snapshot.Signed.Version,
		keys[tuf.RoleSnapshot])
	if err != nil {
		return nil, err
	}
	timestamp := tuf.NewTimestamp(time.Now().UTC())
	timestamp.Signed.Version = 0
	timestamp.Signed.Meta = map[string]*tuf.MetaFiles{trust.MetaName(tuf.RoleSnapshot): file}
	third, err := p.StageTimestamp(timestamp, keys[tuf.RoleTimestamp], store.Condition{IfAbsent: true})
	return []publish.Object{first, second, third}, err
}

// probe reports whether the store supports conditional writes, with which publishers exclude each other. It tries to
// write the first root again with the same bytes: a store that ignores conditions loses nothing, and nothing is left to
// delete.
func probe(ctx context.Context, p *publish.Publisher, root []byte) (honoured bool, err error) {
	key := trust.RoleKey(tuf.RoleRoot, 1)
	for _, cond := range []store.Condition{{IfAbsent: true}, {IfMatch: `"0"`}} {
		err := probeOnce(ctx, p, key, root, cond)
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, store.ErrPrecondition) {
			return false, fmt.Errorf("trying out conditional writes: %w", err)
		}
	}
	return true, nil
}

// probeOnce writes until the store responds. The store itself retries nothing: if an earlier attempt, whose response
// was lost, wrote the same bytes, a retry must not count that as success.
func probeOnce(ctx context.Context, p *publish.Publisher, key string, root []byte, cond store.Condition) (err error) {
	for attempt := range publish.Attempts {
		_, err = p.Store.Put(store.Once(ctx), key, bytes.NewReader(root), int64(len(root)), cond)
		if !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, store.ErrThrottled) ||
			errors.Is(err, store.ErrCredentials) {
			return err
		}
		if stopped := publish.Pause(ctx, attempt); stopped != nil {
			return stopped
		}
	}
	return err
}
