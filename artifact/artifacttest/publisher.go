package artifacttest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Publisher sets up a store and returns the publisher that has all its keys.
func Publisher(t *testing.T, s store.Store) *publish.Publisher {
	t.Helper()
	return On(t, s).Publisher
}

// Beside returns a publisher with the same keys that has read only the root of the store.
func Beside(t *testing.T, p *publish.Publisher) *publish.Publisher {
	t.Helper()
	other := *p
	other.Seen = t.TempDir()
	if err := trust.Pin(other.Seen, Of(t, p).Root()); err != nil {
		t.Fatal(err)
	}
	return &other
}

// Client returns a client that trusts the publisher's root and has read the store.
func Client(t *testing.T, p *publish.Publisher) *trust.Client {
	t.Helper()
	return must(Of(t, p).Host().Client())(t)
}

// App writes an artifact that has one file with the given content, and returns its path.
func App(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "app.tar.zst")
	if err := os.WriteFile(file, Archive(t, Files{"app": content}), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// Stored returns the keys of the artifacts, packs and notes in a store that end with suffix.
func Stored(t *testing.T, s store.Store, suffix string) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), "deploy/") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Key, suffix) {
			keys = append(keys, info.Key)
		}
	}
	return keys
}

// Failing is a store that fails every write after Left writes.
type Failing struct {
	store.Store
	Left int
}

// Put writes the object, or fails as if the store could not be reached.
func (f *Failing) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	f.Left--
	if f.Left < 0 {
		return store.Info{}, &store.Error{Op: store.OpPut, Object: key, Kind: store.ErrUnreachable}
	}
	return f.Store.Put(ctx, key, r, size, cond)
}

// WriteFile writes a file that only its owner can read.
func WriteFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Changed lists the objects that differ between two states of a store.
func Changed(before, after map[string][]byte) (keys []string) {
	for key, data := range after {
		if old, ok := before[key]; !ok || string(old) != string(data) {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
