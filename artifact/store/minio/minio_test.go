package minio_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/minio"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		server := fakes3.Start(t, nil)
		return minio.New(minio.Options{Host: server.Host, Bucket: fakes3.Bucket, Prefix: "some/prefix", Plain: true})
	})
}

func TestKeySources(t *testing.T) {
	var mu sync.Mutex
	used := ""
	server := fakes3.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			_, used, _ = strings.Cut(r.Header.Get("Authorization"), "Credential=")
			used, _, _ = strings.Cut(used, "/")
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	})
	mc := `{"version":"10","aliases":{
		"other":{"url":"http://elsewhere:9000","accessKey":"not-this","secretKey":"x"},
		"mine":{"url":"http://` + server.Host + `/","accessKey":"from-mc","secretKey":"x"}}}`
	if err := os.WriteFile(filepath.Join(os.Getenv("MC_CONFIG_DIR"), "config.json"), []byte(mc), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	// Each of these takes precedence over those before it.
	for _, c := range []struct{ id, secret, want string }{
		{"", "", "from-mc"},
		{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "from-aws"},
		{"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", "from-root"},
		{"MINIO_ACCESS_KEY", "MINIO_SECRET_KEY", "from-minio"},
	} {
		if c.id != "" {
			t.Setenv(c.id, c.want)
			t.Setenv(c.secret, "x")
		}
		s := minio.New(minio.Options{Host: server.Host, Bucket: fakes3.Bucket, Plain: true})
		if err := s.Delete(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if used != c.want {
			t.Errorf("%s: signed by %q", c.want, used)
		}
		mu.Unlock()
	}
}
