// Package fakes3 runs an S3 server in the process of a test, for fast tests without an installed server. It keeps
// objects in memory, accepts every signature and implements the parts of S3 that the stores use, including
// conditional writes. Package minioserver runs a real server.
package fakes3

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Bucket exists on every server that Start starts.
const Bucket = "corpus"

// Server is a running server.
type Server struct {
	Host string // host:port
}

// Start starts a server that ends with the test, and sets the credentials for it in the environment of the test's
// process. wrap, if not nil, returns a handler that is called before the server.
func Start(t *testing.T, wrap func(http.Handler) http.Handler) Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	handler := copying(gofakes3.New(backend).Server())
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it responds twice when a client disconnects
	server.Start()
	t.Cleanup(server.Close)
	Login(t, "user", "secret")
	return Server{Host: strings.TrimPrefix(server.URL, "http://")}
}

// copying adds UploadPartCopy to a server: it sends the object that a request names as the part.
func copying(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := r.Header.Get("X-Amz-Copy-Source")
		if from == "" || !r.URL.Query().Has("uploadId") {
			server.ServeHTTP(w, r)
			return
		}
		source := httptest.NewRecorder()
		server.ServeHTTP(source, httptest.NewRequestWithContext(r.Context(), http.MethodGet, "/"+from, nil))
		if source.Code != http.StatusOK {
			w.WriteHeader(source.Code)
			_, _ = w.Write(source.Body.Bytes()) // the client sees that it is cut off
			return
		}
		part := r.Clone(r.Context())
		part.Header.Del("X-Amz-Copy-Source")
		part.Body, part.ContentLength = io.NopCloser(source.Body), int64(source.Body.Len())
		part.Header.Set("Content-Length", strconv.Itoa(source.Body.Len()))
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, part)
		w.WriteHeader(answer.Code)
		_, _ = fmt.Fprintf(w, "<CopyPartResult><ETag>%s</ETag></CopyPartResult>", answer.Header().Get("ETag"))
	})
}

// Login sets the environment from which both S3 stores read credentials, and clears all other sources.
func Login(t *testing.T, access, secret string) {
	t.Helper()
	home := t.TempDir()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": "",
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_EC2_METADATA_DISABLED": "true",
		"MINIO_ACCESS_KEY":          "", "MINIO_SECRET_KEY": "", "MINIO_ROOT_USER": "", "MINIO_ROOT_PASSWORD": "",
		"AWS_CONFIG_FILE": home + "/config", "AWS_SHARED_CREDENTIALS_FILE": home + "/credentials", "MC_CONFIG_DIR": home,
	} {
		t.Setenv(name, value)
	}
}
