package attack_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/collect"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// removePages removes all pages of the project from the store.
func removePages(t *testing.T, repo *artifacttest.Repo) {
	t.Helper()
	for _, key := range pages(repo) {
		if err := repo.Store.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLostPagesAreRestored checks that a rebuild restores the lost pages of a project: from the publisher's copies, or
// from the list of all versions. Without either, it reports them as missing, and hosts continue following the channels.
func TestLostPagesAreRestored(t *testing.T) {
	artifacttest.Long(t)
	for name, prepare := range map[string]func(*artifacttest.Repo){
		"kept": func(repo *artifacttest.Repo) {
			if _, err := projects.Upgrade(t.Context(), repo.Publisher); err != nil { // a store without such a list
				t.Fatal(err)
			}
			repo.Release("myapp", "2.0", "testing", app("two"))
			repo.Release("myapp", "2.1", "testing", app("three"))
			// only pages that are read are kept
			if _, err := collect.Garbage(t.Context(), repo.Publisher, collect.Grace{}, false); err != nil {
				t.Fatal(err)
			}
		},
		"listed": func(repo *artifacttest.Repo) {
			repo.Release("myapp", "2.1", "testing", app("three"))
			if err := os.RemoveAll(repo.Seen + "/projects/myapp~pages"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := artifacttest.New(t)
			for _, version := range []string{"1.0", "1.1"} {
				repo.Release("myapp", version, "testing", app(version))
			}
			prepare(repo)
			removePages(t, repo)
			if r, err := repo.Host().Resolve("myapp/testing"); err != nil || r.Version != "2.1" {
				t.Errorf("without pages a host resolves %v, %v", r, err)
			}
			result, err := recovery.Rebuild(t.Context(), repo.Publisher)
			if err != nil || len(result.Pages) > 0 || !strings.Contains(strings.Join(result.Restored, " "),
				trust.PagePrefix("myapp")) {
				t.Fatalf("%+v, %v", result, err)
			}
			client, err := repo.Host().Client()
			if err != nil {
				t.Fatal(err)
			}
			role, err := client.Whole(t.Context(), "myapp")
			if err != nil || len(trust.Releases("myapp", role)) < 3 {
				t.Errorf("the project has %d versions, %v", len(trust.Releases("myapp", role)), err)
			}
			repo.Release("myapp", "3.0", "testing", app("four"))
		})
	}
}

// TestPublishBeyondSizeLimitUploadsNothing checks that nothing is uploaded if the project would be too large for its
// readers.
func TestPublishBeyondSizeLimitUploadsNothing(t *testing.T) {
	repo := artifacttest.New(t)
	release := repo.Release("myapp", "1.0", "testing", app("one"))
	repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
		f.Roles["myapp"].Signed.Version++
		proof := json.RawMessage(`{"host":"` + strings.Repeat("a", 9<<20) + `"}`)
		if err := trust.SetChannels(f.Roles["myapp"],
			map[string]trust.Pointer{"testing": {Version: "1.0", Digest: release.Digest, Serial: 2, Proof: proof}}); err != nil {
			t.Fatal(err)
		}
	})
	before := repo.Snapshot()
	file := t.TempDir() + "/two.tar.zst"
	if err := os.WriteFile(file, artifacttest.Archive(t, app("two")), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := releases.Publish(t.Context(), repo.Publisher, releases.Request{Project: "myapp", Version: "2.0", File: file,
		Channel: "staging"})
	if err == nil || !strings.Contains(err.Error(), "readers accept at most 8388608") {
		t.Errorf("publish ends with %v", err)
	}
	after := repo.Snapshot()
	for key := range after {
		if before[key] == nil {
			t.Errorf("%s was written", key)
		}
	}
	if len(after) != len(before) {
		t.Errorf("the store had %d objects and now has %d", len(before), len(after))
	}
}
