package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// clone copies a role, signatures included.
func clone[T tuf.Roles](role *tuf.Metadata[T]) (*tuf.Metadata[T], error) {
	data, err := role.ToBytes()
	if err != nil {
		return nil, err
	}
	return trust.Decode[T](data)
}

func rootObject(version int64, data []byte) []object {
	return []object{{key: trust.RoleKey(tuf.RoleRoot, version), data: data, cond: store.Condition{IfAbsent: true}}}
}

// keep keeps what was put into force, so that a store that loses it can be given it again.
func (p *Publisher) keep(ctx context.Context, client *trust.Client, objects []object) error {
	written := map[string][]byte{}
	for _, o := range objects {
		if written[o.key] = o.data; o.isRoot() {
			if err := client.KeepRoot(o.data); err != nil {
				return err
			}
		}
	}
	if written[trust.TimestampKey] == nil {
		return nil
	}
	return client.KeepWritten(ctx, written)
}

// object is a metadata file that is signed and not yet written.
type object struct {
	key  string
	data []byte
	cond store.Condition
	page bool // nothing names it yet; it may be written beside others
}

// seenByHosts reports whether hosts act on the object once it is there. They find every other one only
// through a timestamp.
func (o object) seenByHosts() bool {
	return o.key == trust.TimestampKey || o.isRoot()
}

func (o object) isRoot() bool { return strings.HasSuffix(o.key, "."+trust.MetaName(tuf.RoleRoot)) }

// write writes objects in their order.
func (p *Publisher) write(ctx context.Context, objects []object) error {
	for _, o := range objects {
		if err := trust.CheckSize(o.role(), len(o.data)); err != nil {
			return err
		}
	}
	if err := p.writePages(ctx, objects); err != nil {
		return err
	}
	for _, o := range objects {
		if o.page {
			continue
		}
		_, err := p.Store.Put(ctx, o.key, bytes.NewReader(o.data), int64(len(o.data)), o.cond)
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrPrecondition) {
			return lostAnswer(o, err)
		}
		// A draft's version is signed, so an earlier attempt that was cut short wrote it under this name.
		there, readErr := trust.ReadMetadata(ctx, p.Store, o.key)
		if !o.cond.IfAbsent || readErr != nil || !bytes.Equal(there, o.data) {
			return err
		}
	}
	return nil
}

// role is what an object is of, for a person.
func (o object) role() string {
	if o.key == trust.TimestampKey {
		return tuf.RoleTimestamp
	}
	return o.key
}

// pageWriters is how many pages are written at once.
const pageWriters = 8

// writePages writes the pages among objects, before any file that names them.
func (p *Publisher) writePages(ctx context.Context, objects []object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(pageWriters)
	for _, o := range objects {
		if o.page {
			group.Go(func() error {
				_, err := p.Store.Put(ctx, o.key, bytes.NewReader(o.data), int64(len(o.data)), o.cond)
				return err
			})
		}
	}
	return group.Wait()
}

// keepPages writes the pages among objects again that a garbage collection removed while nothing named them: pages
// have the names of their content, and an earlier attempt may have left one.
func (p *Publisher) keepPages(ctx context.Context, objects []object) error {
	var keys []string
	for _, o := range objects {
		if o.page {
			keys = append(keys, o.key)
		}
	}
	missing, err := blobs.Missing(ctx, p.Store, keys)
	if err != nil {
		return err
	}
	return p.writePages(ctx, slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return !slices.Contains(missing, o.key) }))
}

// notAnswered passes on an error of the way to the store, which says nothing about the store's content.
func notAnswered(err error) error {
	if err == nil || trust.OfOne(err) {
		return nil
	}
	return err
}

// lostAnswer says that the step which commits a change may have been made, where its answer was lost.
func lostAnswer(o object, err error) error {
	lost := errors.Is(err, store.ErrUnreachable) || errors.Is(err, context.Canceled)
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) // so it was not written
	if o.key != trust.TimestampKey || !lost || full || errors.Is(err, store.ErrCredentials) || errors.Is(err, store.ErrNoStore) {
		return err
	}
	return diag.WithHint(fmt.Errorf("the answer to the last step was lost, so the change may have been made: %w", err),
		"it may have been published: run the command again, which changes nothing where it was")
}
