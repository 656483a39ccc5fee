package releases_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// lossy is a store that loses the response to a write of the timestamp.
type lossy struct{ store.Store }

func (d lossy) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info, error) {
	info, err := d.Store.Put(ctx, key, r, size, cond)
	if key == trust.TimestampKey && err == nil {
		return store.Info{}, &store.Error{Op: store.OpPut, Object: key, Kind: store.ErrUnreachable,
			Cause: errors.New("connection reset")}
	}
	return info, err
}

func TestLostAnswerErrorMentionsPossiblePublish(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	p := &publish.Publisher{Store: lossy{repo.Publisher.Store}, Keys: repo.Publisher.Keys, Seen: repo.Publisher.Seen}
	_, err := releases.Promote(t.Context(), p, "myapp", "testing", "production")
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(diag.HintOf(err), "may have been published") ||
		!strings.Contains(diag.HintOf(err), "again") {
		t.Errorf("%v, hint: %s", err, diag.HintOf(err))
	}
	p.Store = repo.Publisher.Store
	if r, err := releases.Promote(t.Context(), p, "myapp", "testing", "production"); err != nil || r.Version != "1" {
		t.Errorf("again: %v, %v", r, err)
	}
}

// late is a store during whose write of the timestamp a person interrupts the command.
type late struct {
	store.Store
	interrupt func()
}

func (l late) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info, error) {
	info, err := l.Store.Put(ctx, key, r, size, cond)
	if key == trust.TimestampKey && err == nil {
		l.interrupt()
	}
	return info, err
}

func (l late) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, store.Info{}, err
	}
	return l.Store.Get(ctx, key, from)
}

func TestInterruptAfterTheChangeComesTooLate(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	file := filepath.Join(t.TempDir(), "app.tar.zst")
	if err := os.WriteFile(file, artifacttest.Archive(t, artifacttest.Files{"app": "2"}), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	p := &publish.Publisher{Store: late{repo.Publisher.Store, interrupt}, Keys: repo.Publisher.Keys,
		Seen: repo.Publisher.Seen}
	if _, err := releases.Publish(ctx, p, releases.Request{Project: "myapp", Version: "2", File: file}); err != nil {
		t.Errorf("a version that was published: %v", err)
	}
}

// diskFilling is a store after whose change the publisher's disk is full.
type diskFilling struct {
	store.Store
	full func() error
}

func (f diskFilling) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	info, err := f.Store.Put(ctx, key, r, size, cond)
	if key == trust.TimestampKey && err == nil {
		err = f.full()
	}
	return info, err
}

// TestUnkeptCopyErrorSaysThatTheChangeWasMade checks the error of a command that has changed the store and cannot keep
// a copy of the change: it does not ask the user to run the command again.
func TestUnkeptCopyErrorSaysThatTheChangeWasMade(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	mine := artifacttest.Beside(t, repo.Publisher)
	kept := filepath.Join(mine.Seen, "snapshot.json")
	changes := 0
	mine.Store = diskFilling{repo.Publisher.Store, func() error {
		changes++
		_ = os.Remove(kept) // the file may not exist yet
		return os.MkdirAll(filepath.Join(kept, "in the way"), 0o700)
	}}
	_, err := releases.Promote(t.Context(), mine, "myapp", "testing", "production")
	if err == nil || !strings.Contains(err.Error(), "the change was made in the store") ||
		!strings.Contains(diag.HintOf(err), "do not run the command again") {
		t.Errorf("%v, hint: %s", err, diag.HintOf(err))
	}
	l, err := artifacttest.Client(t, repo.Publisher).ListOne(t.Context(), "myapp")
	if err != nil || l.Channels["production"].Version != "1" || changes != 1 {
		t.Errorf("production is %q after %d changes, %v", l.Channels["production"].Version, changes, err)
	}
}

// TestObjectUnderTheArtifactsNameIsCompared checks that an object with the artifact's name and other content is
// replaced.
func TestObjectUnderTheArtifactsNameIsCompared(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	release := repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	key := trust.ObjectKey(release)
	good := repo.Object(key)
	for name, bad := range map[string][]byte{"shorter": []byte("x"), "as long": bytes.Repeat([]byte("x"), len(good))} {
		repo.Replace(key, bad)
		repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
		if !bytes.Equal(repo.Object(key), good) {
			t.Errorf("%s: the object is still not the artifact", name)
		}
	}
}
