package s3_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		server := fakes3.Start(t, nil)
		return s3.New(s3.Options{Bucket: fakes3.Bucket, Prefix: "some/prefix", Endpoint: "http://" + server.Host})
	})
}

// TestPagesHaveTheTypeThatBrowsersWant checks the types, since browsers would otherwise download pages instead of
// showing them.
func TestPagesHaveTheTypeThatBrowsersWant(t *testing.T) {
	server := fakes3.Start(t, nil)
	s := s3.New(s3.Options{Bucket: fakes3.Bucket, Prefix: "pages", Endpoint: "http://" + server.Host})
	for name, want := range map[string]string{"a/index.html": "text/html; charset=utf-8",
		"fleet.css": "text/css; charset=utf-8", "fleet.js": "text/javascript; charset=utf-8"} {
		if _, err := s.Put(t.Context(), name, strings.NewReader("x"), 1, store.Condition{}); err != nil {
			t.Fatal(err)
		}
		answer, err := http.Get("http://" + server.Host + "/" + fakes3.Bucket + "/pages/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("Content-Type"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// loginProgram makes an AWS configuration whose credentials come from a program, as with single sign-on: its access key
// is the content of a file.
func loginProgram(t *testing.T) (keyFile string) {
	t.Helper()
	dir := t.TempDir()
	keyFile = filepath.Join(dir, "key")
	program := filepath.Join(dir, "login")
	script :=
		"#!/bin/sh\nprintf '{\"Version\":1,\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"s\"," +
			"\"Expiration\":\"2099-01-01T00:00:00Z\"}' \"$(cat " + keyFile + ")\"\n"
	writeFile(t, program, script, 0o755)
	writeFile(t, filepath.Join(dir, "config"), "[default]\nregion = eu-west-1\ncredential_process = "+program+"\n", 0o644)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	return keyFile
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// TestCredentialsExpireDuringDownload checks that a download continues with new credentials.
func TestCredentialsExpireDuringDownload(t *testing.T) {
	var expired, cut atomic.Bool
	server := fakes3.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if expired.Load() && strings.Contains(r.Header.Get("Authorization"), "Credential=first/") {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>")
				return
			}
			if r.Method == http.MethodGet && cut.CompareAndSwap(false, true) {
				w = &cutWriter{ResponseWriter: w, left: 500_000}
			}
			next.ServeHTTP(w, r)
		})
	})
	keyFile := loginProgram(t)
	writeFile(t, keyFile, "first", 0o644)
	s := store.Retry(s3.New(s3.Options{Bucket: fakes3.Bucket, Endpoint: "http://" + server.Host}), store.RetryPolicy{})
	text := strings.Repeat("0123456789", 100_000)
	if _, err := s.Put(t.Context(), "key", strings.NewReader(text), int64(len(text)), store.Condition{}); err != nil {
		t.Fatal(err)
	}
	body, _, err := s.Get(t.Context(), "key", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	expired.Store(true)
	writeFile(t, keyFile, "second", 0o644)
	if got, err := io.ReadAll(body); string(got) != text || err != nil {
		t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
	}
}

// cutWriter breaks the connection after so many bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left]) // the connection ends anyway
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// TestRefusedUploadDoesNotReadSource checks that a refused upload no longer reads its source, since the next attempt
// may read it by then.
func TestRefusedUploadDoesNotReadSource(t *testing.T) {
	server := fakes3.Start(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	})
	s := s3.New(s3.Options{Bucket: fakes3.Bucket, Endpoint: "http://" + server.Host})
	var returned atomic.Bool
	source := readerFunc(func(p []byte) (int, error) {
		if returned.Load() {
			t.Error("the source is read after Put has returned")
		}
		return len(p), nil
	})
	_, err := s.Put(t.Context(), "key", io.LimitReader(source, 100<<20), 100<<20, store.Condition{})
	returned.Store(true)
	if !errors.Is(err, store.ErrThrottled) && !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestSourceFails checks that an error of the source is not treated as one of the network, and not retried.
func TestSourceFails(t *testing.T) {
	server := fakes3.Start(t, nil)
	s := s3.New(s3.Options{Bucket: fakes3.Bucket, Endpoint: "http://" + server.Host})
	broken := errors.New("the disk is broken")
	_, err := s.Put(t.Context(), "key", iotest.ErrReader(broken), 10, store.Condition{})
	if !errors.Is(err, broken) || errors.Is(err, store.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

func TestTooLarge(t *testing.T) {
	fakes3.Login(t, "user", "secret")
	s := s3.New(s3.Options{Bucket: fakes3.Bucket, Endpoint: "http://127.0.0.1:1"})
	_, err := s.Put(context.Background(), "key", strings.NewReader(""), 6<<40, store.Condition{})
	if err == nil || !strings.Contains(err.Error(), "more than an object") {
		t.Errorf("%v", err)
	}
}
