package hostkey

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// repeatAfter is the time after which a host registers its key again, since a person may have removed it (corpus host
// forget). A host does not register at each run, since a store may refuse it.
const repeatAfter = 24 * time.Hour

// attempt is the last registration that a host tried.
type attempt struct {
	Store string    `json:"store"` // without credentials
	Host  string    `json:"host"`
	Key   Public    `json:"key"`
	At    time.Time `json:"at"`
	// First is the key that was registered first for the name of the host, by this host or by another machine, if the
	// host now has another one. Signatures of the host are ignored until a person removes the first key.
	First Public `json:"first,omitempty"`
}

// Attempts is the file with the last registration that this host tried, which is read once.
type Attempts struct {
	file   string
	last   attempt
	absent bool
}

// ReadAttempts reads the file. From one that cannot be read it makes Attempts without a registration, so that the host
// registers again.
func ReadAttempts(file string) *Attempts {
	data, err := walk.ReadFile(file)
	a := &Attempts{file: file, absent: errors.Is(err, fs.ErrNotExist)}
	if err != nil || json.Unmarshal(data, &a.last) != nil {
		a.last = attempt{}
	}
	return a
}

// Absent reports whether there was no file, as after a person has removed it so that the host registers.
func (a *Attempts) Absent() bool { return a.absent }

// First returns the key that is registered first for the name of the host, if the host has another one; "" if not, or
// if that is not known.
func (a *Attempts) First(key Key) Public { return a.last.before(key.Public()) }

func (a *Attempts) keep(now attempt) error {
	data, err := json.Marshal(now)
	if err == nil {
		err = durable.WriteFile(a.file, append(data, '\n'), 0o600)
	}
	if err == nil {
		a.last, a.absent = now, false
	}
	return err
}

// RegisterDaily calls Register at most once a day for the same store, name and key. It keeps the last attempt in the
// file. While another key is registered first for the name, each call checks whether a person has removed that key. A
// host that cannot write the file registers only a key that it has not registered before.
func (k Key) RegisterDaily(ctx context.Context, s store.Store, url string, kept *Attempts, r Registration) error {
	now := attempt{Store: url, Host: r.Host, Key: k.Public(), At: r.At.UTC().Truncate(time.Second)}
	last := kept.last
	if last.Store == now.Store && last.Host == now.Host {
		now.First = last.before(now.Key)
	}
	if now.within(last) && (now.First == "" || !forgotten(ctx, s, Place(r.Host, now.First))) {
		return nil
	}
	unkept := kept.keep(now)
	if unkept != nil && last.sameAs(now) {
		return unkept
	}
	if now.First != "" && forgotten(ctx, s, Place(r.Host, now.First)) {
		now.First = ""
	}
	err := k.Register(ctx, s, r)
	if first := firstOf(ctx, s, r.Host); err == nil && first != "" && first != now.Key {
		now.First = first
	}
	if unkept == nil {
		unkept = kept.keep(now)
	}
	return cmp.Or(err, unkept)
}

// firstOf returns the key that was registered first for a name; "" if this host may not list the keys of its name.
func firstOf(ctx context.Context, s store.Store, host string) Public {
	keys, err := Of(ctx, s, host)
	if err != nil || len(keys) < 2 {
		return ""
	}
	return keys[0].Key
}

// before returns the key that was registered first if it is not the given key; "" if it is.
func (a attempt) before(key Public) Public {
	if first := cmp.Or(a.First, a.Key); first != key {
		return first
	}
	return ""
}

// forgotten reports whether a store no longer has an object. A store that may not be listed refuses to show an object
// that does not exist.
func forgotten(ctx context.Context, s store.Store, object string) bool {
	body, _, err := s.Get(ctx, object, 0)
	if err == nil {
		_ = body.Close()
	}
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden)
}

// Replaced returns the key that this host registered first, if its present key is another one, and the name for which
// it did. It reads the file of the key and that of the last registration, and returns "" if either cannot be read.
func Replaced(keyFile, registered string) (first Public, host string) {
	key, err := Read(keyFile)
	if err != nil {
		return "", ""
	}
	last := ReadAttempts(registered)
	return last.First(key), last.last.Host
}

// within reports whether the last attempt was the same, and made less than a day ago.
func (a attempt) within(last attempt) bool {
	age := a.At.Sub(last.At)
	return last.sameAs(a) && age >= 0 && age < repeatAfter
}

// sameAs reports whether two attempts were to register the same key for the same name in the same store.
func (a attempt) sameAs(other attempt) bool {
	return a.Store == other.Store && a.Host == other.Host && a.Key == other.Key
}
