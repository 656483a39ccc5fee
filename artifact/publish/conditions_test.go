package publish_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// careless is a store that ignores the conditions of writes.
type careless struct{ store.Store }

func (c careless) Put(ctx context.Context, key string, r io.Reader, size int64, _ store.Condition) (store.Info, error) {
	return c.Store.Put(ctx, key, r, size, store.Condition{})
}

func TestInitFindsOutWhetherConditionsAreHonoured(t *testing.T) {
	t.Parallel()
	for _, honoured := range []bool{true, false} {
		var s store.Store = mem.New()
		if !honoured {
			s = careless{s}
		}
		p := publish.Publisher{Store: s, Keys: publish.Keyring{Dir: t.TempDir()}, Seen: t.TempDir()}
		for _, role := range []string{"root", "targets", "snapshot", "timestamp"} {
			if _, err := p.Keys.New(role, 1); err != nil {
				t.Fatal(err)
			}
		}
		result, err := roots.Init(t.Context(), &p, 0)
		if err != nil || result.Conditional != honoured {
			t.Errorf("a store that honours conditions (%v): init reports %v, %v", honoured, result.Conditional, err)
		}
		for info, err := range s.List(t.Context(), "metadata/probe") {
			t.Errorf("init left %s in the store (%v)", info.Key, err)
		}
	}
}

func TestSignatureLifetimesMatchDocumentation(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	role, err := client.Project(t.Context(), "myapp")
	if err != nil {
		t.Fatal(err)
	}
	set := client.Trusted()
	for name, c := range map[string]struct {
		until time.Time
		days  int
	}{
		"timestamp": {set.Timestamp.Signed.Expires, 14}, "snapshot": {set.Snapshot.Signed.Expires, 90},
		"targets": {set.Targets["targets"].Signed.Expires, 90}, "myapp": {role.Signed.Expires, 90},
		"root": {set.Root.Signed.Expires, 365},
	} {
		want := time.Now().Add(time.Duration(c.days) * 24 * time.Hour)
		if off := want.Sub(c.until).Abs(); off > time.Hour {
			t.Errorf("%s is good until %s, want %d days", name, c.until, c.days)
		}
	}
}

func TestUncommittedVersionsAreSkipped(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	// Publishers were killed before they committed.
	for version := int64(2); version < 6; version++ {
		repo.Replace(trust.RoleKey("myapp", version), []byte("left"))
		repo.Replace(trust.RoleKey("snapshot", version+2), []byte("left"))
	}
	repo.Release("myapp", "2", "testing", artifacttest.Files{"app": "2"})
	if r, err := repo.Host().Resolve("myapp/testing"); err != nil || r.Version != "2" {
		t.Errorf("a host resolves %v, %v", r, err)
	}
}

func TestKeysAreUnchangedAfterNewRun(t *testing.T) {
	t.Parallel()
	ring := publish.Keyring{Dir: t.TempDir()}
	if _, err := ring.New("root", 2); err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for _, name := range []string{"root.key", "root-2.key", "root.pub"} {
		data, err := os.ReadFile(ring.Dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		before[name] = string(data)
	}
	made, err := ring.New("root", 3)
	if err != nil || len(made) != 1 || !strings.HasSuffix(made[0], "root-3.key") {
		t.Errorf("made %v, %v; want only the third key", made, err)
	}
	for name, want := range before {
		if data, err := os.ReadFile(ring.Dir + "/" + name); err != nil || string(data) != want {
			t.Errorf("%s changed (%v)", name, err)
		}
		if info, err := os.Stat(ring.Dir + "/" + name); err != nil ||
			strings.HasSuffix(name, ".key") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s is readable by others: %v", name, fmt.Sprint(info.Mode(), err))
		}
	}
}
