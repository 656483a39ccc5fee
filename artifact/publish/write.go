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

// Clone copies a role with its signatures.
func Clone[T tuf.Roles](role *tuf.Metadata[T]) (*tuf.Metadata[T], error) {
	data, err := role.ToBytes()
	if err != nil {
		return nil, err
	}
	return trust.Decode[T](data)
}

// RootObject returns a root to be written under a name that no root has yet.
func RootObject(version int64, data []byte) []Object {
	return []Object{{Key: trust.RoleKey(tuf.RoleRoot, version), Data: data, cond: store.Condition{IfAbsent: true}}}
}

// Made is the error of a change that was made in the store, and of whose metadata the publisher could not keep a copy.
type Made struct{ Err error }

func (m *Made) Error() string {
	return "the change was made in the store, but the copy of its metadata here was not kept: " + m.Err.Error()
}

// Unwrap returns why there is no copy.
func (m *Made) Unwrap() error { return m.Err }

// Keep saves a copy of the metadata that was put into force, so that it can be restored if the store loses it. The
// error wraps a *Made.
func (p *Publisher) Keep(ctx context.Context, client *trust.Client, objects []Object) error {
	if err := p.keep(ctx, client, objects); err != nil {
		return diag.Rights.Hint(&Made{err}, "let this machine write there (df -h, df -i, mount); do not run the command "+
			"again: the next one reads what the store has")
	}
	return nil
}

func (p *Publisher) keep(ctx context.Context, client *trust.Client, objects []Object) error {
	written := map[string][]byte{}
	for _, o := range objects {
		if written[o.Key] = o.Data; o.IsRoot() {
			if err := client.KeepRoot(o.Data); err != nil {
				return err
			}
		}
	}
	if written[trust.TimestampKey] == nil {
		return nil
	}
	return client.KeepWritten(ctx, written)
}

// Object is a metadata file that is signed and not yet written.
type Object struct {
	Key  string
	Data []byte
	cond store.Condition
	Page bool // nothing names it yet, so pages may be written in parallel
}

// seenByHosts reports whether hosts read the object as soon as it is written. They find all other objects only through
// a timestamp.
func (o Object) seenByHosts() bool {
	return o.Key == trust.TimestampKey || o.IsRoot()
}

// IsRoot reports whether the object is a root.
func (o Object) IsRoot() bool { return strings.HasSuffix(o.Key, "."+trust.MetaName(tuf.RoleRoot)) }

// Write writes objects in their order, pages first.
func (p *Publisher) Write(ctx context.Context, objects []Object) error {
	for _, o := range objects {
		if err := trust.CheckSize(o.role(), len(o.Data)); err != nil {
			return err
		}
	}
	if err := p.writePages(ctx, objects); err != nil {
		return err
	}
	for _, o := range objects {
		if o.Page {
			continue
		}
		_, err := p.Store.Put(ctx, o.Key, bytes.NewReader(o.Data), int64(len(o.Data)), o.cond)
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrPrecondition) {
			return lostAnswer(o, err)
		}
		// The version of a draft is signed, so an interrupted attempt wrote it under the same name.
		there, readErr := trust.ReadMetadata(ctx, p.Store, o.Key)
		if !o.cond.IfAbsent || readErr != nil || !bytes.Equal(there, o.Data) {
			return err
		}
	}
	return nil
}

// role returns the object's role for messages.
func (o Object) role() string {
	if o.Key == trust.TimestampKey {
		return tuf.RoleTimestamp
	}
	return o.Key
}

// PageWriters is the number of pages that are read or written concurrently.
const PageWriters = 8

// writePages writes the pages among objects. No file that names them is written yet.
func (p *Publisher) writePages(ctx context.Context, objects []Object) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(PageWriters)
	for _, o := range objects {
		if o.Page {
			group.Go(func() error {
				_, err := p.Store.Put(within, o.Key, bytes.NewReader(o.Data), int64(len(o.Data)), o.cond)
				return err
			})
		}
	}
	return group.Wait()
}

// keepPages writes pages again that garbage collection removed while nothing named them. The name of a page is its
// digest, so an earlier attempt may have left it.
func (p *Publisher) keepPages(ctx context.Context, objects []Object) error {
	var keys []string
	for _, o := range objects {
		if o.Page {
			keys = append(keys, o.Key)
		}
	}
	missing, err := blobs.Missing(ctx, p.Store, keys)
	if err != nil {
		return err
	}
	return p.writePages(ctx, slices.DeleteFunc(slices.Clone(objects), func(o Object) bool {
		return !slices.Contains(missing, o.Key)
	}))
}

// Unanswered returns err if the store could not be read, and nil if err is about the store's content.
func Unanswered(err error) error {
	if err == nil || trust.OfOne(err) {
		return nil
	}
	return err
}

// lostAnswer adds to an error that the change may have been made, if the answer to the write that commits it was lost.
func lostAnswer(o Object, err error) error {
	lost := errors.Is(err, store.ErrUnreachable) || errors.Is(err, context.Canceled)
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) // the store is full: nothing was written
	if o.Key != trust.TimestampKey || !lost || full || errors.Is(err, store.ErrCredentials) ||
		errors.Is(err, store.ErrNoStore) {
		return err
	}
	return diag.Store.Hint(fmt.Errorf("the answer to the last step was lost, so the change may have been made: %w", err),
		"it may have been published: run the command again, which changes nothing where it was")
}
