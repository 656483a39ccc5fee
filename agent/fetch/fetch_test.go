package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
)

// recorder keeps the notes of a fetch and counts the bytes that arrive.
type recorder struct {
	mu      sync.Mutex
	notes   []string
	arrived map[string]int64
	at      func() // called with each progress, if not nil
}

func (r *recorder) Note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *recorder) Fetching(of string, done, _ int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.arrived == nil {
		r.arrived = map[string]int64{}
	}
	r.arrived[of] = done
	if r.at != nil {
		r.at()
	}
}

// fetcher is the Fetcher of a host, with its client.
type fetcher struct {
	fetch.Fetcher
	host *artifacttest.Host
}

// newFetcher returns a fetcher of a new host, and its recorder.
func newFetcher(t *testing.T, repo *artifacttest.Repo) (*fetcher, *recorder) {
	t.Helper()
	rec := &recorder{}
	return &fetcher{host: repo.Host(), Fetcher: fetch.Fetcher{
		Held: fetch.Held{Layout: layout.At(t.TempDir())}, Store: repo.Store, Progress: rec, Run: "run",
		Limits:   unpack.Limits{Bytes: 1 << 30, Files: 1000, Depth: 10, Ratio: 1000},
		Intact:   func(context.Context, artifact.Release, string) (bool, error) { return false, nil },
		Replaced: func(artifact.Release) {},
	}}, rec
}

// follow refreshes the metadata of a fetcher's store and resolves a channel.
func follow(t *testing.T, f *fetcher, channel string) artifact.Release {
	t.Helper()
	ref, err := artifact.ParseRef(channel)
	if err != nil {
		t.Fatal(err)
	}
	if f.Client, err = f.host.Client(); err != nil {
		t.Fatal(err)
	}
	release, err := f.Client.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// content returns the content of a file of a release.
func content(t *testing.T, f *fetcher, release artifact.Release, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.Layout.Project(release.Project).Release(release.Dir()), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func noise(seed uint64, n int) string {
	random, data := rand.New(rand.NewPCG(seed, 0)), make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return string(data)
}

// leftovers returns the names of temporary files of fetches.
func leftovers(t *testing.T, f *fetcher, project string) (all []string) {
	t.Helper()
	for _, dir := range []string{f.Layout.Incoming(), f.Layout.Project(project).Releases()} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if dir == f.Layout.Incoming() || strings.HasPrefix(e.Name(), ".") {
				all = append(all, e.Name())
			}
		}
	}
	return all
}

func TestFetchMakesReleasesComplete(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("base", "1", "testing", artifacttest.Files{"top.sls": "base"})
	repo.Release("myapp", "1", "testing", artifacttest.Files{"a": "one", "b/c": "two"})
	f, _ := newFetcher(t, repo)
	base, app := follow(t, f, "base/testing"), follow(t, f, "myapp/testing")
	if held, err := f.Holds(base, app); held || err != nil {
		t.Fatalf("a new host has releases: %v, %v", held, err)
	}
	if err := f.Fetch(t.Context(), []artifact.Release{base, app}); err != nil {
		t.Fatal(err)
	}
	if held, err := f.Holds(base, app); !held || err != nil {
		t.Errorf("Holds is %v, %v", held, err)
	}
	if got := content(t, f, app, "b/c"); got != "two" {
		t.Errorf("b/c has %q", got)
	}
	list, err := f.List(app)
	if err != nil || list == nil || len(list.Entries) == 0 {
		t.Errorf("the list is %v, %v", list, err)
	}
	if left := leftovers(t, f, "myapp"); len(left) > 0 {
		t.Errorf("the fetch left the files %v", left)
	}
}

// TestFetchOfTwoProjectsWithTheSameBytes fetches both at the same time: neither removes the other's file.
func TestFetchOfTwoProjectsWithTheSameBytes(t *testing.T) {
	repo := artifacttest.New(t)
	files := artifacttest.Files{"top.sls": "base: {}", "large": noise(1, 2<<20)}
	repo.Release("base", "1", "testing", files)
	repo.Release("myapp", "1", "testing", files)
	for range 5 {
		f, _ := newFetcher(t, repo)
		base, app := follow(t, f, "base/testing"), follow(t, f, "myapp/testing")
		if base.Digest != app.Digest || base.Is(app) {
			t.Fatalf("the digests are %s and %s", base.Digest, app.Digest)
		}
		if err := f.Fetch(t.Context(), []artifact.Release{base, app}); err != nil {
			t.Fatal(err)
		}
		if held, err := f.Holds(base, app); !held || err != nil {
			t.Errorf("Holds is %v, %v", held, err)
		}
	}
}

