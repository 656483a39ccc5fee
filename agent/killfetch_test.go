package agent_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
)

// The variables of a child with a slow fetch whose progress is recorded, so that it can be killed during the fetch.
const (
	childTally = "CORPUS_TEST_TALLY" // file that grows by a byte for each KiB of artifacts and packs
	// killMoments is the number of kills, if it is set.
	killMoments = "CORPUS_TEST_KILLS"
)

// tally is a store that records each received block at once, so that the record survives a kill.
type tally struct {
	store.Store
	file *os.File
}

func tallied(s store.Store) store.Store {
	name := os.Getenv(childTally)
	if name == "" {
		return s
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return s
	}
	return &tally{Store: s, file: file}
}

func (t *tally) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return t.GetRange(ctx, key, store.Range{From: from})
}

func (t *tally) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	body, info, err := store.GetRange(ctx, t.Store, key, part)
	if err != nil || !strings.HasSuffix(key, ".tar.zst") && !strings.HasSuffix(key, ".pack") {
		return body, info, err
	}
	return &talliedBody{body, t.file}, info, nil
}

type talliedBody struct {
	io.ReadCloser
	file *os.File
}

func (b *talliedBody) Read(p []byte) (int, error) {
	n, err := io.ReadFull(b.ReadCloser, p[:min(len(p), 16<<10)])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if _, err := b.file.Write(make([]byte, (n+1023)>>10)); err != nil {
		return n, err
	}
	time.Sleep(200 * time.Microsecond)
	return n, err
}

// killedFetch is a fetch that is killed repeatedly.
type killedFetch struct {
	store, trust string
	host         func(t *testing.T) string     // makes a host before the fetch
	trees        map[string]artifacttest.Files // possible releases on the host, by version
	want         string                        // the version at the end
	length       int64                         // bytes of artifacts and packs to fetch
}

// TestFetchKilledAtRandomMoments kills a first deploy repeatedly while it fetches and unpacks. Blocks that were
// verified before a kill are not fetched again, except those in flight, and the release has the published content at
// the end.
func TestFetchKilledAtRandomMoments(t *testing.T) {
	k, repo := newKilledFetch(t)
	k.host = func(t *testing.T) string { return t.TempDir() }
	k.length = k.publish(repo, "1", artifacttest.Files{"version": "1", "large": noise(1, 6<<20)}).Length
	k.run(t)
}

// TestDeltaKilledAtRandomMoments kills upgrades that combine files of the host and chunks from the packs of two
// versions.
func TestDeltaKilledAtRandomMoments(t *testing.T) {
	k, repo := newKilledFetch(t)
	large := noise(1, 4<<20)
	k.publish(repo, "1", artifacttest.Files{"version": "1", "large": large})
	template := t.TempDir()
	if code := spawn(t, template, k.store, k.trust, 0); code != 0 {
		t.Fatalf("deploying version 1: exit code %d", code)
	}
	before := k.packs(t)
	files := artifacttest.Files{"version": "2", "large": large[:1<<20] + "xy" + large[1<<20:], "new": noise(2, 2<<20)}
	k.publish(repo, "2", files)
	files = maps.Clone(files)
	files["version"], files["newer"] = "3", noise(3, 2<<20)
	release := k.publish(repo, "3", files)
	k.length = k.packs(t) - before
	if k.length < 4<<20 || k.length > release.Length*2/3 {
		t.Fatalf("the new chunks are %d bytes of %d, too many for a delta", k.length, release.Length)
	}
	k.host = func(t *testing.T) string { return copied(t, template) }
	k.run(t)
}

func newKilledFetch(t *testing.T) (*killedFetch, *artifacttest.Repo) {
	t.Helper()
	artifacttest.Long(t)
	k := &killedFetch{store: t.TempDir(), trust: filepath.Join(t.TempDir(), "root.json"),
		trees: map[string]artifacttest.Files{}}
	repo := artifacttest.On(t, dir.New(k.store))
	if err := os.WriteFile(k.trust, repo.Root(), 0o644); err != nil {
		t.Fatal(err)
	}
	return k, repo
}

func (k *killedFetch) publish(repo *artifacttest.Repo, version string, files artifacttest.Files) artifact.Release {
	k.trees[version], k.want = files, version
	return repo.Release("myapp", version, "testing", files)
}

