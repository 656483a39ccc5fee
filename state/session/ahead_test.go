package session_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// watchedServer serves "hello" at each URL, but that the first request for one with "broken" in it ends early. It notes
// requests, and makes the file asked at the first.
type watchedServer struct {
	dir string
	mu  sync.Mutex
	all []string
}

func (w *watchedServer) Open(_ context.Context, url string) (io.ReadCloser, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !slices.Contains(w.all, url)
	w.all = append(w.all, url)
	_ = os.WriteFile(filepath.Join(w.dir, "asked"), nil, 0o644)
	if first && strings.Contains(url, "broken") {
		return io.NopCloser(io.MultiReader(strings.NewReader("hel"), failing{})), nil
	}
	return io.NopCloser(strings.NewReader("hello")), nil
}

// failing is a connection that breaks.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// TestSourcesAreDownloadedAhead checks that a source on the network is downloaded while an earlier state runs, once,
// and that a download that breaks is made by the state itself. Files that are there, and sources that a guard or
// a missing hash leaves open, are not downloaded ahead.
func TestSourcesAreDownloadedAhead(t *testing.T) {
	sum := sha256.Sum256([]byte("hello"))
	s, dir := stateTree(t, map[string]string{"there": "hello", "t.sls": strings.NewReplacer(
		"HASH", "{source_hash: sha256="+hex.EncodeToString(sum[:])+"}").Replace(`
slow:
  cmd.run: [{name: 'for i in $(seq 500); do test -e DIR/asked && exit 0; sleep 0.02; done; exit 1'}]
wanted:
  file.managed: [{name: DIR/wanted}, {source: 'https://example.org/wanted'}, HASH]
broken:
  file.managed: [{name: DIR/broken}, {source: 'https://example.org/broken'}, HASH]
there:
  file.managed: [{name: DIR/there}, {source: 'https://example.org/there'}, HASH]
guarded:
  file.managed: [{name: DIR/guarded}, {source: 'https://example.org/guarded'}, HASH, {onlyif: 'false'}]
`)})
	file := filepath.Join(dir, "t.sls")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	settings := s.Settings
	web := &watchedServer{dir: dir}
	settings.Remote = web
	applied(t, families.New(settings), true)
	if got := web.all; slices.Contains(got, "https://example.org/guarded") {
		t.Errorf("a dry run asked for %v", got)
	}
	web.all = nil
	if err := os.Remove(filepath.Join(dir, "asked")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for id, result := range applied(t, families.New(settings), false) {
		if result.Value("result") != true {
			t.Errorf("%s gives %s", id, value.Repr(result))
		}
	}
	slices.Sort(web.all)
	want := []string{"https://example.org/broken", "https://example.org/broken", "https://example.org/wanted"}
	if !slices.Equal(web.all, want) {
		t.Errorf("requests: %v, want %v", web.all, want)
	}
	for _, name := range []string{"wanted", "broken"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != "hello" {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}
