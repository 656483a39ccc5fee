package roots_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// TestRotationInterruptedWhileKeysMove interrupts a rotation of two keys at each step of moving the new pairs into
// place.
func TestRotationInterruptedWhileKeysMove(t *testing.T) {
	t.Parallel()
	moves := []string{"timestamp-2.pub", "timestamp-2.key", "timestamp.pub", "timestamp.key"}
	for cut := range len(moves) + 1 {
		repo := artifacttest.New(t)
		grow(t, repo, "timestamp", 2)
		next := repo.Aside()
		if err := next.NewLike("timestamp", 2, repo.Keys); err != nil {
			t.Fatal(err)
		}
		want, err := next.Public("timestamp")
		if err != nil {
			t.Fatal(err)
		}
		// All but the last step of a rotation, as a killed process leaves it.
		keep := repo.Aside()
		copyAll(t, repo.Keys.Dir, keep.Dir)
		if _, err := roots.Rotate(t.Context(), repo.Publisher, "timestamp", copied(t, next)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"timestamp.key", "timestamp.pub", "timestamp-2.key", "timestamp-2.pub"} {
			data, err := os.ReadFile(filepath.Join(keep.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			artifacttest.WriteFile(t, filepath.Join(repo.Keys.Dir, name), data)
		}
		artifacttest.WriteFile(t, filepath.Join(next.Dir, "timestamp.moving"), nil)
		for _, name := range moves[:cut] {
			if err := os.Rename(filepath.Join(next.Dir, name), filepath.Join(repo.Keys.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := roots.Rotate(t.Context(), repo.Publisher, "timestamp", next); err != nil {
			t.Fatalf("again after %d moves: %v", cut, err)
		}
		got, err := repo.Keys.Public("timestamp")
		if err != nil || len(got) != 2 {
			t.Fatalf("after %d moves the keys are %v, %v", cut, got, err)
		}
		for i := range want {
			a, _ := want[i].ID()
			b, _ := got[i].ID()
			keys, err := repo.Keys.Keys("timestamp")
			if a != b || err != nil || keys[i].ID != a {
				t.Errorf("after %d moves key %d is %s (%v), want %s", cut, i+1, b, err, a)
			}
		}
		if left, err := os.ReadDir(next.Dir); err != nil || len(left) > 0 {
			t.Errorf("after %d moves %v are left in next (%v)", cut, left, err)
		}
		old, err := filepath.Glob(filepath.Join(repo.Keys.Dir, "old", "*.key"))
		if err != nil || len(old) != 2 {
			t.Errorf("after %d moves the old keys are %v", cut, old)
		}
		repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
		if _, err := repo.Host().Resolve("myapp/testing"); err != nil {
			t.Errorf("after %d moves: %v", cut, err)
		}
	}
}

// grow gives a role of the root more keys.
func grow(t *testing.T, repo *artifacttest.Repo, role string, keys int) {
	t.Helper()
	if _, err := repo.Keys.New(role, keys); err != nil {
		t.Fatal(err)
	}
	if _, err := roots.Apply(t.Context(), repo.Publisher, adding(t, repo.Keys, role)); err != nil {
		t.Fatal(err)
	}
}

func copyAll(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func copied(t *testing.T, ring keyring.Ring) keyring.Ring {
	t.Helper()
	other := ring
	other.Dir = filepath.Join(t.TempDir(), "next")
	copyAll(t, ring.Dir, other.Dir)
	return other
}

// adding returns the change of the root that allows all of a role's keys to sign.
func adding(t *testing.T, ring publish.Keyring, role string) roots.Change {
	t.Helper()
	keys, err := ring.Public(role)
	if err != nil {
		t.Fatal(err)
	}
	return roots.Change{Add: map[string][]*tuf.Key{role: keys}}
}
