package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// screen collects what a command writes while it runs.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(data)
}

// openScreen opens a terminal for a command, and a screen that has what the command writes to it.
func openScreen(t *testing.T) (shown *screen, command *os.File) {
	t.Helper()
	person, command := openTerminal(t)
	shown = &screen{}
	go func() {
		_, _ = io.Copy(shown, person) // ends when the terminal is closed
	}()
	return shown, command
}

// until waits until the command has written a text, and discards the output up to it.
func (s *screen) until(t *testing.T, says string) {
	t.Helper()
	seen := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		seen = s.text.String()
		at := strings.Index(seen, says)
		if at >= 0 {
			s.text.Next(at + len(says))
		}
		s.mu.Unlock()
		if at >= 0 {
			return
		}
	}
	t.Fatalf("the command does not print %q, but %q", says, seen)
}

// watching returns a workstation for `corpus fleet --watch` of a store with one host, which has version 1.0.
func watching(t *testing.T) *shell {
	t.Helper()
	s := newStore(t)
	s.artifact("one", "1")
	s.artifact("two", "2")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	var published struct {
		Digest string `json:"digest"`
	}
	s.json("point myapp testing 1.0", &published)
	key, _, err := hostkey.Open(s.path("host.key"))
	if err != nil {
		t.Fatal(err)
	}
	short := strings.TrimPrefix(published.Digest, "sha256:")[:8]
	record := hostrecord.Record{Project: "myapp", Host: "myapp-testing-useast1-1",
		Run:      time.Now().UTC().Format("20060102T150405.000000"),
		Sequence: 1, Outcome: "converged", Service: &hostrecord.Place{Channel: "testing", Version: "1.0", Digest: short}}
	object, err := record.Key(key)
	if err != nil {
		t.Fatal(err)
	}
	file := s.path(filepath.Join("store", object))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a command with other streams, and returns a function that ends it and returns its exit code.
func (s *shell) start(line string, streams cli.IO) (end func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	streams.Getenv = func(k string) string { return s.env[k] }
	ended := make(chan int, 1)
	go func() { ended <- Main(ctx, strings.Fields(line), streams) }()
	s.t.Cleanup(cancel)
	return func() int {
		cancel()
		return <-ended
	}
}

// TestAWatchShowsTheFleetAgain checks that a watch shows a promotion, continues after an outage of the store, and ends
// at a signal.
func TestAWatchShowsTheFleetAgain(t *testing.T) {
	s := watching(t)
	var out, errs screen
	end := s.start("fleet --watch --every 1s --retry 1ms", cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
	out.until(t, "1.0 *")
	out.until(t, "CHANNEL")
	s.expect(0, "publish myapp 1.1 @two.tar.zst --channel testing", "")
	out.until(t, "1.1 *")
	if err := os.Rename(s.path("store"), s.path("away")); err != nil {
		t.Fatal(err)
	}
	errs.until(t, ": ")
	if err := os.Rename(s.path("away"), s.path("store")); err != nil {
		t.Fatal(err)
	}
	out.until(t, "CHANNEL")
	if code := end(); code != 0 {
		t.Errorf("an interrupted watch ends with exit code %d", code)
	}
	s.expect(0, "point myapp testing 1.0", "")
	s.expect(0, "fleet --behind", "no host is behind")
	s.expect(0, "fleet --silent 1h", "no host has been silent for 1h0m0s")
	s.expect(2, "fleet --watch --every 1ms", "--every is less than a second")
	s.env["CORPUS_STORE"] = "file://" + s.path("nowhere")
	if s.run("fleet --watch --retry 1ms") == 0 {
		t.Errorf("a watch without a store succeeds: %s%s", s.out, s.err)
	}
}

// TestAWatchDrawsInPlaceOnATerminal checks that the screen is cleared before each view on a terminal, but not in a
// file.
func TestAWatchDrawsInPlaceOnATerminal(t *testing.T) {
	const clear = "\x1b[H\x1b[2J"
	s := watching(t)
	shown, command := openScreen(t)
	end := s.start("fleet --watch --every 1s", cli.IO{In: command, Out: command, Err: command})
	for range 2 {
		shown.until(t, clear)
		shown.until(t, "1.0 *")
	}
	end()
	if s.run("fleet"); strings.Contains(s.out, clear) {
		t.Errorf("a watch into a file clears a screen: %q", s.out)
	}
}