// TestFetchOfUpgradeUsesDelta fetches a release that differs little from the one on the host.
func TestFetchOfUpgradeUsesDelta(t *testing.T) {
	repo := artifacttest.New(t)
	large := noise(1, 4<<20)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"large": large, "version": "1"})
	f, rec := newFetcher(t, repo)
	first := follow(t, f, "myapp/testing")
	if err := f.Fetch(t.Context(), []artifact.Release{first}); err != nil {
		t.Fatal(err)
	}
	repo.Release("myapp", "2", "testing", artifacttest.Files{"large": large, "version": "2"})
	second := follow(t, f, "myapp/testing")
	f.Running = map[string]string{"myapp": first.Dir()}
	if err := f.Fetch(t.Context(), []artifact.Release{second}); err != nil {
		t.Fatal(err)
	}
	if content(t, f, second, "version") != "2" || content(t, f, second, "large") != large {
		t.Error("the release has other content than what was published")
	}
	if n := rec.arrived[second.String()]; n == 0 || n > second.Length/10 {
		t.Errorf("%d bytes of %d arrived; notes: %q", n, second.Length, rec.notes)
	}
}

// TestCancelledFetchResumes cancels a fetch when half of the bytes have arrived; the next one fetches the others.
func TestCancelledFetchResumes(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"large": noise(2, 32<<20)})
	f, rec := newFetcher(t, repo)
	release := follow(t, f, "myapp/testing")
	ctx, cancel := context.WithCancel(t.Context())
	rec.at = func() {
		if rec.arrived[release.String()] > release.Length/2 {
			cancel()
		}
	}
	if err := f.Fetch(ctx, []artifact.Release{release}); err == nil {
		t.Fatal("the cancelled fetch returned no error")
	}
	if held, err := f.Holds(release); held || err != nil {
		t.Fatalf("an interrupted fetch made a release: %v, %v", held, err)
	}
	*rec = recorder{}
	if err := f.Fetch(t.Context(), []artifact.Release{release}); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, f, "myapp"); len(left) > 0 {
		t.Errorf("the fetch left the files %v", left)
	}
}

// TestFetchRefusesHostileArchives fetches signed archives with content that the agent refuses.
func TestFetchRefusesHostileArchives(t *testing.T) {
	repo := artifacttest.New(t)
	release := repo.Release("myapp", "1", "testing", artifacttest.Files{"a": "one"})
	f, _ := newFetcher(t, repo)
	repo.Replace(trust.ObjectKey(release), bytes.Repeat([]byte("x"), int(release.Length)))
	err := f.Fetch(t.Context(), []artifact.Release{follow(t, f, "myapp/testing")})
	var refused *trust.Refused
	if !errors.As(err, &refused) {
		t.Fatalf("the error is %v", err)
	}
	if left := leftovers(t, f, "myapp"); len(left) > 0 {
		t.Errorf("the fetch left the files %v", left)
	}
}

// TestAgainMovesDamagedReleaseAside fetches a release whose directory is damaged; the damaged directory is renamed, and
// the caller receives its name.
func TestAgainMovesDamagedReleaseAside(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"a": "one"})
	f, rec := newFetcher(t, repo)
	var replaced []string
	f.Replaced = func(r artifact.Release) { replaced = append(replaced, r.String()) }
	release := follow(t, f, "myapp/testing")
	if err := f.Fetch(t.Context(), []artifact.Release{release}); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(f.Layout.Project("myapp").Release(release.Dir()), "a")
	if err := os.Chmod(damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Again(t.Context(), release); err != nil {
		t.Fatal(err)
	}
	if got := content(t, f, release, "a"); got != "one" {
		t.Errorf("a has %q", got)
	}
	if !slices.Equal(replaced, []string{release.String()}) || !strings.Contains(strings.Join(rec.notes, "\n"),
		"set aside") {
		t.Errorf("replaced %v, notes %q", replaced, rec.notes)
	}
	aside, err := filepath.Glob(filepath.Join(f.Layout.Project("myapp").Releases(), ".*"+layout.DamagedMark+"run", "a"))
	if err != nil || len(aside) != 1 {
		t.Errorf("the releases set aside are %v, %v", aside, err)
	}
}

// TestEmptyDirectoryIsNotARelease checks that a directory without a file of the release counts as absent: a repair of
// the filesystem may leave one.
func TestEmptyDirectoryIsNotARelease(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"a": "one"})
	f, _ := newFetcher(t, repo)
	release := follow(t, f, "myapp/testing")
	if err := f.Fetch(t.Context(), []artifact.Release{release}); err != nil {
		t.Fatal(err)
	}
	dir := f.Layout.Project("myapp").Release(release.Dir())
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if f.Has(release) {
		t.Error("an empty directory counts as the release")
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !f.Has(release) {
		t.Error("a release with a changed file counts as absent")
	}
}

// TestPruneKeepsNewestAndUsedReleases checks that three good releases remain, one of which is old and in use, and one
// of two newer failed releases.
func TestPruneKeepsNewestAndUsedReleases(t *testing.T) {
	p := layout.At(t.TempDir()).Project("myapp")
	for i, dir := range []string{"1", "2", "3", "4", "5", "6-bad", "7-bad"} {
		if err := os.MkdirAll(p.Release(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		when := time.Unix(int64(i), 0)
		if err := os.Chtimes(p.Release(dir), when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := fetch.PruneReleases(t.Context(), p, 3, 1, fetch.Kept{
		Used: func(dir string) bool { return dir == "1" },
		Good: func(dir string) bool { return !strings.HasSuffix(dir, "-bad") },
	}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(p.Releases())
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if !slices.Equal(left, []string{"1", "4", "5", "7-bad"}) {
		t.Errorf("the releases are %v", left)
	}
}
