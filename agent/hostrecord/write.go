package hostrecord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Detail is the content of a record in addition to the fields in its name.
type Detail struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
}

// longestText bounds the bytes of a text in a record. The report has the whole text.
const longestText = 2 << 10

// Writer keeps the record of this host in a store.
type Writer struct {
	Store store.Store
	URL   string // of the store, without credentials
	Key   hostkey.Key
	File  string    // on this host, about the records that the store may have of it
	Now   time.Time // by the host's clock

	// Again is true if the next run must write its record in any case, since the report of this one is not in the
	// store.
	Again bool
}

// written holds the records that a store may have of this host.
type written struct {
	Store   string   `json:"store"`
	Records []string `json:"records"`          // their keys, the newest last
	Object  []byte   `json:"object,omitempty"` // the content of the newest one
	// when the store last received it, by the host's clock; zero if unknown
	At time.Time `json:"at,omitzero"`
}

// mostLeft bounds how many records that could not be deleted are remembered.
const mostLeft = 50

// Write writes a record into the store and deletes the earlier ones of this host. It first saves on the host which ones
// there may be, so that a power failure leaves none behind permanently. If that fails, it writes nothing to the store
// and returns ErrUnkept.
func (w Writer) Write(ctx context.Context, r Record, d Detail) error {
	key, err := r.Key(w.Key)
	if err != nil {
		return err
	}
	data, err := w.object(key, r, d)
	if err != nil {
		return err
	}
	earlier := slices.DeleteFunc(w.before().Records, func(other string) bool { return other == key })
	earlier = earlier[max(0, len(earlier)-mostLeft):]
	now := written{Store: w.URL, Records: append(earlier, key), Object: data}
	if err := w.keep(now); err != nil {
		return fmt.Errorf("%w: %w", ErrUnkept, err)
	}
	return w.put(ctx, now, r)
}

// Beat writes the newest record again, unchanged, so that readers see that the host still runs. It makes one request.
func (w Writer) Beat(ctx context.Context, r Record) error { return w.put(ctx, w.before(), r) }

// Due reports whether the record of a run has to be written or repeated, because the store received the last one at
// least that long ago.
func (w Writer) Due(every time.Duration) bool {
	age := w.Now.Sub(w.before().At)
	return w.isOverruled() || age < 0 || age >= every-every/10 // runs do not start at exact times
}

// Has reports whether the newest record of this host equals a record of a later run, except for the run.
func (w Writer) Has(r Record) bool {
	last := w.before()
	if len(last.Records) == 0 || len(last.Object) == 0 {
		return false
	}
	before, text, signature, err := parse(last.Records[len(last.Records)-1])
	if err != nil || !w.Key.Public().SignedName(text, signature) {
		return false
	}
	before.Run, before.Sequence = r.Run, r.Sequence
	return before.Project == r.Project && before.Host == r.Host && before.text() == r.text()
}

// Kept returns the Detail of the newest record if r is the record of a later run and says that the host still does not
// deploy a release that failed then; otherwise the zero Detail. The other release of the pair may be deployed by now.
func (w Writer) Kept(r Record) Detail {
	var last struct {
		Record
		Detail
	}
	if !r.Quarantined || json.Unmarshal(w.before().Object, &last) != nil ||
		!last.Wanted.same(r.Wanted) && !last.WantedBase.same(r.WantedBase) {
		return Detail{}
	}
	return last.Detail
}

// put writes the newest record and deletes the ones before it.
func (w Writer) put(ctx context.Context, now written, r Record) error {
	last := len(now.Records) - 1
	if _, err := w.Store.Put(ctx, now.Records[last], bytes.NewReader(now.Object), int64(len(now.Object)),
		store.Condition{}); err != nil {
		return fmt.Errorf("writing the host's record: %w", hintRights(err, r))
	}
	now.At = w.Now.UTC()
	if w.Again {
		now.Object = nil
	}
	left, err := w.deleteEarlier(ctx, now.Records[:last], r)
	now.Records = slices.Concat(left, now.Records[last:])
	return errors.Join(err, w.keep(now))
}

// deleteEarlier deletes earlier records of the host, and returns those that the next run has to delete. A record under
// an earlier name of the host that the host may not delete is left to people.
func (w Writer) deleteEarlier(ctx context.Context, records []string, r Record) (left []string, errs error) {
	own := PrefixOf(r.Project) + r.Host + "/"
	for i, other := range records {
		err := w.Store.Delete(ctx, other)
		switch {
		case err == nil:
		case errors.Is(err, store.ErrForbidden) && !strings.HasPrefix(other, own):
			errs = errors.Join(errs, diag.Host.Hint(fmt.Errorf("deleting the host's record under its earlier name: %w", err),
				"remove it with: corpus host forget %s", path.Base(path.Dir(other))))
		default:
			err = fmt.Errorf("deleting the host's earlier record: %w", hintRights(err, r))
			return append(left, records[i:]...), errors.Join(errs, err)
		}
	}
	return left, errs
}

func hintRights(err error, r Record) error {
	if !errors.Is(err, store.ErrForbidden) {
		return err
	}
	return diag.Credentials.Hint(err, "let this host write and delete below %s%s/ in the store (docs/buckets.md)",
		PrefixOf(r.Project), r.Host)
}

// object returns the content of the record's object, signed for its key.
func (w Writer) object(key string, r Record, d Detail) ([]byte, error) {
	d.Error, d.Hint = Shortened(d.Error, longestText), Shortened(d.Hint, longestText)
	data, err := json.Marshal(struct {
		Record
		Detail
	}{r, d})
	if err != nil {
		return nil, err
	}
	return w.Key.Seal(key, data)
}

// Shortened returns a text of at most so many bytes. It leaves out the middle of a longer one: the end of an error is
// its cause, which its hint is about.
func Shortened(text string, most int) string {
	const gap = " ... "
	if len(text) <= most {
		return text
	}
	end := (most - len(gap)) / 3
	begin := most - len(gap) - end
	return strings.ToValidUTF8(text[:begin], "") + gap + strings.ToValidUTF8(text[len(text)-end:], "")
}

// before returns the records that the store may have of this host. If the file cannot be read, it returns none: the
// records that then remain in the store are older than the next one, and are not used.
func (w Writer) before() written {
	before, err := readWritten(w.File)
	if err != nil || before.Store != w.URL {
		return written{}
	}
	return before
}

// readWritten reads the file about the records that a store may have of this host.
func readWritten(file string) (before written, err error) {
	data, err := walk.ReadFile(file)
	if err != nil {
		return written{}, err
	}
	if err := json.Unmarshal(data, &before); err != nil {
		return written{}, err
	}
	for _, key := range before.Records {
		if err := store.CheckKey(key); err != nil {
			return written{}, err
		}
	}
	return before, nil
}

func (w Writer) keep(now written) error {
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return durable.WriteFile(w.File, append(data, '\n'), 0o600)
}
