package publish_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/packaging"
)

// publisher sets up a store in memory and who publishes to it.
func publisher(t *testing.T, s store.Store) *publish.Publisher {
	t.Helper()
	dir := t.TempDir()
	p := &publish.Publisher{Store: s, Keys: publish.Keyring{Dir: filepath.Join(dir, "keys")}, Seen: filepath.Join(dir, "seen")}
	for _, role := range []string{"root", "targets", "snapshot", "timestamp"} {
		if _, err := p.Keys.New(role, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Init(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// pack builds an artifact of one file with the given content.
func pack(t *testing.T, content string) string {
	t.Helper()
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "app"), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := packaging.Build(context.Background(), tree, &b, packaging.Options{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "app.tar.zst")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// host is a client that trusts the publisher's root.
func host(t *testing.T, p *publish.Publisher) *trust.Client {
	t.Helper()
	root, err := os.ReadFile(filepath.Join(p.Keys.Dir, publish.RootName))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := trust.Pin(dir, root); err != nil {
		t.Fatal(err)
	}
	c, err := trust.Open(p.Store, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHostResolvesWhatWasPublishedAndPromoted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := publisher(t, mem.New())
	first, err := p.Publish(ctx, publish.Request{Project: "myapp", Version: "1.0", File: pack(t, "one"), Channel: "testing"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(ctx, publish.Request{Project: "myapp", Version: "1.1", File: pack(t, "two"), Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
	got, err := host(t, p).Resolve(ctx, artifact.Ref{Project: "myapp", Channel: "testing"})
	if err != nil || got.Version != "1.1" {
		t.Fatalf("testing is %v, %v, want 1.1", got, err)
	}
	if _, err := host(t, p).Resolve(ctx, artifact.Ref{Project: "myapp", Channel: "production"}); !errors.Is(err, trust.ErrNoChannel) {
		t.Errorf("production before promotion: %v, want ErrNoChannel", err)
	}
	if _, err := p.Promote(ctx, "myapp", "testing", "production"); err != nil {
		t.Fatal(err)
	}
	got, err = host(t, p).Resolve(ctx, artifact.Ref{Project: "myapp", Channel: "production"})
	if err != nil || got.Version != "1.1" || got.Digest == first.Digest {
		t.Errorf("production is %v, %v, want the bytes of 1.1", got, err)
	}
}

func TestVersionsAreImmutable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := publisher(t, mem.New())
	file := pack(t, "one")
	request := publish.Request{Project: "myapp", Version: "1.0", File: file, Channel: "testing"}
	for range 2 { // the same bytes again are no change
		if _, err := p.Publish(ctx, request); err != nil {
			t.Fatal(err)
		}
	}
	request.File = pack(t, "other")
	var immutable *publish.Immutable
	if _, err := p.Publish(ctx, request); !errors.As(err, &immutable) {
		t.Fatalf("other bytes under a published version: %v, want *Immutable", err)
	}
}

func TestPublishersAtTheSameTimeLoseNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := publisher(t, mem.New())
	if _, err := p.Publish(ctx, publish.Request{Project: "myapp", Version: "0", File: pack(t, "0")}); err != nil {
		t.Fatal(err)
	}
	const many = 8
	var wait sync.WaitGroup
	for i := range many {
		file := pack(t, fmt.Sprint(i))
		mine := *p
		mine.Seen = t.TempDir()
		root, _ := os.ReadFile(filepath.Join(p.Keys.Dir, publish.RootName))
		if err := trust.Pin(mine.Seen, root); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			request := publish.Request{Project: "myapp", Version: fmt.Sprintf("1.%d", i), File: file, Channel: fmt.Sprintf("c%d", i)}
			if _, err := mine.Publish(ctx, request); err != nil {
				t.Errorf("publisher %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	list, err := host(t, p).List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(list[0].Channels); n != many {
		t.Errorf("%d channels, want %d", n, many)
	}
	if n := len(list[0].Releases); n != many+1 {
		t.Errorf("%d releases, want %d", n, many+1)
	}
}
