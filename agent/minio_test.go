//go:build integration

package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
)

// inMemory returns a directory in memory, if the machine has one.
func inMemory(tb testing.TB) string {
	tb.Helper()
	if _, err := os.Stat("/dev/shm"); err != nil {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "corpus-test-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func openStore(t *testing.T, url string, observe func(store.Request)) store.Store {
	t.Helper()
	s, err := stores.Open(url, stores.Options{Observe: observe})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestThousandAgents has many agents deploy a version and then the next one from one server at the same time.
// CORPUS_TEST_AGENTS is their number.
func TestThousandAgents(t *testing.T) {
	many := 1000
	if n, err := strconv.Atoi(os.Getenv("CORPUS_TEST_AGENTS")); err == nil {
		many = n
	}
	server := minioserver.New(t)
	repo := artifacttest.On(t, openStore(t, server.MinioURL("fleet"), nil))
	rootFile := filepath.Join(t.TempDir(), "root.json")
	if err := os.WriteFile(rootFile, repo.Root(), 0o644); err != nil {
		t.Fatal(err)
	}
	files := artifacttest.Files{"version": "1", "data": noise(1, 1<<20)}
	repo.Release("myapp", "1", "testing", files)
	roots := inMemory(t)
	for _, round := range []string{"first deploy", "nothing new", "upgrade"} {
		if round == "upgrade" {
			files["version"] = "2"
			repo.Release("myapp", "2", "testing", files)
		}
		var requests, bytes, failed atomic.Int64
		var slowest time.Duration
		var mu sync.Mutex
		group := errgroup.Group{}
		group.SetLimit(64)
		for i := range many {
			group.Go(func() error {
				started := time.Now()
				a := agent.New(site.Site{
					Layout: layout.At(filepath.Join(roots, strconv.Itoa(i))), Config: settings(t),
					Hostname: func() (string, error) { return fmt.Sprintf("myapp-testing-useast1-%d", i), nil },
				})
				a.Engine = &engine{}
				a.OpenStore = func(string) (store.Store, error) {
					return stores.Open(server.MinioURL("fleet"), stores.Options{Observe: func(r store.Request) {
						requests.Add(1)
						bytes.Add(r.Bytes)
					}})
				}
				if _, err := a.Deploy(t.Context(), agent.Given{TrustRoot: rootFile}, false); exit.Code(err) != exit.OK {
					failed.Add(1)
					t.Logf("agent %d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				slowest = max(slowest, time.Since(started))
				return nil
			})
		}
		_ = group.Wait() // failures are counted above
		t.Logf("%s: %d agents, %d failed, %.1f requests and %d bytes each, slowest %.1f s", round, many, failed.Load(),
			float64(requests.Load())/float64(many), bytes.Load()/int64(many), slowest.Seconds())
		if failed.Load() > 0 {
			t.Errorf("%s: %d of %d deploys failed", round, failed.Load(), many)
		}
	}
}

// TestStoreDiesDuringFetch kills the server during the fetch of an artifact, or of its new chunks, and starts it again.
func TestStoreDiesDuringFetch(t *testing.T) {
	t.Parallel()
	server := minioserver.New(t)
	for way, suffix := range fetches() {
		t.Run(way, func(t *testing.T) {
			l := newLab(t)
			url := server.MinioURL("dies-" + way)
			l.repo = artifacttest.On(t, openStore(t, url, nil))
			files := artifacttest.Files{"version": "2", "data": noise(1, 48<<20)}
			if way == "delta" {
				files["old"] = noise(2, 8<<20)
				l.store = openStore(t, url, nil)
				l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1", "old": files["old"]})
				l.expect(exit.OK)
			}
			storeDies(t, server, l, files, url, suffix)
		})
	}
}

func storeDies(t *testing.T, server *minioserver.Server, l *lab, files artifacttest.Files, url, suffix string) {
	l.repo.Release("myapp", "2", "testing", files)
	log := &storetest.Log{}
	l.store = openStore(t, url, log.Add)
	l.store = store.Limit(l.store, store.NewLimiter(24<<20)) // so that the fetch takes two seconds
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		for range 3 {
			time.Sleep(400 * time.Millisecond)
			server.Stop()
			time.Sleep(300 * time.Millisecond)
			server.Start(t)
		}
	}()
	l.expect(exit.OK)
	<-restarted
	holds(t, l, files)
	const fresh, part = 48 << 20, 8 << 20
	if _, bytes := requested(log, suffix); bytes < fresh || bytes > fresh+part {
		t.Errorf("fetched %d bytes, of which %d are new:\n%s", bytes, fresh, log)
	}
}
