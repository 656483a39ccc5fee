package publish_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
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
