package attack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// many publishes a project with a number of versions, each with two files beside its artifact.
func many(t *testing.T, versions int) *artifacttest.Repo {
	t.Helper()
	repo := artifacttest.New(t)
	repo.Release("base", "1", "production", app("base"))
	repo.Release("myapp", "1.0", "testing", app("one"))
	repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
		role := f.Roles["myapp"]
		for i := range versions {
			target := trust.TargetPath("myapp", fmt.Sprintf("0.%d", i), artifact.TarZst)
			for _, name := range []string{target, target + ".blocks", target + ".index"} {
				file := tuf.TargetFile()
				file.Length, file.Hashes = int64(i+1), tuf.Hashes{"sha256": make([]byte, 32)}
				file.Hashes["sha256"][0], file.Hashes["sha256"][1] = byte(i), byte(i>>8)
				role.Signed.Targets[name] = file
			}
		}
		role.Signed.Version++
	})
	return repo
}

// counting counts the bytes that are read.
type counting struct {
	store.Store
	bytes *int64
}

func (c counting) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := c.Store.Get(ctx, key, from)
	*c.bytes += max(info.Size, 0)
	return body, info, err
}

// TestTickReadsLittleOfManyVersions checks that a host of a project with 10,000 versions reads less than 100 KB of
// metadata, including the page of a release without a channel.
func TestTickReadsLittleOfManyVersions(t *testing.T) {
	artifacttest.Long(t)
	repo := many(t, 10_000)
	host, bytes := repo.Host(), int64(0)
	host.Store = counting{repo.Store, &bytes}
	client, err := host.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []artifact.Ref{{Project: "myapp", Channel: "testing"}, {Project: "base", Channel: "production"}} {
		if _, err := client.Resolve(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	without := bytes
	old := artifact.Release{Project: "myapp", Version: "0.77", Format: artifact.TarZst}
	if learned, err := client.Learn(t.Context(), old); err != nil || !learned {
		t.Fatalf("the page of an old release: learned %v, %v", learned, err)
	}
	all := repo.Snapshot()
	t.Logf("a new host reads %d bytes, and %d with a page; the head has %d, the list of all versions %d", without, bytes,
		len(all[newest(all, "myapp~head.json")]), len(all[newest(all, "myapp.json")]))
	if bytes >= 100_000 {
		t.Errorf("a host reads %d bytes of metadata", bytes)
	}
	// A publisher continues from this state and loses no version.
	repo.Release("myapp", "2.0", "testing", app("two"))
	if client, err = repo.Host().Client(); err != nil {
		t.Fatal(err)
	}
	role, err := client.Whole(t.Context(), "myapp")
	if err != nil || len(trust.Releases("myapp", role)) != 10_002 {
		t.Errorf("after another release the project has %d versions, %v", len(trust.Releases("myapp", role)), err)
	}
}

// pages returns the keys of a project's pages.
func pages(repo *artifacttest.Repo) []string {
	var keys []string
	for key := range repo.Snapshot() {
		if strings.HasPrefix(key, trust.PagePrefix("myapp")) {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestPagesAreBoundToTheHead checks that an old, misplaced, damaged or missing page is refused, and that the channels
// continue to work.
func TestPagesAreBoundToTheHead(t *testing.T) {
	repo := many(t, 200)
	before := pages(repo)
	repo.Release("myapp", "2.0", "testing", app("two"))
	good := repo.Snapshot()
	if len(before) < 4 {
		t.Fatalf("%d pages are too few for this test", len(before))
	}
	for name, spoil := range map[string]func(key string, i int){
		"swapped":      func(key string, i int) { repo.Replace(key, good[before[(i+1)%len(before)]]) },
		"another time": func(key string, _ int) { repo.Replace(key, []byte(`{"targets":{}}`)) },
		"cut":          func(key string, _ int) { repo.Replace(key, good[key][:len(good[key])/2]) },
		"missing": func(key string, _ int) {
			if err := repo.Store.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer repo.Restore(good)
			for i, key := range before {
				spoil(key, i)
			}
			client, err := repo.Host().Client()
			if err != nil {
				t.Fatal(err)
			}
			if r, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"}); err != nil ||
				r.Version != "2.0" {
				t.Errorf("the channel names %v, %v", r, err)
			}
			_, err = client.Whole(t.Context(), "myapp")
			var r *trust.Refused
			if name == "missing" && exit.Code(err) != exit.Unreachable ||
				name != "missing" && (!errors.As(err, &r) || r.Check != trust.CheckDigest) {
				t.Errorf("all versions: %v", err)
			}
		})
	}
}

// TestManyRootsAreFollowed checks that a new host reads more roots than earlier agents read in one refresh.
func TestManyRootsAreFollowed(t *testing.T) {
	artifacttest.Long(t)
	repo, _ := published(t)
	attacker := repo.Forger("root")
	for range 150 {
		attacker.Root(func(*tuf.RootType) {})
	}
	sees(t, repo.Host(), "2")
}

// TestUpgradedStore checks that after the upgrade the project's old file is the head, which earlier agents read as a
// project without other versions; no other version is lost.
func TestUpgradedStore(t *testing.T) {
	repo := many(t, 200)
	if _, err := projects.Upgrade(t.Context(), repo.Publisher); err != nil {
		t.Fatal(err)
	}
	repo.Release("myapp", "2.0", "testing", app("two"))
	all := repo.Snapshot()
	if head, whole := all[newest(all, "myapp~head.json")], all[newest(all, "myapp.json")]; string(head) != string(whole) {
		t.Errorf("the earlier file has %d bytes and the head %d, want equal sizes", len(whole), len(head))
	}
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	role, err := client.Whole(t.Context(), "myapp")
	if err != nil || len(trust.Releases("myapp", role)) != 202 {
		t.Errorf("the project has %d versions, %v", len(trust.Releases("myapp", role)), err)
	}
}

// TestProjectBeyondTheLimitIsRepaired checks that an older store with a project that is too large for readers is valid
// again after the next promotion.
func TestProjectBeyondTheLimitIsRepaired(t *testing.T) {
	artifacttest.Long(t)
	repo := many(t, 26_000)
	repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
		f.Roles["myapp"].Signed.Version++
		f.Before = func() { delete(f.Snapshot.Signed.Meta, "myapp~head.json") }
	})
	_, err := repo.Host().Resolve("myapp/testing")
	refused(t, err, trust.CheckLength, newest(repo.Snapshot(), "myapp.json"))
	if _, err := releases.Promote(t.Context(), repo.As("myapp", "snapshot", "timestamp"), "myapp", "testing",
		"staging"); err != nil {
		t.Fatal(err)
	}
	if r, err := repo.Host().Resolve("myapp/staging"); err != nil || r.Version != "1.0" {
		t.Errorf("after a promotion a host resolves %v, %v", r, err)
	}
	all := repo.Snapshot()
	if size := len(all[newest(all, "myapp.json")]); size > 6<<20+1<<16 {
		t.Errorf("the earlier form has %d bytes", size)
	}
}
