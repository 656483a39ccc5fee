package walk_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// TestGivenFilesDoNotBlock checks that a path that a person gives is read or refused without blocking.
func TestGivenFilesDoNotBlock(t *testing.T) {
	dir := t.TempDir()
	file, fifo, socket, endless := filepath.Join(dir, "f"), filepath.Join(dir, "fifo"), filepath.Join(dir, "s"),
		filepath.Join(dir, "endless")
	listener, err := net.Listen("unix", socket)
	do(t, errors.Join(err, os.WriteFile(file, []byte("x"), 0o600), unix.Mkfifo(fifo, 0o600),
		os.WriteFile(endless, nil, 0o600), os.Truncate(endless, 1<<40)))
	defer listener.Close()
	r, w, err := os.Pipe()
	do(t, err)
	defer r.Close()
	_, err = w.WriteString("piped")
	do(t, errors.Join(err, w.Close()))
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{file, "x", true}, {"/dev/null", "", true}, {fmt.Sprintf("/dev/fd/%d", r.Fd()), "piped", true},
		{fifo, "", false}, {socket, "", false}, {dir, "", false}, {"/dev/zero", "", false}, {endless, "", false},
		{filepath.Join(dir, "absent"), "", false}, {"/dev/fd/9999", "", false},
	} {
		type read struct {
			data []byte
			err  error
		}
		done := make(chan read, 1)
		go func() {
			data, err := walk.ReadGiven(c.name)
			done <- read{data, err}
		}()
		select {
		case is := <-done:
			if (is.err == nil) != c.ok || c.ok && string(is.data) != c.text {
				t.Errorf("%s: %d bytes, %v", c.name, len(is.data), is.err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("reading %s waits", c.name)
		}
	}
}
