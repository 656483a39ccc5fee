package dir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
)

// TestObjectHasTheTimeOfTheFileSystem writes objects with a process whose clock is wrong by years, as that of a host
// that writes to a network file system may be, and checks that versions of an object still differ.
func TestObjectHasTheTimeOfTheFileSystem(t *testing.T) {
	at := t.TempDir()
	large := strings.Repeat("x", 1<<20+1) // whose tag has the time of its file
	probe := filepath.Join(at, "now")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	now, err := os.Stat(probe)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // its clock begins in the year 2000
		s := dir.New(at)
		tags := map[string]bool{}
		for range 20 {
			time.Sleep(time.Microsecond)
			info, err := s.Put(t.Context(), "a", strings.NewReader(large), int64(len(large)), store.Condition{})
			if err != nil {
				t.Fatal(err)
			}
			if off := info.Modified.Sub(now.ModTime()); off < -time.Second || off > time.Minute {
				t.Errorf("the object is of %s, %v from the time of the file system", info.Modified, off)
			}
			tags[info.ETag] = true
		}
		if len(tags) != 20 {
			t.Errorf("20 versions have %d tags", len(tags))
		}
	})
}
