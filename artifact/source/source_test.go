package source_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/source"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/minio"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const content = "what the artifact holds"

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(h[:])
}

// server starts a web server with a file, and with many kinds of failures.
func server(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/app.tar.gz", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Accept-Ranges", "bytes")
		http.ServeContent(w, r, "", time.Now(), strings.NewReader(content))
	})
	mux.HandleFunc("/signed", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("token") != "s3cr3t" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, content)
	})
	mux.Handle("/moved", http.RedirectHandler("/app.tar.gz", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, content)
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, content); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// expectNoFiles checks that a failed fetch has left no file.
func expectNoFiles(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("the fetch left the files %v, %v", entries, err)
	}
}

func TestFile(t *testing.T) {
	web, here := server(t), filepath.Join(t.TempDir(), "file.tar")
	if err := os.WriteFile(here, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s3 := fakes3.Start(t, nil)
	bucket := minio.New(minio.Options{Host: s3.Host, Bucket: fakes3.Bucket, Plain: true})
	if _, err := bucket.Put(t.Context(), "a/app.tar", strings.NewReader(content),
		int64(len(content)), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{
		web + "/app.tar.gz",
		web + "/app.tar.gz?checksum=" + sum(content),
		web + "/signed?token=s3cr3t&checksum=" + sum(content),
		web + "/moved",
		"file://" + here,
		"file://" + here + "?checksum=" + sum(content),
		"s3://" + fakes3.Bucket + "/a/app.tar?endpoint=http://" + s3.Host,
		"minio://" + s3.Host + "/" + fakes3.Bucket + "/a/app.tar?tls=0&checksum=" + sum(content),
	} {
		dst := filepath.Join(t.TempDir(), "fetched")
		if err := os.WriteFile(dst, []byte("something longer that was there before and is replaced"), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := source.File(t.Context(), u, dst, source.Options{})
		if err != nil {
			t.Errorf("%s: %v", u, err)
			continue
		}
		got, err := os.ReadFile(dst)
		if string(got) != content || err != nil || info.Size != int64(len(content)) || string(info.Digest) != sum(content) {
			t.Errorf("%s: %q, %+v, %v", u, got, info, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dst), ".*")); len(left) != 0 {
			t.Errorf("%s: the fetch left the files %v", u, left)
		}
	}
}

func TestFileRefused(t *testing.T) {
	web, here := server(t), t.TempDir()
	file := filepath.Join(here, "file")
	if err := errors.Join(os.WriteFile(file, []byte(content), 0o600), os.Symlink("file", filepath.Join(here, "link")),
		syscall.Mkfifo(filepath.Join(here, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url, message string
		kind         error
	}{
		{web + "/app.tar.gz?checksum=" + sum("other"), "its checksum is " + sum(content), nil},
		{"file://" + file + "?checksum=" + sum("other"), "its checksum is", nil},
		{web + "/absent", "404", store.ErrNotFound},
		{web + "/signed?token=wr0ng", "403", store.ErrForbidden},
		{web + "/cut", "unexpected EOF", nil},
		{web + "/endless", "more than 1000 bytes", nil},
		{web + "/loop", "more than 5 redirects", nil},
		{"http://127.0.0.1:1/x", "cannot be reached", store.ErrUnreachable},
		{"file://" + filepath.Join(here, "absent"), "no such file", os.ErrNotExist},
		{"file://" + here, "not a regular file", nil},
		{"file://" + filepath.Join(here, "fifo"), "not a regular file", nil},
		{"file://" + filepath.Join(here, "link"), "not a regular file", nil},
		{"git::file://" + here, "tree, not a file", nil},
	} {
		dir := t.TempDir()
		_, err := source.File(t.Context(), c.url, filepath.Join(dir, "dst"), source.Options{Limit: 1000})
		if err == nil || !strings.Contains(err.Error(), c.message) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", c.url, err)
		}
		if err != nil && strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("%s: the error contains the query: %v", c.url, err)
		}
		expectNoFiles(t, dir)
	}
}

func TestFileIsCancelled(t *testing.T) {
	web, dir := server(t), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := source.File(ctx, web+"/hangs", filepath.Join(dir, "dst"), source.Options{}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	expectNoFiles(t, dir)
}

func TestURLs(t *testing.T) {
	for _, c := range []struct{ url, message, hint string }{
		{"", "not a URL", "https://host/file"},
		{"app.tar.gz", "not a URL", "https://host/file"},
		{"git@github.com:org/repo.git", "not a URL", "git::ssh://"},
		{"github.com/org/repo", "not a URL", "git::https://"},
		{"htps://host/x", "no such kind", `did you mean "https"?`},
		{"ssh://git@host/x", "no such kind", "git::ssh://"},
		{"hg::https://host/x", "not a URL", ""},
		{"git::ext::sh -c id", "not a URL", ""},
		{"git::git://host/x", "no such kind", ""},
		{"smb://host/x", "no such kind", ""},
		{"https://user:s3cr3t@host/x", "credentials", "ssh agent"},
		{"https://s3cr3t@host/x", "credentials", "ssh agent"},
		{"git::ssh://git:s3cr3t@host/x", "credentials", "ssh agent"},
		{"http://host.example.com/x", "plain HTTP", "?checksum="},
		{"https://host/x?checksum=md5:d41d8cd98f00b204e9800998ecf8427e", "not a digest", "sha256:"},
		{"https://host/x?checksum=file:https://host/sums", "not a digest", "sha256:"},
		{"https://host/x?archive=zip", "not options", ""},
		{"https://host/a//b", "double slash", ""},
		{"file://relative/path", "on no host", "file:///relative/path"},
		{"git::https://host/x?ref=--upload-pack=evil", "not the name", ""},
		{"git::https://host/x?ref=a:b", "not the name", ""},
		{"git::https://host/x?sshkey=s3cr3t", "no option but ref", "ssh agent"},
		{"git::http://host.example.com/x", "plain HTTP", "https://"},
	} {
		dir := t.TempDir()
		_, err := source.File(t.Context(), c.url, filepath.Join(dir, "dst"), source.Options{})
		if err == nil || !strings.Contains(err.Error(), c.message) || !strings.Contains(diag.HintOf(err), c.hint) {
			t.Errorf("%s: %v, hint %q", c.url, err, diag.HintOf(err))
		}
		if err != nil && strings.Contains(err.Error()+diag.HintOf(err), "s3cr3t") {
			t.Errorf("%s: the error contains the secret: %v", c.url, err)
		}
		expectNoFiles(t, dir)
	}
}
