package builder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/builder"
)

// TestMain also starts this program as another process that opens a base system.
func TestMain(m *testing.M) {
	cache := os.Getenv("CORPUS_TEST_BASES")
	if cache == "" {
		os.Exit(m.Run())
	}
	_, err := builder.OpenBase(context.Background(), builder.Opening{
		System: "debian/bookworm", Cache: cache, Work: os.Getenv("CORPUS_TEST_WORK"), Log: os.Stderr,
		Waiting: func(text string) { fmt.Println(text) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// debootstrap puts a fake debootstrap on PATH. It makes a tree with a file, reports its start, and reads a word from
// the fifo leave before it makes another file, so that the test does not depend on time.
func debootstrap(t *testing.T) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes base systems")
	}
	dir = t.TempDir()
	for _, fifo := range []string{"began", "leave"} {
		if out, err := exec.Command("mkfifo", filepath.Join(dir, fifo)).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	text := strings.ReplaceAll(`#!/bin/sh
# A child process does the work, as in the real debootstrap.
(
	mkdir -p "$4" && echo begun >"$4/first" && echo x >>DIR/calls && echo $$ >DIR/began
	read word <DIR/leave && echo "$word" >"$4/last" && [ "$word" != fail ]
)
exit $?
`, "DIR", dir)
	if err := os.WriteFile(filepath.Join(dir, "debootstrap"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

func calls(t *testing.T, dir string) int {
	t.Helper()
	return strings.Count(contentOf(t, filepath.Join(dir, "calls")), "x")
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// opened opens the system and returns a channel with the result.
func opened(t *testing.T, ctx context.Context, cache string, waits chan<- string) <-chan error {
	t.Helper()
	work, done := t.TempDir(), make(chan error, 1)
	go func() {
		b, err := builder.OpenBase(ctx, builder.Opening{
			System: "debian/bookworm", Cache: cache, Work: work, Log: &bytes.Buffer{},
			Waiting: func(text string) { waits <- text },
		})
		if err == nil {
			var last []byte
			if last, err = os.ReadFile(filepath.Join(b.Root, "last")); err == nil && string(last) != "whole\n" {
				err = fmt.Errorf("the base has %q", last)
			}
		}
		done <- err
	}()
	return done
}

func TestSecondBuildReusesBase(t *testing.T) {
	dir, cache, waits := debootstrap(t), filepath.Join(t.TempDir(), "bases"), make(chan string, 2)
	first := opened(t, t.Context(), cache, waits)
	contentOf(t, filepath.Join(dir, "began"))
	second := opened(t, t.Context(), cache, waits)
	want := fmt.Sprintf("waiting for the base system debian/bookworm, which process %d is making in %s",
		os.Getpid(), cache)
	if got := <-waits; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
	write(t, filepath.Join(dir, "leave"), "whole")
	for _, done := range []<-chan error{first, second} {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := calls(t, dir); n != 1 {
		t.Errorf("the system was made %d times", n)
	}
	if err := <-opened(t, t.Context(), cache, waits); err != nil || len(waits) != 0 {
		t.Errorf("a third build: %v, with %d more messages", err, len(waits))
	}
}

func TestABaseFromAnotherMirrorIsAnother(t *testing.T) {
	dir, cache, waits := debootstrap(t), t.TempDir(), make(chan string, 1)
	for n, mirror := range []string{"", "http://deb.debian.org/debian", "https://snapshot.example.com/20260101T000000Z",
		"https://snapshot.example.com/20260101T000000Z"} {
		t.Setenv("CORPUS_MIRROR", mirror)
		done := opened(t, t.Context(), cache, waits)
		if n == 0 || n == 2 {
			contentOf(t, filepath.Join(dir, "began"))
			write(t, filepath.Join(dir, "leave"), "whole")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := calls(t, dir); n != 2 {
		t.Errorf("%d systems were made, want one for each mirror", n)
	}
}

func TestABuildThatWaitsForTheBaseCanBeStopped(t *testing.T) {
	dir, cache, waits := debootstrap(t), t.TempDir(), make(chan string, 1)
	first := opened(t, t.Context(), cache, waits)
	contentOf(t, filepath.Join(dir, "began"))
	ctx, stop := context.WithCancel(t.Context())
	second := opened(t, ctx, cache, waits)
	<-waits
	stop()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the build ends with %v", err)
	}
	write(t, filepath.Join(dir, "leave"), "whole")
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestWhenTheFirstBuildFailsTheSecondMakesTheBase(t *testing.T) {
	dir, cache, waits := debootstrap(t), t.TempDir(), make(chan string, 1)
	first := opened(t, t.Context(), cache, waits)
	contentOf(t, filepath.Join(dir, "began"))
	second := opened(t, t.Context(), cache, waits)
	<-waits
	write(t, filepath.Join(dir, "leave"), "fail")
	if err := <-first; err == nil {
		t.Error("debootstrap failed, but the build succeeded")
	}
	contentOf(t, filepath.Join(dir, "began"))
	write(t, filepath.Join(dir, "leave"), "whole")
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// TestKilledBuildIsRestarted kills a process during a build. Its child processes must end with it: they would continue
// to write into the tree of the next process.
func TestKilledBuildIsRestarted(t *testing.T) {
	dir, cache, waits := debootstrap(t), t.TempDir(), make(chan string, 1)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed := exec.Command(self)
	killed.Env = append(os.Environ(), "CORPUS_TEST_BASES="+cache, "CORPUS_TEST_WORK="+t.TempDir())
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	contentOf(t, filepath.Join(dir, "began"))
	waiting := opened(t, t.Context(), cache, waits)
	if got := <-waits; !strings.Contains(got, fmt.Sprintf("process %d is making", killed.Process.Pid)) {
		t.Errorf("the message is %q", got)
	}
	write(t, filepath.Join(cache, "debian-bookworm.making/stray"), "of the killed one")
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // the process was killed
	contentOf(t, filepath.Join(dir, "began"))
	// One program reads the word: a program of the killed process that still ran might read it.
	write(t, filepath.Join(dir, "leave"), "whole")
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	if n := calls(t, dir); n != 2 {
		t.Errorf("the system was made %d times, want once by each", n)
	}
	if _, err := os.Stat(filepath.Join(cache, "debian-bookworm/stray")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the system has files of the killed build: %v", err)
	}
	if _, err := os.Stat(filepath.Join(cache, "debian-bookworm.making")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a tree is still being made: %v", err)
	}
}
