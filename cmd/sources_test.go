package cmd_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// single returns a command with the built agent that runs a state with a source from a server below a separate root.
func single(t *testing.T, function, source string) (cmd *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	root := t.TempDir()
	cmd = exec.Command(filepath.Join(bin(t), "corpus-agent"), "--root", root, "call", "--local", "state.single", function,
		"name=/srv/x", "source="+source, "skip_verify=True", "enforce_toplevel=False")
	if function == "file.managed" {
		cmd.Args = cmd.Args[:len(cmd.Args)-1]
	}
	cmd.Env = append(os.Environ(), "CORPUS_FETCH_RETRY=1s", "CORPUS_CONVERGE_STOP_TIMEOUT=1s",
		"CORPUS_METADATA_ENABLED=false")
	output = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = output, output
	return cmd, output
}

// TestSourcesAreRetriedAsLongAsTheStoreIs checks that requests to a failing server are repeated for fetch.retry, and no
// longer.
func TestSourcesAreRetriedAsLongAsTheStoreIs(t *testing.T) {
	for _, function := range []string{"file.managed", "archive.extracted"} {
		var requests atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		t.Cleanup(server.Close)
		cmd, output := single(t, function, server.URL+"/x.tar")
		began := time.Now()
		err := cmd.Run()
		if took := time.Since(began); err == nil || took > time.Minute || requests.Load() < 2 ||
			!strings.Contains(output.String(), "gave up after") {
			t.Errorf("%s ended after %v and %d requests: %v\n%s", function, took, requests.Load(), err, output)
		}
	}
}

// TestAnArchiveThatStallsEndsWithTheRun sends half of an archive, and then ends the run.
func TestAnArchiveThatStallsEndsWithTheRun(t *testing.T) {
	stalled, over := make(chan bool, 1), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
		_ = http.NewResponseController(w).Flush()
		select {
		case stalled <- true:
		default:
		}
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() { close(over); server.Close() })
	cmd, output := single(t, "archive.extracted", server.URL+"/x.tar")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-stalled
	began := time.Now()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
	if took := time.Since(began); took > time.Minute || cmd.ProcessState.ExitCode() == 0 {
		t.Errorf("the run ended %v after SIGTERM, with %v:\n%s", took, cmd.ProcessState, output)
	}
}
