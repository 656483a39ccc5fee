package session_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// packed returns a compressed archive of one file in one directory.
func packed(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, err := range []error{w.WriteHeader(&tar.Header{Name: "app/file", Mode: 0o644, Size: 5}),
		func() error { _, err := io.WriteString(w, "hello"); return err }(), w.Close(), z.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// server serves data at each URL that ends with /app.tar.gz.
type server struct{ data []byte }

func (e server) Open(_ context.Context, url string) (io.ReadCloser, error) {
	if !strings.HasSuffix(url, "/app.tar.gz") {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(e.data)), nil
}

// TestArchives extracts archives of the state tree, of the host and of a server.
func TestArchives(t *testing.T) {
	data := packed(t)
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	s, dir := stateTree(t, map[string]string{"files/app.tar.gz": string(data), "t.sls": `
tree:
  archive.extracted: [{name: DIR/out/tree}, {source: 'salt://files/app.tar.gz'}]
host:
  archive.extracted: [{name: DIR/out/host}, {source: DIR/files/app.tar.gz}, {source_hash: HASH}]
web:
  archive.extracted: [{name: DIR/out/web}, {source: 'https://me:s3cret@example.org/app.tar.gz'}, {source_hash: 'sha256=HASH'}]
several:
  archive.extracted: [{name: DIR/out/several}, {source: ['https://example.org/none.tar.gz', 'salt://files/app.tar.gz']}]
unverified:
  archive.extracted: [{name: DIR/out/no}, {source: 'https://example.org/app.tar.gz'}]
bad hash:
  archive.extracted: [{name: DIR/out/no}, {source: DIR/files/app.tar.gz}, {source_hash: 'sha256=0000000000000000000000000000000000000000000000000000000000000000'}]
missing:
  archive.extracted: [{name: DIR/out/no}, {source: 'salt://files/none.tar.gz'}]
`})
	file := filepath.Join(dir, "t.sls")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("HASH"), []byte(hash)), 0o644); err != nil {
		t.Fatal(err)
	}
	settings := s.Settings
	settings.Remote, settings.Options = server{data}, value.NewMap("cachedir", filepath.Join(dir, "cache"))
	dry := applied(t, families.New(settings), true)
	for id, want := range map[string]any{"tree": nil, "web": nil, "unverified": false, "bad hash": false} {
		if got := dry[id].Value("result"); got != want {
			t.Errorf("dry run of %s gives %s, want %v", id, value.Repr(dry[id]), want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "cache")); err == nil {
		t.Error("a dry run fetched something")
	}
	for run := range 2 {
		got := applied(t, families.New(settings), false)
		for _, id := range []string{"tree", "host", "web", "several"} {
			changes, _ := got[id].Value("changes").(*value.Map)
			if got[id].Value("result") != true || (changes.Len() > 0) != (run == 0) {
				t.Errorf("run %d of %s gives %s", run, id, value.Repr(got[id]))
			}
			if data, err := os.ReadFile(filepath.Join(dir, "out", id, "app/file")); err != nil || string(data) != "hello" {
				t.Errorf("%s has %q, %v", id, data, err)
			}
			if strings.Contains(value.Repr(got[id]), "s3cret") {
				t.Errorf("the result shows the password of %s: %s", id, value.Repr(got[id]))
			}
		}
		for id, want := range map[string]string{"unverified": "cannot be verified", "bad hash": "source_hash says",
			"missing": "does not exist"} {
			if text := value.Repr(got[id]); got[id].Value("result") != false || !strings.Contains(text, want) {
				t.Errorf("%s gives %s, want %q", id, text, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "no")); err == nil {
		t.Error("an archive was extracted despite its error")
	}
}

// TestDryRunOfAnArchiveInThePlaceOfAFile checks that a dry run of an archive is unknown, and does not fail, if an
// earlier state removes what is in its way.
func TestDryRunOfAnArchiveInThePlaceOfAFile(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"srv/x": "x", "srv/y": "y", "states/a.tar.gz": string(packed(t)),
		"states/t.sls": "gone: {file.absent: [{name: /srv/x}]}\n" +
			"there: {archive.extracted: [{name: /srv/x}, {source: 'salt://a.tar.gz'}]}\n" +
			"fails: {archive.extracted: [{name: /srv/y}, {source: 'salt://a.tar.gz'}]}\n"} {
		hosttest.Put(t, filepath.Join(root, name), text, 0o644)
	}
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runStates(t, h, "/states", true) {
		if failed := r.Outcome == exec.Failed; failed != (r.ID() == "fails") {
			t.Errorf("%s: %v: %s", r.ID(), r.Outcome, r.Comment)
		}
	}
}
