// Package artifacttest provides an in-memory store for tests, which publishes valid releases and, on request, those
// of an attacker.
package artifacttest

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Repo is a store with all its keys.
type Repo struct {
	*publish.Publisher
	t *testing.T
}

// New sets up a store in memory.
func New(t *testing.T) *Repo { return On(t, mem.New()) }

// On sets up a store.
func On(t *testing.T, s store.Store) *Repo {
	t.Helper()
	dir := t.TempDir()
	p := &publish.Publisher{Store: s, Keys: publish.Keyring{Dir: filepath.Join(dir, "keys")},
		Seen: filepath.Join(dir, "seen")}
	for _, role := range tuf.TopRoles() {
		must(p.Keys.New(role, 1))(t)
	}
	must(roots.Init(context.Background(), p, 0))(t)
	return &Repo{Publisher: p, t: t}
}

// Of returns the store of a publisher, with the publisher's keys.
func Of(t *testing.T, p *publish.Publisher) *Repo { return &Repo{Publisher: p, t: t} }

// must ends a test on an error; it is written must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Root returns the first root, for hosts to trust.
func (r *Repo) Root() []byte {
	r.t.Helper()
	return must(os.ReadFile(filepath.Join(r.Keys.Dir, roots.RootName)))(r.t)
}

// Files is a tree: names that end in a slash are directories, and a value of "-> x" is a link to x.
type Files map[string]string

// Release publishes a tree as a version and points a channel at it.
func (r *Repo) Release(project, version, channel string, files Files) artifact.Release {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "release.tar.zst")
	if err := os.WriteFile(file, Archive(r.t, files), 0o644); err != nil {
		r.t.Fatal(err)
	}
	return must(releases.Publish(context.Background(), r.Publisher,
		releases.Request{Project: project, Version: version, File: file, Channel: channel}))(r.t)
}

// Archive packs a tree.
func Archive(t *testing.T, files Files) []byte {
	t.Helper()
	var headers []Entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		h := tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}
		switch target, link := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			h.Typeflag, h.Mode, h.Size = tar.TypeDir, 0o755, 0
			content = ""
		case link:
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
			content = ""
		case strings.HasPrefix(content, "#!"):
			h.Mode = 0o755
		}
		headers = append(headers, Entry{Header: h, Content: content})
	}
	return Pack(t, headers...)
}

// Entry is one entry of an archive, which is written unchanged.
type Entry struct {
	tar.Header
	Content string
}

// Pack packs entries in the given order, even if they are invalid.
func Pack(t *testing.T, entries ...Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := must(zstd.NewWriter(&b))(t)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg && e.Size == 0 {
			e.Size = int64(len(e.Content))
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Host is a host that trusts a store.
type Host struct {
	Dir   string // directory with the metadata that it has seen
	Store store.Store
	Now   func() time.Time
	t     *testing.T
}

// Host makes a host that trusts the store's root and has read nothing yet.
func (r *Repo) Host() *Host {
	r.t.Helper()
	h := &Host{Dir: filepath.Join(r.t.TempDir(), "trust"), Store: r.Store, t: r.t}
	if err := trust.Pin(h.Dir, r.Root()); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// Resolve reads the store again and returns the release that a channel names.
func (h *Host) Resolve(channel string) (artifact.Release, error) {
	h.t.Helper()
	c, err := h.Client()
	if err != nil {
		return artifact.Release{}, err
	}
	return c.Resolve(context.Background(), must(artifact.ParseRef(channel))(h.t))
}

// Client returns a client that has read the current metadata of the store.
func (h *Host) Client() (*trust.Client, error) {
	h.t.Helper()
	c := must(trust.Open(h.Store, h.Dir, h.Now))(h.t)
	return c, c.Refresh(context.Background())
}

// Object reads an object of the store.
func (r *Repo) Object(key string) []byte {
	r.t.Helper()
	body, _, err := r.Store.Get(context.Background(), key, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer body.Close()
	return must(io.ReadAll(body))(r.t)
}

// Replace replaces an object, as an attacker who controls the store can.
func (r *Repo) Replace(key string, data []byte) {
	r.t.Helper()
	must(r.Store.Put(context.Background(), key, bytes.NewReader(data), int64(len(data)), store.Condition{}))(r.t)
}

// Snapshot copies all objects, for Restore.
func (r *Repo) Snapshot() map[string][]byte {
	r.t.Helper()
	objects := map[string][]byte{}
	for info, err := range r.Store.List(context.Background(), "") {
		if err != nil {
			r.t.Fatal(err)
		}
		objects[info.Key] = r.Object(info.Key)
	}
	return objects
}

// Restore makes the store contain exactly the objects of a snapshot.
func (r *Repo) Restore(objects map[string][]byte) {
	r.t.Helper()
	for key := range r.Snapshot() {
		if _, kept := objects[key]; !kept {
			if err := r.Store.Delete(context.Background(), key); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for key, data := range objects {
		r.Replace(key, data)
	}
}
