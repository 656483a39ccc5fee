package hostrecord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Detail is what a record says beyond its name.
type Detail struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// longestText is how many bytes of a text a record has. The report has all of it.
const longestText = 2 << 10

// Writer keeps the record of this host in a store.
type Writer struct {
	Store store.Store
	URL   string // of the store, without credentials
	Key   hostkey.Key
	File  string // on this host, about the records that the store may have of it
}

// written are the records that a store may have of this host.
type written struct {
	Store   string   `json:"store"`
	Records []string `json:"records"` // their keys, the newest last
}

// mostLeft is how many records are remembered that could not be deleted.
const mostLeft = 50

// Write puts a record into the store and deletes the earlier ones of this host. Which ones there may be is kept on the
// host before anything is written, so that a power cut leaves none behind for good.
func (w Writer) Write(ctx context.Context, r Record, d Detail) error {
	key, err := r.Key(w.Key)
	if err != nil {
		return err
	}
	data, err := w.object(key, r, d)
	if err != nil {
		return err
	}
	earlier := slices.DeleteFunc(w.earlier(), func(other string) bool { return other == key })
	earlier = earlier[max(0, len(earlier)-mostLeft):]
	if err := w.keep(append(slices.Clone(earlier), key)); err != nil {
		return err
	}
	if _, err := w.Store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
		return fmt.Errorf("writing the host's record: %w", hintRights(err, r))
	}
	for i, other := range earlier {
		if err := w.Store.Delete(ctx, other); err != nil {
			err = fmt.Errorf("deleting the host's earlier record: %w", hintRights(err, r))
			return errors.Join(err, w.keep(append(slices.Clone(earlier[i:]), key)))
		}
	}
	if len(earlier) == 0 {
		return nil
	}
	return w.keep([]string{key})
}

func hintRights(err error, r Record) error {
	if !errors.Is(err, store.ErrForbidden) {
		return err
	}
	return diag.WithHint(err, "let this host write and delete below %s%s/ in the store (docs/buckets.md)",
		PrefixOf(r.Project), r.Host)
}

// object is the content of the record's object, signed for its key.
func (w Writer) object(key string, r Record, d Detail) ([]byte, error) {
	d.Error, d.Hint = shortened(d.Error), shortened(d.Hint)
	data, err := json.Marshal(struct {
		Record
		Detail
	}{r, d})
	if err != nil {
		return nil, err
	}
	return w.Key.Seal(key, data)
}

func shortened(text string) string {
	if len(text) <= longestText {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:longestText]), nil)) + " ..."
}

// earlier are the records that the store may have of this host. A file that cannot be read names none: what is left
// behind then is older than what follows, and counts no more.
func (w Writer) earlier() []string {
	data, err := walk.ReadFile(w.File)
	var before written
	if err != nil || json.Unmarshal(data, &before) != nil || before.Store != w.URL {
		return nil
	}
	return slices.DeleteFunc(before.Records, func(key string) bool { return store.CheckKey(key) != nil })
}

func (w Writer) keep(keys []string) error {
	data, err := json.Marshal(written{w.URL, keys})
	if err != nil {
		return err
	}
	return durable.WriteFile(w.File, append(data, '\n'), 0o600)
}
