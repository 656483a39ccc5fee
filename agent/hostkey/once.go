package hostkey

import (
	"context"
	"encoding/json"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// repeatAfter is how long a host relies on what it registered. It registers again later, since a person may have had
// its key forgotten; and since a store may refuse it, it does not ask at each run.
const repeatAfter = 24 * time.Hour

// attempt is the newest registration that a host tried.
type attempt struct {
	Store string    `json:"store"` // without credentials
	Host  string    `json:"host"`
	Key   Public    `json:"key"`
	At    time.Time `json:"at"`
}

// RegisterDaily is Register at most once a day for a store, a name and a key: a file keeps the newest attempt.
func (k Key) RegisterDaily(ctx context.Context, s store.Store, url, file string, r Registration) error {
	now := attempt{url, r.Host, k.Public(), r.At.UTC().Truncate(time.Second)}
	if now.within(file) {
		return nil
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	err = k.Register(ctx, s, r)
	if kept := durable.WriteFile(file, append(data, '\n'), 0o600); err == nil {
		err = kept
	}
	return err
}

// within reports whether a file holds the same attempt, made less than a day ago. A file that cannot be read is none:
// the host then registers once more.
func (a attempt) within(file string) bool {
	data, err := walk.ReadFile(file)
	var last attempt
	if err != nil || json.Unmarshal(data, &last) != nil {
		return false
	}
	age := a.At.Sub(last.At)
	return last.Store == a.Store && last.Host == a.Host && last.Key == a.Key && age >= 0 && age < repeatAfter
}
