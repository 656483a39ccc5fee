package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestDigestsHaveABound: a user makes a file of any size without room on the disk.
func TestDigestsHaveABound(t *testing.T) {
	root := t.TempDir()
	sparse := filepath.Join(root, "sparse")
	if err := os.WriteFile(sparse, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	o := file{Facts: &function.Facts{Host: h}}
	if sum, err := o.sum("/sparse", "md5"); err != nil || sum != "9dd4e461268c8034f5c8564e155c67a6" {
		t.Errorf("a short file: %q, %v", sum, err)
	}
	if err := os.Truncate(sparse, mostHashed+1); err != nil {
		t.Skip("no sparse files here:", err)
	}
	if sum, err := o.sum("/sparse", "md5"); err == nil || !strings.Contains(err.Error(), "larger than 4") {
		t.Errorf("a sparse file: %q, %v", sum, err)
	}
}
