package publish_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyKey gives a key pair to another directory of keys, under another name.
func copyKey(t *testing.T, from, name, to, as string) {
	t.Helper()
	for _, suffix := range []string{".key", ".pub"} {
		data, err := os.ReadFile(filepath.Join(from, name+suffix))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(to, as+suffix), data)
	}
}

func remove(t *testing.T, repo *artifacttest.Repo, key string) {
	t.Helper()
	if err := repo.Store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// newestOf is the newest file of a role among objects.
func newestOf(objects map[string][]byte, role string) (best string) {
	for key := range objects {
		if strings.HasSuffix(key, "."+role+".json") && (len(key) > len(best) || len(key) == len(best) && key > best) {
			best = key
		}
	}
	return best
}

// adding is the change of the root that lets all of a role's keys sign.
func adding(t *testing.T, ring publish.Keyring, role string) publish.RootChange {
	t.Helper()
	keys, err := ring.Public(role)
	if err != nil {
		t.Fatal(err)
	}
	return publish.RootChange{Add: map[string][]*tuf.Key{role: keys}}
}
