//go:build integration

package stores_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/minio"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestConformanceOnMinIO(t *testing.T) {
	server := minioserver.New(t)
	secure := overTLS(t, server)
	var tests atomic.Int32
	prefix := func() string { return fmt.Sprintf("test/%d", tests.Add(1)) }
	for name, open := range map[string]func(t *testing.T) store.Store{
		"s3": func(*testing.T) store.Store {
			return s3.New(s3.Options{Bucket: minioserver.Bucket, Prefix: prefix(), Endpoint: "http://" + server.Host})
		},
		"minio": func(*testing.T) store.Store {
			return minio.New(minio.Options{Host: server.Host, Bucket: minioserver.Bucket, Prefix: prefix(), Plain: true})
		},
		"s3 over TLS": func(*testing.T) store.Store {
			return s3.New(s3.Options{Bucket: minioserver.Bucket, Prefix: prefix(), Endpoint: secure.URL})
		},
		"minio over TLS": func(*testing.T) store.Store {
			return minio.New(minio.Options{
				Host: strings.TrimPrefix(secure.URL, "https://"), Bucket: minioserver.Bucket, Prefix: prefix(),
				Transport: wire.Listen(secure.Client().Transport),
			})
		},
		"stack": func(t *testing.T) store.Store { return open(t, server.MinioURL(prefix())) },
	} {
		t.Run(name, func(t *testing.T) { storetest.Run(t, open) })
	}
}

// overTLS starts a TLS proxy for a server, with a certificate that the AWS SDK is configured to trust.
func overTLS(t *testing.T, server *minioserver.Server) *httptest.Server {
	t.Helper()
	proxy := &httputil.ReverseProxy{ErrorLog: quiet(), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: server.Host})
		r.Out.Host = r.In.Host // the host name is signed
	}}
	secure := httptest.NewTLSServer(proxy)
	t.Cleanup(secure.Close)
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(bundle, data, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", bundle)
	return secure
}

func open(t testing.TB, u string) store.Store {
	t.Helper()
	s, err := stores.Open(u, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestChecksumsAsOnAWS checks that every write has a CRC32 in a header, for a large object in each part; the server
// checks and keeps it.
func TestChecksumsAsOnAWS(t *testing.T) {
	server := minioserver.New(t)
	secure := overTLS(t, server)
	s := s3.New(s3.Options{Bucket: minioserver.Bucket, Endpoint: secure.URL})
	for _, size := range []int{0, 1, 100, 64 << 10, 3<<20 + 1, 16 << 20, 23 << 20} {
		data := bytes.Repeat([]byte("x"), size)
		if _, err := s.Put(t.Context(), fmt.Sprint(size), io.MultiReader(bytes.NewReader(data)), int64(size),
			store.Condition{IfAbsent: true}); err != nil {
			t.Errorf("%d bytes: %v", size, err)
			continue
		}
		for _, cond := range []store.Condition{{IfAbsent: true}, {IfMatch: `"0123456789abcdef0123456789abcdef"`}} {
			// The server may refuse the request, and close the connection, before it has read the body.
			err := store.ErrUnreachable
			for try := 0; try < 20 && errors.Is(err, store.ErrUnreachable); try++ {
				_, err = s.Put(t.Context(), fmt.Sprint(size), bytes.NewReader(data), int64(size), cond)
			}
			if !errors.Is(err, store.ErrPrecondition) && !errors.Is(err, store.ErrUnreachable) {
				t.Errorf("%d bytes again, with %+v: %v", size, cond, err)
			}
		}
		body, info, err := s.Get(t.Context(), fmt.Sprint(size), 0)
		if err != nil || info.Size != int64(size) {
			t.Errorf("%d bytes: %+v, %v", size, info, err)
			continue
		}
		if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCompletionIsConditional has another publisher write the object while a large one is uploaded in parts: the
// condition is checked again when the upload is completed.
func TestCompletionIsConditional(t *testing.T) {
	server := minioserver.New(t)
	for name, u := range map[string]string{"minio": server.MinioURL("x"), "s3": server.S3URL("y")} {
		s := open(t, u)
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
		other := func() {
			if _, err := s.Put(t.Context(), "large", strings.NewReader("other"), 5, store.Condition{}); err != nil {
				t.Error(err)
			}
		}
		source := io.MultiReader(bytes.NewReader(data[:8<<20]), &onRead{do: other}, bytes.NewReader(data[8<<20:]))
		if _, err := s.Put(t.Context(), "large", source, int64(len(data)), store.Condition{IfAbsent: true}); !errors.Is(err,
			store.ErrPrecondition) {
			t.Errorf("%s: %v", name, err)
		}
		body, info, err := s.Get(t.Context(), "large", 0)
		if err != nil || info.Size != 5 {
			t.Errorf("%s: the object is %+v, %v", name, info, err)
			continue
		}
		_ = body.Close() // only the size is checked
	}
}

// onRead is an empty source that calls a function when it is read.
type onRead struct{ do func() }

func (o *onRead) Read([]byte) (int, error) {
	o.do()
	return 0, io.EOF
}

// TestServerDiesDuringDownload kills and restarts the server during a download: the download continues.
func TestServerDiesDuringDownload(t *testing.T) {
	server := minioserver.New(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 4<<20) // 64 MiB
	for _, u := range []string{server.MinioURL("x"), server.S3URL("y")} {
		s := open(t, u)
		if _, err := s.Put(t.Context(), "large", bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
			t.Fatal(err)
		}
		body, _, err := s.Get(t.Context(), "large", 0)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.New()
		if _, err := io.CopyN(hash, body, 10<<20); err != nil {
			t.Fatal(err)
		}
		server.Stop()
		restarted := make(chan struct{})
		go func() {
			defer close(restarted)
			time.Sleep(500 * time.Millisecond)
			server.Start(t)
		}()
		n, err := io.Copy(hash, body)
		if want := sha256.Sum256(data); err != nil || !bytes.Equal(hash.Sum(nil), want[:]) {
			t.Errorf("%s: %d bytes after the first 10 MiB, %v", u, n, err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
		<-restarted
	}
}

func TestMinIORefuses(t *testing.T) {
	server := minioserver.New(t)
	get := func(u string) error {
		body, _, err := open(t, u).Get(t.Context(), "key", 0)
		if err == nil {
			_ = body.Close() // an unexpected response; the nil error is reported
		}
		return err
	}
	elsewhere := strings.NewReplacer("/"+minioserver.Bucket+"/", "/another/", "//"+minioserver.Bucket+"/", "//another/")
	for _, u := range []string{server.MinioURL("x"), server.S3URL("x")} {
		if err := get(u); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", u, err)
		}
		if err := get(elsewhere.Replace(u)); !errors.Is(err, store.ErrNoStore) || diag.HintOf(err) == "" {
			t.Errorf("%s: %v", elsewhere.Replace(u), err)
		}
	}
	t.Setenv("MINIO_SECRET_KEY", "wrong-secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
	for _, u := range []string{server.MinioURL("x"), server.S3URL("x")} {
		if err := get(u); !errors.Is(err, store.ErrCredentials) || !strings.Contains(diag.HintOf(err), "secret is wrong") {
			t.Errorf("%s: %v, hint %q", u, err, diag.HintOf(err))
		}
	}
}

func BenchmarkGetFromMinIO(b *testing.B) {
	server := minioserver.New(b)
	for kind, u := range map[string]string{"minio": server.MinioURL("x"), "s3": server.S3URL("x")} {
		b.Run(kind, func(b *testing.B) { storetest.BenchmarkGet(b, open(b, u)) })
	}
}