// packs returns the number of bytes of chunks in the store.
func (k *killedFetch) packs(t *testing.T) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(k.store, "deploy/myapp/chunks/*.pack"))
	for _, file := range files {
		info, statErr := os.Stat(file)
		if statErr != nil {
			t.Fatal(statErr)
		}
		n += info.Size()
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run kills until the number of kills is reached: several times on each host, whose deploy may then complete.
func (k *killedFetch) run(t *testing.T) {
	moments := 24
	if n, err := strconv.Atoi(os.Getenv(killMoments)); err == nil {
		moments = n
	}
	whole := interrupted(t, k.host(t), k.store, k.trust, "", time.Minute)
	during := 0 // kills after which files of a fetch existed
	for done := 0; done < moments; {
		root, log := k.host(t), filepath.Join(t.TempDir(), "tally")
		kills := 0
		for interrupted(t, root, k.store, k.trust, log, rand.N(whole+whole/4)) >= 0 {
			k.releasesIntact(t, root)
			if left, err := os.ReadDir(filepath.Join(root, "var/lib/corpus/incoming")); err == nil && len(left) > 0 {
				during++
			}
			if kills++; kills > 4 {
				interrupted(t, root, k.store, k.trust, log, time.Minute)
				break
			}
		}
		done += kills
		k.ended(t, root, log, kills)
		if err := os.RemoveAll(root); err != nil { // a thousand hosts would fill the disk
			t.Fatal(err)
		}
	}
	t.Logf("after %d of %d kills or more, files of a fetch existed", during, moments)
	if during < moments/4 {
		t.Errorf("files of a fetch existed after only %d of %d kills", during, moments)
	}
}

// ended checks a host whose deploy completed after some kills, and the number of fetched bytes.
func (k *killedFetch) ended(t *testing.T, root, log string, kills int) {
	t.Helper()
	k.releasesIntact(t, root)
	if v, err := os.ReadFile(filepath.Join(root, "srv/service/current/version")); err != nil || string(v) != k.want {
		t.Fatalf("after %d kills version %q is current, %v, want %s", kills, v, err, k.want)
	}
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	const underWay = 4 * (256<<10 + 16<<10) // a block of each connection, and the read part of the next
	if fetched, most := info.Size()<<10, k.length+64<<10+int64(kills)*underWay; fetched > most {
		t.Errorf("after %d kills %d bytes were fetched of %d, want %d at most", kills, fetched, k.length, most)
	}
	if left, err := os.ReadDir(filepath.Join(root, "var/lib/corpus/incoming")); err != nil || len(left) > 0 {
		t.Errorf("the fetch left the files %v, %v", left, err)
	}
	if left := leftovers(t, root); left != "" {
		t.Errorf("the fetch left the files %s", left)
	}
}

// releasesIntact checks that each directory with the name of a release has the published content.
func (k *killedFetch) releasesIntact(t *testing.T, root string) {
	t.Helper()
	releases, err := filepath.Glob(filepath.Join(root, "srv/projects/myapp/releases/[^.]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range releases {
		version, _, _ := strings.Cut(filepath.Base(release), "-")
		for name, want := range k.trees[version] {
			if got, err := os.ReadFile(filepath.Join(release, name)); err != nil || string(got) != want {
				t.Fatalf("%s of %s has %d bytes with other content than was published, %v",
					name, filepath.Base(release), len(got), err)
			}
		}
		if names, err := os.ReadDir(release); err != nil || len(names) != len(k.trees[version]) || len(names) == 0 {
			t.Fatalf("%s has the files %v, %v", filepath.Base(release), names, err)
		}
	}
}

// interrupted runs a child and kills it after a while. It returns how long the child ran, or -1 if the child had ended,
// which a first run with enough time does.
func interrupted(t *testing.T, root, storeDir, trustRoot, log string, after time.Duration) time.Duration {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+root, childStore+"="+storeDir, childTrust+"="+trustRoot, childKill+"=0",
		childTally+"="+log)
	var output strings.Builder
	cmd.Stderr = &output
	started := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	kill.Stop()
	if err == nil && log != "" {
		return -1
	}
	if code := cmd.ProcessState.ExitCode(); code > 0 {
		t.Fatalf("an agent ended with exit code %d: %s", code, output.String())
	}
	return time.Since(started)
}
