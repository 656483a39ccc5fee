package recovery_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/drafts"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

func TestRebuildIgnoresDamagedMetadata(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	repo.Release("base", "1", "production", artifacttest.Files{"app": "1"})
	host := repo.Host()
	if _, err := host.Resolve("myapp/testing"); err != nil {
		t.Fatal(err)
	}
	repo.Replace("metadata/timestamp.json", []byte("{}"))
	if _, err := refresh.Roles(t.Context(), repo.Publisher, 0); err == nil {
		t.Error("a damaged timestamp was refreshed")
	}
	rebuilt, err := recovery.Rebuild(t.Context(), repo.Publisher)
	if err != nil || len(rebuilt.Lost) != 0 || rebuilt.Roles["myapp"] == 0 || rebuilt.Roles["base"] == 0 {
		t.Fatalf("rebuilding gives %+v, %v", rebuilt, err)
	}
	if r, err := host.Resolve("myapp/testing"); err != nil || r.Version != "1" {
		t.Errorf("a host that has read the store resolves %v, %v", r, err)
	}
}

// TestRebuildRestoresFilesOfSnapshots checks that a rebuild does not use the files of an interrupted publisher, and
// reports missing files.
func TestRebuildRestoresFilesOfSnapshots(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"", "timestamp", "snapshot", "both"} {
		t.Run("without "+lost, func(t *testing.T) {
			s := &artifacttest.Failing{Store: mem.New(), Left: 1 << 30}
			repo := artifacttest.On(t, s)
			repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
			repo.Release("base", "1", "testing", artifacttest.Files{"app": "1"})
			host := repo.Host()
			if _, err := host.Resolve("myapp/testing"); err != nil {
				t.Fatal(err)
			}
			before := repo.Snapshot()
			for left := 0; ; left++ { // interrupted after the project is written, and before the snapshot is
				s.Left = left
				file := filepath.Join(t.TempDir(), "x.tar.zst")
				artifacttest.WriteFile(t, file, artifacttest.Archive(t, artifacttest.Files{"app": "2"}))
				_, err := releases.Publish(t.Context(), repo.Publisher, releases.Request{Project: "myapp", Version: "2", File: file,
					Channel: "testing"})
				if s.Left = 1 << 30; err == nil {
					t.Fatal("publishing was not interrupted between project and snapshot")
				}
				keys := artifacttest.Changed(before, repo.Snapshot())
				if slices.ContainsFunc(keys, func(k string) bool { return strings.HasSuffix(k, ".myapp.json") }) {
					break
				}
			}
			if lost == "timestamp" || lost == "both" {
				remove(t, repo, trust.TimestampKey)
			}
			if lost == "snapshot" {
				for key := range maps.Keys(before) {
					if strings.HasSuffix(key, ".snapshot.json") {
						repo.Replace(key, []byte("{}"))
					}
				}
			}
			if lost == "both" { // also the project's current file
				remove(t, repo, newestOf(before, "myapp"))
				remove(t, repo, newestOf(before, trust.HeadRole("myapp")))
			}
			online := repo.As("snapshot", "timestamp")
			if lost == "snapshot" {
				online.Seen = repo.Seen // a publisher with a copy of the current snapshot
			}
			rebuilt, err := recovery.Rebuild(t.Context(), online)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := host.Resolve("base/testing"); err != nil || r.Version != "1" {
				t.Errorf("a host of base resolves %v, %v after %+v", r, err, rebuilt)
			}
			if lost != "both" {
				if r, err := host.Resolve("myapp/testing"); err != nil || r.Version != "1" || len(rebuilt.Lost) > 0 {
					t.Errorf("a host resolves %v, %v, after the rebuild %+v; want version 1", r, err, rebuilt)
				}
				return
			}
			if len(rebuilt.Missing) != 1 || rebuilt.Missing[0].Role != "myapp" ||
				!slices.Equal(rebuilt.Lost, []string{"myapp"}) {
				t.Errorf("the rebuild returns %+v, want myapp to be missing", rebuilt)
			}
			// The owner exports the remaining content, signs it, and continues.
			draft, verified, err := drafts.Export(t.Context(), repo.As("snapshot", "timestamp"), "myapp")
			if err != nil || verified {
				t.Fatalf("exporting the rest of myapp: verified %v, %v", verified, err)
			}
			keys, err := repo.Keys.Keys("myapp")
			if err != nil {
				t.Fatal(err)
			}
			if err := draft.Sign(keys); err != nil {
				t.Fatal(err)
			}
			if _, err := drafts.Import(t.Context(), repo.As("snapshot", "timestamp"), draft); err != nil {
				t.Fatal(err)
			}
			repo.Release("myapp", "3", "testing", artifacttest.Files{"app": "3"})
			for kind, h := range map[string]*artifacttest.Host{"old": host, "new": repo.Host()} {
				if r, err := h.Resolve("myapp/testing"); err != nil || r.Version != "3" {
					t.Errorf("an %s host resolves %v, %v", kind, r, err)
				}
			}
		})
	}
}

func remove(t *testing.T, repo *artifacttest.Repo, key string) {
	t.Helper()
	if err := repo.Store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// newestOf returns the newest file of a role among objects.
func newestOf(objects map[string][]byte, role string) (best string) {
	for key := range objects {
		if strings.HasSuffix(key, "."+role+".json") && (len(key) > len(best) || len(key) == len(best) && key > best) {
			best = key
		}
	}
	return best
}
