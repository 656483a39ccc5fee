package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// silentServer returns the address of a server that accepts connections and never answers. If headers is true, it sends
// the headers of a response, and then nothing.
func silentServer(t *testing.T, headers bool) string {
	t.Helper()
	if headers {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Etag", `"1"`)
			w.Header().Set("Last-Modified", "Mon, 04 May 2026 12:00:00 GMT")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
	}()
	return l.Addr().String()
}

// TestCommandsEndWithAHangingStore checks that commands end within --retry with exit code 5 and a hint if the store
// accepts connections and does not answer, or sends headers and then nothing.
func TestCommandsEndWithAHangingStore(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
		"MINIO_ACCESS_KEY": "a", "MINIO_SECRET_KEY": "b"} {
		t.Setenv(name, value)
	}
	base := newStore(t)
	base.artifact("app", "app")
	type ended struct {
		shell *shell
		line  string
		code  int
		took  time.Duration
	}
	results := make(chan ended)
	const limit = 1100 * time.Millisecond
	const slow = 20 * time.Second // more than this machine needs for its part, and less than the limit without --retry
	n := 0
	for _, line := range []string{"fleet", "rollout status myapp production", "publish myapp 1 @app.tar.zst", "host ls"} {
		for _, headers := range []bool{false, true} {
			address := silentServer(t, headers)
			for _, store := range []string{"http://" + address + "/store", "minio://" + address + "/bucket?tls=0&region=x",
				"s3://bucket/store?region=eu-west-1&path-style=1&endpoint=http://" + address} {
				if line == "host ls" && strings.HasPrefix(store, "http:") {
					continue // a web server cannot be listed
				}
				s := &shell{t: t, dir: base.dir, env: map[string]string{"CORPUS_STORE": store}}
				s.env["CORPUS_KEYS"] = base.dir + "/keys"
				n++
				go func() {
					start := time.Now()
					code := s.run(line + " --retry " + limit.String())
					results <- ended{s, line, code, time.Since(start)}
				}()
			}
		}
	}
	for range n {
		e := <-results
		if e.code != 5 || e.took > limit+slow || !strings.Contains(e.shell.err, "hint: ") {
			t.Errorf("corpus %s with %s: exit code %d after %v\n%s%s", e.line, e.shell.env["CORPUS_STORE"], e.code, e.took,
				e.shell.out, e.shell.err)
		}
	}
}
