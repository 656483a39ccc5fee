package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// TestBuildAndPublishShowProgress checks that a person at a terminal sees how far a large artifact is, and that the
// line is gone at the end; that it is not there with --json, and that a file gets no bar.
func TestBuildAndPublishShowProgress(t *testing.T) {
	s := newStore(t)
	random, data := rand.New(rand.NewPCG(1, 2)), make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	if err := os.Mkdir(s.path("tree"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("tree/data", string(data))
	const wipe = "\r\x1b[K"
	for _, c := range []struct{ line, bar, says string }{
		{"build " + s.path("tree") + " -o " + s.path("app.tar.zst"), "packing app.tar.zst ", "built"},
		{"publish app 1 " + s.path("app.tar.zst") + " --channel testing", "uploading app ", "published"},
	} {
		shown := s.atATerminal(t, c.line, c.says)
		_, after, found := strings.Cut(shown, wipe+c.bar)
		if !found || !strings.Contains(after, " of 3.0 MiB (") || !strings.Contains(after, wipe+c.says) {
			t.Errorf("%s shows %q on a terminal", c.line, shown)
		}
	}
	quiet := s.atATerminal(t, "build "+s.path("tree")+" --json -o "+s.path("b.tar.zst"), "size")
	if strings.Contains(quiet, wipe) {
		t.Errorf("with --json a terminal shows %q", quiet)
	}
	if s.run("build @tree -o @c.tar.zst"); strings.Contains(s.err, "packing") {
		t.Errorf("a build without a terminal prints %q", s.err)
	}
}

// atATerminal runs a command that succeeds and returns what a terminal shows until says is there.
func (s *shell) atATerminal(t *testing.T, line, says string) string {
	t.Helper()
	shown, command := openScreen(t)
	ended := make(chan int, 1)
	go func() {
		ended <- Main(t.Context(), strings.Fields(line), cli.IO{In: strings.NewReader(""), Out: command, Err: command,
			Getenv: func(k string) string { return s.env[k] }})
	}()
	if code := <-ended; code != 0 {
		t.Errorf("corpus %s: exit code %d", line, code)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		shown.mu.Lock()
		text := shown.text.String()
		shown.mu.Unlock()
		if strings.Contains(text, says) || time.Now().After(end) {
			return text
		}
	}
}
