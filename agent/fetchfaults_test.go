package agent_test

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// fetches are the two kinds of fetches with the suffix of their objects: the whole artifact, and chunks that the
// earlier release lacks.
func fetches() map[string]string { return map[string]string{"whole": ".tar.zst", "delta": ".pack"} }

// publishNext publishes a release that the lab's host fetches in one of these ways. It returns the release's files and
// the number of bytes to fetch.
func publishNext(t *testing.T, l *lab, way string) (artifacttest.Files, int64) {
	t.Helper()
	files := large("1")
	l.repo.Release("myapp", "1", "testing", files)
	l.expect(exit.OK)
	before := packs(t, l.repo.Store)
	files = maps.Clone(files)
	files["version"], files["data/new"] = "2", noise(3, 2<<20)
	release := l.repo.Release("myapp", "2", "testing", files)
	if way == "delta" {
		return files, packs(t, l.repo.Store) - before
	}
	for info, err := range l.repo.Store.List(t.Context(), "deploy/myapp/") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Key, ".index") {
			if err := l.repo.Store.Delete(t.Context(), info.Key); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files, release.Length
}

func packs(t *testing.T, s store.Store) (n int64) {
	t.Helper()
	for info, err := range s.List(t.Context(), "deploy/myapp/chunks/") {
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size
	}
	return n
}

// holds checks that the current release has the published content.
func holds(t *testing.T, l *lab, files artifacttest.Files) {
	t.Helper()
	for name, want := range files {
		if strings.HasPrefix(want, "-> ") {
			continue
		}
		if got, err := os.ReadFile(l.Layout.Path("/srv/service/current/" + name)); err != nil || string(got) != want {
			t.Errorf("%s has %d bytes with other content than was published, %v", name, len(got), err)
		}
	}
	if audits, err := l.Verify(t.Context()); err != nil || !audits[0].Signed {
		t.Errorf("the release has other content than was signed: %+v, %v", audits, err)
	}
}

// resets is a fault that resets connections for artifacts and packs after a number of bytes.
func resets(every int) fault {
	return func(s *served, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, ".pack") && !strings.HasSuffix(r.URL.Path, ".tar.zst") {
			return false
		}
		http.ServeFile(&resetting{ResponseWriter: w, left: every}, r, filepath.Join(s.dir, r.URL.Path))
		return true
	}
}

type resetting struct {
	http.ResponseWriter
	left int
}

func (w *resetting) Write(p []byte) (int, error) {
	if len(p) <= w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	w.ResponseWriter.(http.Flusher).Flush()
	time.Sleep(2 * time.Millisecond) // a reset discards bytes that the client has not read yet
	conn, _, err := w.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	panic(http.ErrAbortHandler)
}

// TestConnectionIsResetEveryNBytes checks that a fetch continues after resets, without fetching a byte twice.
func TestConnectionIsResetEveryNBytes(t *testing.T) {
	for way, suffix := range fetches() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := newServed(t)
			files, length := publishNext(t, s.lab, way)
			log := &storetest.Log{}
			s.store = store.Observe(s.retryingStore(), log.Add)
			s.fault = resets(100_000)
			s.expect(exit.OK)
			s.links("2", "2", "1")
			holds(t, s.lab, files)
			if _, bytes := requested(log, suffix); bytes != length {
				t.Errorf("fetched %d bytes of %d:\n%s", bytes, length, log)
			}
			if way == "delta" {
				if n, _ := requested(log, ".tar.zst"); n > 0 {
					t.Errorf("the whole artifact was requested:\n%s", log)
				}
			}
		})
	}
}

// TestDiskFullDuringAFetch fills the disk during the download, or during unpacking. No partial release remains, and
// with free space a later run fetches only the missing bytes.
func TestDiskFullDuringAFetch(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for way, suffix := range fetches() {
		for where, small := range map[string]func(*lab) string{
			"incoming": func(l *lab) string { return l.Layout.Incoming() },
			"releases": func(l *lab) string { return l.Layout.Project("myapp").Releases() },
		} {
			t.Run(way+"/"+where, func(t *testing.T) {
				l := newLab(t)
				files, length := publishNext(t, l, way)
				log := l.watched()
				dir := small(l)
				old := t.TempDir()
				if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				size := "size=5200k"
				if where == "incoming" {
					size = "size=1m"
				}
				mounted(t, dir, size, func() {
					if err := os.CopyFS(dir, os.DirFS(old)); err != nil {
						t.Fatal(err)
					}
					_, err := l.deploy()
					if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(diag.HintOf(err), "room") {
						t.Errorf("error is %v (hint %q), want that the disk is full", err, diag.HintOf(err))
					}
					if left := leftovers(t, l.Layout.Root); left != "" {
						t.Errorf("the fetch left the files %s", left)
					}
				})
				l.links("1", "1", "")
				if found, err := filepath.Glob(filepath.Join(l.Layout.Project("myapp").Releases(), "2-*")); err != nil ||
					len(found) > 0 {
					t.Errorf("the releases are %v, %v", found, err)
				}
				l.expect(exit.OK)
				l.links("2", "2", "1")
				holds(t, l, files)
				if _, bytes := requested(log, suffix); bytes > length {
					t.Errorf("fetched %d bytes of %d:\n%s", bytes, length, log)
				}
			})
		}
	}
}
