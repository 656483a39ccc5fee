package agent_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// noise does not compress, and is the same for the same seed.
func noise(seed byte, size int) string {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return string(data)
}

// watched replaces the store of the host by one that logs its requests.
func (l *lab) watched() *storetest.Log {
	log := &storetest.Log{}
	l.store = store.Observe(l.repo.Store, log.Add)
	return log
}

// requested returns the number of requests for keys below deploy/ that end with suffix, and the bytes that were read.
func requested(log *storetest.Log, suffix string) (requests int, bytes int64) {
	for _, r := range log.Requests() {
		if strings.HasPrefix(r.Key, "deploy/") && strings.HasSuffix(r.Key, suffix) {
			requests++
			bytes += r.Bytes
		}
	}
	return requests, bytes
}

func large(version string) artifacttest.Files {
	return artifacttest.Files{
		"version": version, "salt/config/states/top.sls": "base: {}", "data/large": noise(1, 3<<20),
		"data/other": noise(2, 1<<20), "bin/run": "#!/bin/sh\n", "link": "-> data/large", "empty": "",
	}
}

func TestUpgradeFetchesOnlyNewChunks(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", large("1"))
	l.expect(exit.OK)
	next := large("2")
	next["data/large"] = next["data/large"][:1<<20] + "xy" + next["data/large"][1<<20:]
	release := l.repo.Release("myapp", "2", "testing", next)
	log := l.watched()
	l.expect(exit.OK)
	l.links("2", "2", "1")
	if _, bytes := requested(log, ""); bytes > release.Length/10 {
		t.Errorf("fetched %d bytes of %d for two new bytes:\n%s", bytes, release.Length, log)
	}
	if n, _ := requested(log, ".tar.zst"); n != 0 {
		t.Errorf("the whole artifact was requested:\n%s", log)
	}
	got := filepath.Join(l.Layout.Path("/srv/service/current"), "data")
	for name, want := range map[string]string{"large": next["data/large"], "other": next["data/other"]} {
		if data, err := os.ReadFile(filepath.Join(got, name)); err != nil || string(data) != want {
			t.Errorf("%s has %d bytes that are not those published, %v", name, len(data), err)
		}
	}
	old := inode(t, l.Layout.Path("/srv/service/previous/data/other"))
	if inode(t, filepath.Join(got, "other")) == old {
		t.Error("two releases share one inode, so a change of one file would change the other")
	}
	if audits, err := l.Verify(t.Context()); err != nil || !audits[0].Signed {
		t.Errorf("a release made of chunks has other content than what was signed: %+v, %v", audits, err)
	}
	if left, err := os.ReadDir(l.Layout.Incoming()); err != nil || len(left) != 0 {
		t.Errorf("the fetch left the files %v, %v", left, err)
	}
}

func inode(t *testing.T, name string) uint64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// If the chunks or their index are damaged, the artifact itself is used.
func TestBadChunksFallBackToTheWholeArtifact(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{".pack", ".index"} {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t)
			l.repo.Release("myapp", "1", "testing", large("1"))
			l.expect(exit.OK)
			next := large("2")
			next["data/new"] = noise(3, 200_000)
			l.repo.Release("myapp", "2", "testing", next)
			for key, data := range l.repo.Snapshot() {
				if strings.HasSuffix(key, kind) {
					data[len(data)/2]++
					data[len(data)/3]++
					data[10]++
					l.repo.Replace(key, data)
				}
			}
			log := l.watched()
			r := l.expect(exit.OK)
			l.links("2", "2", "1")
			noted(t, r, "is fetched as a whole")
			noted(t, r, "signed by")
			if n, _ := requested(log, ".tar.zst"); n == 0 {
				t.Errorf("the artifact was not requested:\n%s", log)
			}
		})
	}
}

// TestDeltaThatGrowsBeyondItsRatioIsRefused checks that a delta has the same limits as the whole artifact.
func TestDeltaThatGrowsBeyondItsRatioIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.UnpackRatio = 16
	l.repo.Release("myapp", "1", "testing", large("1"))
	l.expect(exit.OK)
	next := large("2")
	next["data/zeros"] = strings.Repeat("\x00", 80<<20)
	l.repo.Release("myapp", "2", "testing", next)
	log := l.watched()
	_, err := l.deploy()
	if exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), "more than 16-fold") ||
		!strings.Contains(err.Error(), "signed by") || diag.HintOf(err) == "" {
		t.Errorf("exit code %d, %v, want a refusal that names the key that signed it", exit.Code(err), err)
	}
	if n, _ := requested(log, ".pack"); n == 0 {
		t.Errorf("the fetch used no delta:\n%s", log)
	}
	l.links("1", "1", "")
	unchanged(t, l)
}

