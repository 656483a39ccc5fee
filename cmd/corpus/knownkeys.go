package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// keysCount is how long keys of hosts are relied on without another look. A key that is not known, or that did not
// sign, is looked up at once; one that a person has forgotten elsewhere counts so much longer.
const keysCount = 10 * time.Minute

// knownKeys are the keys of hosts that this person's earlier looks have seen, so that a look at the fleet lists them
// not each time.
type knownKeys struct {
	file string // "" where this person has no cache
	At   time.Time
	Keys hostkey.Registry
}

// recallKeys reads the keys from the cache.
func (p *program) recallKeys() *knownKeys {
	k := &knownKeys{}
	dir := p.cacheDir()
	if dir == "" {
		return k
	}
	k.file = filepath.Join(dir, "hosts", fmt.Sprintf("%x.json", sha256.Sum256([]byte(p.store))))
	data, err := walk.ReadFile(k.file)
	if err != nil || json.Unmarshal(data, k) != nil {
		return &knownKeys{file: k.file}
	}
	return k
}

// registry is what is known; nil where that is too old.
func (k *knownKeys) registry(now time.Time) hostkey.Registry {
	if age := now.Sub(k.At); age < 0 || age > keysCount {
		return nil
	}
	return k.Keys
}

// keep remembers keys that were read now.
func (k *knownKeys) keep(p *program, keys hostkey.Registry, now time.Time) {
	k.At, k.Keys = now, keys
	if k.file == "" {
		return
	}
	data, err := json.Marshal(k)
	if err == nil {
		err = durable.MkdirAll(filepath.Dir(k.file), 0o700)
	}
	if err == nil {
		err = durable.WriteFile(k.file, data, 0o600)
	}
	if err != nil {
		p.explain("the keys of hosts were not kept in %s: %v", k.file, err)
	}
}

// forget lets the next look read the keys again.
func (k *knownKeys) forget() {
	if k.file != "" {
		_ = os.Remove(k.file) // without it the next look does so as well, later
	}
}

func (o fleetOptions) query(s store.Store, list []trust.Listing, known hostkey.Registry) fleet.Query {
	q := fleet.Query{
		Store: s, Listings: list, Now: time.Now(), SilentAfter: silentAfter, Known: known,
		Project: o.project, Channel: o.channel, BehindOnly: o.behind, Silent: o.silent > 0,
	}
	if o.silent > 0 {
		q.SilentAfter = o.silent
	}
	return q
}
