package releases_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// counted is a store that counts the objects that are written.
type counted struct {
	store.Store
	puts atomic.Int32
}

func (c *counted) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	c.puts.Add(1)
	return c.Store.Put(ctx, key, r, size, cond)
}

// TestPublishThatCannotBeSignedUploadsNothing removes a key, damages one, and publishes releases that are refused: no
// object is written, no key is made, and the version can be published afterwards.
func TestPublishThatCannotBeSignedUploadsNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spoil   func(t *testing.T, p *publish.Publisher, r *releases.Request)
		project string
		says    string
	}{
		"without the timestamp's key": {spoil: lose("timestamp.key"), says: "timestamp requires 1 of 1 keys"},
		"without the snapshot's key":  {spoil: lose("snapshot.key"), says: "snapshot requires 1 of 1 keys"},
		"without the project's key":   {spoil: lose("shop.key"), says: "shop requires 1 of 1 keys"},
		"with a damaged key": {spoil: func(t *testing.T, p *publish.Publisher, _ *releases.Request) {
			if err := os.WriteFile(filepath.Join(p.Keys.Dir, "snapshot.key"), []byte("no key\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, says: "snapshot.key"},
		"of a new project without the timestamp's key": {spoil: lose("timestamp.key"), project: "other",
			says: "timestamp requires"},
		"of a new project without the targets key": {spoil: lose("targets.key"), project: "other", says: "other"},
		"of a new project to a channel that was typed by mistake": {spoil: func(
			_ *testing.T, _ *publish.Publisher, r *releases.Request) {
			r.Channel = "prodution"
		}, project: "other", says: "nearly that of production"},
		"of a new project with a tree that is refused": {spoil: func(
			_ *testing.T, _ *publish.Publisher, r *releases.Request) {
			r.Check = func(context.Context, string) error { return errors.New("it holds a secret") }
		}, project: "other", says: "it holds a secret"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &counted{Store: mem.New()}
			p := artifacttest.Publisher(t, s)
			if _, err := releases.Publish(t.Context(), p, releases.Request{Project: "shop", Version: "1",
				File: artifacttest.App(t, "one")}); err != nil {
				t.Fatal(err)
			}
			keys := t.TempDir()
			if err := os.CopyFS(keys, os.DirFS(p.Keys.Dir)); err != nil {
				t.Fatal(err)
			}
			r := releases.Request{Project: "shop", Version: "2", File: artifacttest.App(t, "two"), Channel: "testing"}
			if c.project != "" {
				r.Project = c.project
			}
			good, before := r, s.puts.Load()
			c.spoil(t, p, &r)
			_, err := releases.Publish(t.Context(), p, r)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if n := s.puts.Load() - before; n > 0 {
				t.Errorf("%d objects were written", n)
			}
			if _, err := os.Stat(filepath.Join(p.Keys.Dir, "other.key")); err == nil {
				t.Error("a key was made for a project without releases")
			}
			p.Keys.Dir = keys
			if _, err := releases.Publish(t.Context(), p, good); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func lose(name string) func(*testing.T, *publish.Publisher, *releases.Request) {
	return func(t *testing.T, p *publish.Publisher, _ *releases.Request) {
		t.Helper()
		if err := os.Remove(filepath.Join(p.Keys.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestArtifactOfAnAbortedPublish leaves artifacts of a publish that was interrupted before it was signed: the same
// bytes can be published. A publisher that has read the store can publish other bytes, and another publisher gets a
// hint.
func TestArtifactOfAnAbortedPublish(t *testing.T) {
	t.Parallel()
	s := &refusing{Store: mem.New()}
	p := artifacttest.Publisher(t, s)
	if _, err := releases.Publish(t.Context(), p, releases.Request{Project: "shop", Version: "1",
		File: artifacttest.App(t, "one")}); err != nil {
		t.Fatal(err)
	}
	left := releases.Request{Project: "shop", Version: "2", File: artifacttest.App(t, "two")}
	s.dead = true
	if _, err := releases.Publish(t.Context(), p, left); err == nil {
		t.Fatal("a release was published to a store that accepts no metadata")
	}
	s.dead = false
	fresh := *p
	fresh.Seen = filepath.Join(t.TempDir(), "seen")
	if err := os.CopyFS(fresh.Seen, os.DirFS(p.Seen)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(fresh.Seen, "timestamp.json")),
		os.Remove(filepath.Join(fresh.Seen, "snapshot.json"))); err != nil {
		t.Fatal(err)
	}
	other := left
	other.File = artifacttest.App(t, "three")
	if _, err := releases.Publish(t.Context(), &fresh, other); err == nil ||
		!strings.Contains(diag.HintOf(err), "--force") {
		t.Errorf("other bytes, by a publisher that has not read the store: %v (hint %s)", err, diag.HintOf(err))
	}
	if _, err := releases.Publish(t.Context(), p, left); err != nil {
		t.Errorf("the same bytes: %v", err)
	}
	left.Version, other.Version = "3", "3"
	s.dead = true
	if _, err := releases.Publish(t.Context(), p, left); err == nil {
		t.Fatal("a release was published to a store that accepts no metadata")
	}
	s.dead = false
	if _, err := releases.Publish(t.Context(), p, other); err != nil {
		t.Errorf("other bytes, by a publisher that has read the store: %v", err)
	}
}

// refusing is a store that accepts no metadata while dead is set.
type refusing struct {
	store.Store
	dead bool
}

func (d *refusing) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	if d.dead && strings.HasPrefix(key, "metadata/") {
		return store.Info{}, errors.New("the store is gone")
	}
	return d.Store.Put(ctx, key, r, size, cond)
}