// A deploy with missing chunks fetches the whole artifact.
func TestMissingChunksFallBackToTheWholeArtifact(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{".pack", ".index"} {
		t.Run(missing, func(t *testing.T) {
			l := newLab(t)
			l.repo.Release("myapp", "1", "testing", large("1"))
			l.expect(exit.OK)
			next := large("2")
			next["data/new"] = noise(3, 200_000)
			l.repo.Release("myapp", "2", "testing", next)
			for key := range l.repo.Snapshot() {
				if strings.HasSuffix(key, missing) {
					if err := l.repo.Store.Delete(t.Context(), key); err != nil {
						t.Fatal(err)
					}
				}
			}
			r := l.expect(exit.OK)
			l.links("2", "2", "1")
			noted(t, r, "is fetched as a whole")
		})
	}
}

// An artifact that shares no chunks with the last one is fetched as a whole, with at most 2 % more bytes.
func TestUnrelatedArtifactIsFetchedWhole(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", large("1"))
	l.expect(exit.OK)
	release := l.repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2", "data": noise(9, 4<<20)})
	log := l.watched()
	l.expect(exit.OK)
	if _, bytes := requested(log, ""); bytes > release.Length*102/100 {
		t.Errorf("fetched %d bytes for an artifact of %d:\n%s", bytes, release.Length, log)
	}
	l.links("2", "2", "1")
}

func TestArtifactsOfTheOldFormatAreDeployed(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2"} {
		file := filepath.Join(t.TempDir(), "a.tar.zst")
		if err := os.WriteFile(file, artifacttest.Archive(t, large(version)), 0o644); err != nil {
			t.Fatal(err)
		}
		request := releases.Request{Project: "myapp", Version: version, File: file, Channel: "testing", Plain: true}
		if _, err := releases.Publish(t.Context(), l.repo.Publisher, request); err != nil {
			t.Fatal(err)
		}
		l.expect(exit.OK)
	}
	l.links("2", "2", "1")
	audits, err := l.Verify(t.Context())
	if err != nil || audits[0].Signed || audits[0].Note == "" {
		t.Errorf("audits are %+v, %v, want them good and not signed", audits, err)
	}
}

// TestNoChangeIsOneRequest checks that a run without a new release makes one request, which the store answers without a
// body.
func TestNoChangeIsOneRequest(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", large("1"))
	l.publishBase("1")
	l.expect(exit.OK)
	log := l.watched()
	l.expect(exit.OK)
	if n := len(log.Requests()); n != 1 || log.Bytes() != 0 {
		t.Errorf("%d requests, %d bytes, want one request and an empty response:\n%s", n, log.Bytes(), log)
	}
}

// A run that is killed during a fetch leaves the blocks that arrived, and the next run uses them.
func TestInterruptedFetchIsResumed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	release := l.repo.Release("myapp", "1", "testing", large("1"))
	whole := ""
	for key, data := range l.repo.Snapshot() {
		if strings.HasSuffix(key, release.Digest.Hex()+".1.tar.zst") {
			whole = string(data)
		}
	}
	if err := os.MkdirAll(l.Layout.Incoming(), 0o700); err != nil {
		t.Fatal(err)
	}
	const half = 8 * (256 << 10)
	if err := os.WriteFile(l.Layout.Part(release.Project, release.Digest.Hex()), []byte(whole[:half]), 0o600); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(l.Layout.Incoming(), strings.Repeat("ab", 32)+".part")
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	log := l.watched()
	l.expect(exit.OK)
	if _, bytes := requested(log, ".tar.zst"); bytes != release.Length-half {
		t.Errorf("fetched %d bytes, want %d:\n%s", bytes, release.Length-half, log)
	}
	if left, err := os.ReadDir(l.Layout.Incoming()); err != nil || len(left) != 0 {
		t.Errorf("the fetch left the files %v, %v", left, err)
	}
}

// The agent fetches from a mirror while the store does not answer.
func TestFetchFailsOverToMirror(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", large("1"))
	away := &store.Error{Op: store.OpGet, Kind: store.ErrUnreachable}
	l.Config.Mirrors = []string{"mirror"}
	good := l.repo.Store
	l.OpenStore = func(url string) (store.Store, error) {
		if url == "mirror" {
			return good, nil
		}
		return storetest.NewFaulty(good, storetest.Fault{Op: store.OpGet, Nth: 5, Last: 1 << 30, Err: away}), nil
	}
	l.expect(exit.OK)
	l.links("1", "1", "")
}
