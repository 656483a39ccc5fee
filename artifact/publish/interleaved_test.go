package publish_test

import (
	"context"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// interrupted is a store that calls a function before the request with the given number, counted from 1.
type interrupted struct {
	store.Store
	at, count int
	meanwhile func()
}

func (s *interrupted) step() {
	if s.count++; s.count == s.at {
		s.meanwhile()
	}
}

func (s *interrupted) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	s.step()
	return s.Store.Get(ctx, key, from)
}

func (s *interrupted) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	s.step()
	return s.Store.Put(ctx, key, r, size, cond)
}

// command is an operation of one of two publishers with the same directory of keys.
type command func(context.Context, *publish.Publisher) error

func promoteTo(channel string) command {
	return func(ctx context.Context, p *publish.Publisher) error {
		_, err := releases.Promote(ctx, p, "myapp", "testing", channel)
		return err
	}
}

func rotate(role string) command {
	return func(ctx context.Context, p *publish.Publisher) error {
		_, err := roots.Rotate(ctx, p, role, p.Waiting[0])
		return err
	}
}

func rebuild(ctx context.Context, p *publish.Publisher) error {
	_, err := recovery.Rebuild(ctx, p)
	return err
}

func refreshAll(ctx context.Context, p *publish.Publisher) error {
	_, err := refresh.Roles(ctx, p, 100*24*time.Hour)
	return err
}

func renewRoot(ctx context.Context, p *publish.Publisher) error {
	_, err := roots.Apply(ctx, p, roots.Change{Renew: true})
	return err
}

// atOnce is the number of requests of a command that TestConcurrentCommandsWithSharedKeys tries concurrently.
const atOnce = 4

// TestConcurrentCommandsWithSharedKeys runs a whole command at each request of another command with the same directory
// of keys. Both must succeed: the one that lost the race reads the store and the keys again.
func TestConcurrentCommandsWithSharedKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		one, beside command
	}{
		{"promote beside a rotation of timestamp", promoteTo("production"), rotate("timestamp")},
		{"promote beside a rotation of snapshot", promoteTo("production"), rotate("snapshot")},
		{"promote beside a rotation of targets", promoteTo("production"), rotate("targets")},
		{"promote beside a rotation of myapp", promoteTo("production"), rotate("myapp")},
		{"refresh beside a rotation of timestamp", refreshAll, rotate("timestamp")},
		{"refresh beside a rotation of targets", refreshAll, rotate("targets")},
		{"rebuild beside a rotation of timestamp", rebuild, rotate("timestamp")},
		{"rebuild beside a rotation of targets", rebuild, rotate("targets")},
		{"rebuild beside a rotation of myapp", rebuild, rotate("myapp")},
		{"rebuild beside promote", rebuild, promoteTo("production")},
		{"root change beside a rotation of timestamp", renewRoot, rotate("timestamp")},
		{"root change beside a rotation of root", renewRoot, rotate("root")},
		{"rotation beside a rotation of the same role", rotate("timestamp"), rotate("timestamp")},
		{"rotation beside a rotation of another role", rotate("myapp"), rotate("snapshot")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			for worker := range atOnce { // each worker mostly waits for locks and for the disk
				all.Go(func() {
					for at := 1 + worker; interleaved(t, at, c.one, c.beside); at += atOnce {
					}
				})
			}
			all.Wait()
		})
	}
}

// interleaved starts a command before the request with this number of another command, and reports whether the
// other command made such a request.
func interleaved(t *testing.T, at int, one, beside command) bool {
	t.Helper()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	next := repo.Keys
	next.Dir = filepath.Join(repo.Keys.Dir, "next")
	first := &publish.Publisher{Store: repo.Publisher.Store, Keys: repo.Keys, Seen: repo.Publisher.Seen,
		Waiting: []publish.Keyring{next}}
	second := *first
	ended := make(chan struct{})
	s := &interrupted{Store: first.Store, at: at, meanwhile: func() {
		go func() {
			defer close(ended)
			if err := beside(t.Context(), &second); err != nil {
				t.Errorf("the command that began before request %d: %v", at, err)
			}
		}()
		select { // if the first command holds a lock, the second one waits for it
		case <-ended:
		case <-time.After(50 * time.Millisecond):
		}
	}}
	first.Store = s
	if err := one(t.Context(), first); err != nil {
		t.Errorf("with another command before request %d: %v", at, err)
	}
	if s.count >= at {
		<-ended
	}
	if _, err := repo.Host().Resolve("myapp/testing"); err != nil {
		t.Errorf("with another command before request %d, a host resolves %v", at, err)
	}
	return s.count >= at && !t.Failed()
}
