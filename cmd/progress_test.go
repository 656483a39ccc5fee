package cmd_test

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: the end of the program, and the screen.
func terminal(t *testing.T) (program, screen *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	number, numberErr := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	sizeErr := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120})
	if err := errors.Join(err, numberErr, sizeErr); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return program, screen
}

// TestProgressOnATerminal fetches slowly and checks the screen: bytes, rate and time left. On a pipe there is no
// progress line.
func TestProgressOnATerminal(t *testing.T) {
	r := newReader(t)
	r.prepare()
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data) // never fails
	if err := os.WriteFile(filepath.Join(r.dir, "next/large"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	r.must("corpus build ./next -o large.tar.zst", "corpus publish myapp 2 large.tar.zst --channel testing",
		"cp -a root fresh")
	program, screen := terminal(t)
	cmd := exec.Command(filepath.Join(bin(t), "corpus-agent"), "deploy")
	cmd.Dir, cmd.Env = r.dir, append(r.env, "CORPUS_STORE="+r.store, "CORPUS_FETCH_RATE=2000000", "TERM=xterm")
	cmd.Stdout, cmd.Stderr = program, program
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()            // the program has inherited the descriptor
	shown, _ := io.ReadAll(screen) // ends with an error when the other end is closed
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	line := regexp.MustCompile(`myapp 2 \d\.\d of 3\.\d MiB \(\d+ %\), \d+\.\d MiB/s, \d+s left`)
	if !line.Match(shown) {
		t.Errorf("no line like %s on the screen:\n%q", line, shown)
	}
	r.must("chmod -R u+w root && rm -r root && cp -a fresh root")
	if out := r.must("CORPUS_FETCH_RATE=2000000 corpus-agent deploy"); regexp.MustCompile(
		"\x1b|of [0-9.]+ MiB").MatchString(out) {
		t.Errorf("on a pipe the output is %q", out)
	}
}
