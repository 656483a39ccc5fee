package roots_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// afterWrite is a store that calls a function after every write.
type afterWrite struct {
	store.Store
	after func()
}

func (m *afterWrite) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info,
	error) {
	info, err := m.Store.Put(ctx, key, r, size, cond)
	if err == nil && m.after != nil {
		m.after()
	}
	return info, err
}

func TestHostsFollowARotationAtEveryMoment(t *testing.T) {
	t.Parallel()
	s := &afterWrite{Store: mem.New()}
	repo := artifacttest.On(t, s)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	for _, role := range []string{"timestamp", "snapshot", "targets", "root", "myapp"} {
		old := repo.Host() // has read the store before
		if _, err := old.Resolve("myapp/testing"); err != nil {
			t.Fatal(err)
		}
		count := 0
		s.after = func() {
			count++
			for name, host := range map[string]*artifacttest.Host{"one that knew the store": old, "a new one": repo.Host()} {
				host.Store = s.Store
				if _, err := host.Resolve("myapp/testing"); err != nil {
					t.Errorf("rotating %s, after write %d: %s resolves %v", role, count, name, err)
				}
			}
		}
		_, err := roots.Rotate(t.Context(), repo.Publisher, role, repo.Aside())
		s.after = nil
		if err != nil {
			t.Fatalf("rotating %s: %v", role, err)
		}
		if count == 0 {
			t.Errorf("rotating %s wrote nothing", role)
		}
	}
	repo.Release("myapp", "2", "testing", artifacttest.Files{"app": "2"})
}

// TestInterruptedRotationResumes interrupts a rotation at every write.
func TestInterruptedRotationResumes(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"timestamp", "root", "myapp"} {
		for cut := 1; ; cut++ {
			s := &artifacttest.Failing{Store: mem.New(), Left: 1 << 30}
			repo := artifacttest.On(t, s)
			repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
			next := repo.Keys
			next.Dir = filepath.Join(t.TempDir(), "next")
			s.Left = cut
			_, err := roots.Rotate(t.Context(), repo.Publisher, role, next)
			s.Left = 1 << 30
			if err == nil {
				break
			}
			if _, err := roots.Rotate(t.Context(), repo.Publisher, role, next); err != nil {
				t.Fatalf("rotating %s again after %d writes: %v", role, cut, err)
			}
			repo.Release("myapp", "2", "testing", artifacttest.Files{"app": "2"})
			if r, err := repo.Host().Resolve("myapp/testing"); err != nil || r.Version != "2" {
				t.Errorf("rotating %s, interrupted after %d writes: a host resolves %v, %v", role, cut, r, err)
			}
			if left, err := os.ReadDir(next.Dir); err != nil || len(left) > 0 {
				t.Errorf("rotating %s, interrupted after %d writes: %v are left in next (%v)", role, cut, left, err)
			}
		}
	}
}
