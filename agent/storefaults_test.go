package agent_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/artifact/store/web"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// served is a lab with a store behind a web server that can fail.
type served struct {
	*lab
	dir     string
	address *url.URL
	fault   fault
}

// fault answers a request in place of the server, or returns false.
type fault func(s *served, w http.ResponseWriter, r *http.Request) bool

func newServed(t *testing.T) *served {
	t.Helper()
	l := newLab(t)
	where := t.TempDir()
	l.repo = artifacttest.On(t, dir.New(where))
	s := &served{lab: l, dir: where}
	files := http.FileServer(http.Dir(where))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.fault == nil || !s.fault(s, w, r) {
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	var err error
	if s.address, err = url.Parse(server.URL); err != nil {
		t.Fatal(err)
	}
	l.store = store.Stack(web.New(s.address, web.Options{}), store.Settings{
		Timeout: store.TimeoutPolicy{Answer: time.Second, Idle: 200 * time.Millisecond},
		Retry:   store.RetryPolicy{Attempts: 2, First: time.Millisecond},
	})
	return s
}

// retryingStore returns the same store with the default number of retries, without waits.
func (s *served) retryingStore() store.Store {
	return store.Stack(web.New(s.address, web.Options{}),
		store.Settings{Retry: store.RetryPolicy{Attempts: 6, First: time.Millisecond, Longest: time.Millisecond}})
}

// size returns the size of the requested object.
func (s *served) size(r *http.Request) string {
	info, err := os.Stat(filepath.Join(s.dir, r.URL.Path))
	if err != nil {
		s.t.Error(err)
		return "0"
	}
	return strconv.FormatInt(info.Size(), 10)
}

// answer is a fault that answers every request below a path with a status.
func answer(below string, status int) fault {
	return func(_ *served, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, below) {
			return false
		}
		http.Error(w, "no", status)
		return true
	}
}

// half is a fault that ends the connection after the first bytes of an artifact, or stalls it.
func half(still bool) fault {
	return func(s *served, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/deploy/") {
			return false
		}
		w.Header().Set("Content-Length", s.size(r))
		_, _ = w.Write([]byte("half of"))
		if still {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		return true
	}
}

// wrongContent is a fault that answers with other content in place of an artifact.
func wrongContent(_ *served, w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/deploy/") {
		return false
	}
	_, _ = w.Write([]byte("something else entirely"))
	return true
}

// TestFailingStoreDoesNotChangeTheHost checks a host with version 1 whose store has version 2 but fails to
// deliver it.
func TestFailingStoreDoesNotChangeTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		fault fault
		code  int
	}{
		"all forbidden":          {answer("/", http.StatusForbidden), exit.Unreachable},
		"empty store":            {answer("/", http.StatusNotFound), exit.Unreachable},
		"metadata breaks":        {answer("/metadata/", http.StatusInternalServerError), exit.Unreachable},
		"artifacts forbidden":    {answer("/deploy/", http.StatusForbidden), exit.Unreachable},
		"artifact missing":       {answer("/deploy/", http.StatusNotFound), exit.Unreachable},
		"artifact breaks":        {answer("/deploy/", http.StatusBadGateway), exit.Unreachable},
		"artifact is cut":        {half(false), exit.Unreachable},
		"artifact stalls":        {half(true), exit.Unreachable},
		"artifact is other text": {wrongContent, exit.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServed(t)
			s.publish("1")
			s.expect(exit.OK)
			s.publish("2")
			s.fault = c.fault
			_, err := s.deploy()
			if exit.Code(err) != c.code {
				t.Errorf("exit code %d (%v), want %d", exit.Code(err), err, c.code)
			}
			if diag.HintOf(err) == "" {
				t.Errorf("%v has no hint", err)
			}
			s.links("1", "1", "")
			if got := s.engine.last(); got != "+1" {
				t.Errorf("converged %q, want the current pair", got)
			}
			if left, err := os.ReadDir(s.Layout.Incoming()); err == nil && len(left) > 0 {
				t.Errorf("the fetch left the files %v", left)
			}
			s.fault = nil
			s.expect(exit.OK)
			s.links("2", "2", "1")
		})
	}
}

func TestFullDiskWhileUnpackingChangesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	small, kept := l.Layout.Project("myapp").Releases(), t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(small)); err != nil {
		t.Fatal(err)
	}
	mounted(t, small, "size=64k", func() {
		if err := os.CopyFS(small, os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
		l.repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2", "big": strings.Repeat("x", 1<<20)})
		_, err := l.deploy()
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(diag.HintOf(err), "room") {
			t.Errorf("error is %v (hint %q), want that the disk is full", err, diag.HintOf(err))
		}
		entries, readErr := os.ReadDir(small)
		for _, e := range entries { // version 1, which the mount hides, is fetched again and fits
			if !strings.HasPrefix(e.Name(), "1-") {
				t.Errorf("a file remains: %v", e)
			}
		}
		if readErr != nil {
			t.Error(readErr)
		}
	})
	l.links("1", "1", "")
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

func TestRootThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	mounted(t, l.Layout.Root, "ro", func() {
		_, err := l.deploy()
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("error is %v, want that the root is read-only", err)
		}
	})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l.Layout.Root = file
	if _, err := l.deploy(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v, want an error that names it", err)
	}
}

// mounted runs body while a tmpfs is mounted over a directory.
func mounted(t *testing.T, dir, options string, body func()) {
	t.Helper()
	flags := uintptr(0)
	if options == "ro" {
		flags, options = syscall.MS_RDONLY, "size=1m"
	}
	// Without a mode, every user could write to it.
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options+",mode=755"); err != nil {
		t.Skipf("this test cannot mount a filesystem: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	}()
	body()
}

// newHookLab returns a host with a system tree, so that hooks run.
func newHookLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.Layout.Root, l.Chroot = hosttest.Chroot(t), true
	hosttest.Install(t, l.Layout.Root, "/bin/sh")
	l.Config.HookTimeout = soon
	return l
}

func TestHooksRunBeforeAndAfterTheRelease(t *testing.T) {
	l := newHookLab(t)
	say := "#!/bin/sh\necho $CORPUS_STAGE $CORPUS_VERSION after ${CORPUS_PREVIOUS_VERSION:-nothing}: $(read v " +
		"</srv/service/current/version; echo $v)\n"
	files := func(v string) artifacttest.Files {
		return artifacttest.Files{"version": v, "hooks/pre-release.d/10-say": say, "hooks/post-release.d/10-say": say}
	}
	l.repo.Release("myapp", "1", "testing", files("1"))
	l.expect(exit.OK)
	l.repo.Release("myapp", "2", "testing", files("2"))
	r := l.expect(exit.OK)
	for stage, want := range map[string]string{
		"pre-release":  "pre-release 2 after 1: 1",
		"post-release": "post-release 2 after 1: 2",
	} {
		if got := r.Hooks[stage]; len(got) != 1 || got[0].Output != want {
			t.Errorf("%s: %+v, want %q", stage, got, want)
		}
	}
}

func TestFailingHookCausesRollback(t *testing.T) {
	for _, stage := range []string{"pre-release", "post-release"} {
		t.Run(stage, func(t *testing.T) {
			l := newHookLab(t)
			l.publish("1")
			l.expect(exit.OK)
			l.repo.Release("myapp", "2", "testing",
				artifacttest.Files{"version": "2", "hooks/" + stage + ".d/10-fail": "#!/bin/sh\necho no; exit 1\n"})
			r := l.expect(exit.RolledBack)
			l.links("1", "1", "")
			if !strings.Contains(r.Error, "10-fail") {
				t.Errorf("the report has the error %q, want the hook's name", r.Error)
			}
		})
	}
}

func TestDeployInsideOfADeployIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	refused := false
	l.engine.during = func(state.Request) {
		// The agent is called from a hook or a state of its own run.
		_, err := l.Deploy(context.Background(), agent.Given{}, false)
		refused = exit.Code(err) == exit.Locked && diag.HintOf(err) != ""
	}
	l.expect(exit.OK)
	if !refused {
		t.Error("the second deploy was not refused with a hint")
	}
}

// TestMissingArtifactErrorNamesObject checks that the error about a signed but missing artifact names the object.
func TestMissingArtifactErrorNamesObject(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	release := l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	if err := l.repo.Store.Delete(t.Context(), trust.ObjectKey(release)); err != nil {
		t.Fatal(err)
	}
	_, err := l.deploy()
	if err == nil || !strings.Contains(err.Error(), "myapp 1") {
		t.Errorf("error is %v, want the release's name", err)
	}
}

// TestEmptyHookDirectoryIsNotAStage has directories of hooks without programs.
func TestEmptyHookDirectoryIsNotAStage(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{
		"version": "1", "salt/config/states/top.sls": "base: {}", "hooks/pre-release.d/README.md": "hooks go here",
		"hooks/post-release.d/.keep": "",
	})
	if r := l.expect(exit.OK); len(r.Hooks) != 0 || strings.Contains(strings.Join(r.Notes, "\n"), "hooks were skipped") {
		t.Errorf("hooks are %+v, notes %q", r.Hooks, r.Notes)
	}
}
