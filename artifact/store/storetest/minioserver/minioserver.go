// Package minioserver starts a real MinIO server for integration tests.
//
// The server is built from source once, which takes some minutes, and kept in a cache directory: $CORPUS_TEST_CACHE, or
// corpus-test in the user's cache directory. Every server has its own port, directory and keys, and ends with its test.
package minioserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	minio "github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	module  = "github.com/minio/minio"
	version = "v0.0.0-20260212201848-7aac2a2c5b7c"
	user    = "corpus-test"
	secret  = "corpus-test-secret"
)

// Bucket is a bucket on every server.
const Bucket = "corpus"

// Server is a MinIO server.
type Server struct {
	Host string // host:port, where it listens whenever it runs

	program string
	dir     string
	log     bytes.Buffer
	process *exec.Cmd
}

// New starts a server with an empty Bucket, and sets its credentials in the environment of the test's process for both
// S3 stores.
func New(tb testing.TB) *Server {
	tb.Helper()
	program, err := Program(tb.Context())
	if err != nil {
		tb.Fatalf("building MinIO: %v", err)
	}
	s := &Server{Host: freePort(tb), program: program, dir: tb.TempDir()}
	tb.Setenv("AWS_ACCESS_KEY_ID", user)
	tb.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	tb.Setenv("AWS_SESSION_TOKEN", "")
	tb.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	tb.Setenv("MINIO_ACCESS_KEY", user)
	tb.Setenv("MINIO_SECRET_KEY", secret)
	tb.Cleanup(s.Stop)
	s.Start(tb)
	client, err := minio.New(s.Host, &minio.Options{Creds: credentials.NewStaticV4(user, secret, "")})
	if err == nil {
		err = client.MakeBucket(tb.Context(), Bucket, minio.MakeBucketOptions{})
	}
	if err != nil {
		tb.Fatalf("making the bucket: %v", err)
	}
	return s
}

// MinioURL returns the URL of a minio:// store under a prefix.
func (s *Server) MinioURL(prefix string) string {
	return "minio://" + s.Host + "/" + Bucket + "/" + prefix + "?tls=0"
}

// S3URL returns the URL of an s3:// store under a prefix.
func (s *Server) S3URL(prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?endpoint=http://" + s.Host
}

// Start starts a stopped server, with its previous objects.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	s.log.Reset()
	s.process = exec.Command(s.program, "server", "--quiet", "--address", s.Host, s.dir)
	s.process.Env = []string{"MINIO_ROOT_USER=" + user, "MINIO_ROOT_PASSWORD=" + secret, "HOME=" + s.dir,
		"MINIO_BROWSER=off", "MINIO_UPDATE=off"}
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		tb.Fatalf("starting MinIO: %v", err)
	}
	if err := s.waitReady(tb.Context()); err != nil {
		s.Stop()
		tb.Fatalf("MinIO did not start: %v\n%s", err, s.log.String())
	}
}

// Stop kills the server, like a crash. The server need not be running.
func (s *Server) Stop() {
	if s.process != nil {
		_ = s.process.Process.Kill() // the process may have ended already
		_ = s.process.Wait()         // the process was killed, which is an error
		s.process = nil
	}
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Host+"/minio/health/ready", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close() // only the status counts
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

func freePort(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Program returns the path of the server's program, which it builds unless it is in the cache. Processes that need it
// at the same time wait for each other.
func Program(ctx context.Context) (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "minio-"+version)
	lock, err := os.OpenFile(program+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("waiting for another build: %w", err)
	}
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	temp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	cmd := exec.CommandContext(ctx, "go", "install", "-ldflags=-s -w", module+"@"+version)
	cmd.Dir, cmd.Env = temp, append(os.Environ(), "GOBIN="+temp, "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return program, os.Rename(filepath.Join(temp, "minio"), program)
}

func cacheDir() (string, error) {
	dir := os.Getenv("CORPUS_TEST_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(base, "corpus-test")
	}
	return dir, os.MkdirAll(dir, 0o755)
}
