package packaging

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// encoded returns what frames make of a content that is written in pieces.
func encoded(t *testing.T, content []byte, piece int) []byte {
	t.Helper()
	var b bytes.Buffer
	f, err := newFrames(&b)
	if err != nil {
		t.Fatal(err)
	}
	for len(content) > 0 {
		n, err := f.Write(content[:min(piece, len(content))])
		if err != nil {
			t.Fatal(err)
		}
		content = content[n:]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFramesAreTheSameOnAllMachines checks that the bytes depend neither on the number of processors nor on how they
// are written, that each frame has its size in its header, and that any zstd program reads the frames as one stream.
func TestFramesAreTheSameOnAllMachines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	random := rand.New(rand.NewPCG(1, 2))
	content := bytes.Repeat([]byte("a line of a file that repeats\n"), 2*frameSize/30+20_000)
	for at := 0; at < len(content); at += 1000 + random.IntN(9000) {
		content[at] = byte(random.Uint32())
	}
	var want []byte
	for processors, piece := range map[int]int{1: 1 << 20, 2: len(content), 9: 100_003} {
		runtime.GOMAXPROCS(processors)
		got := encoded(t, content, piece)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("with %d processors and pieces of %d bytes the frames differ", processors, piece)
		}
	}
	var h zstd.Header
	if err := h.Decode(want); err != nil || !h.HasFCS || h.FrameContentSize != frameSize || !h.HasCheckSum {
		t.Errorf("the first frame begins with %+v, %v", h, err)
	}
	old, err := zstd.NewReader(bytes.NewReader(want)) // as agents read that know no frames
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if got, err := io.ReadAll(old); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read as a stream: %d bytes, %v", len(got), err)
	}
	if _, err := exec.LookPath("zstd"); err == nil {
		cmd := exec.Command("zstd", "-d", "-c")
		cmd.Stdin = bytes.NewReader(want)
		if got, err := cmd.Output(); err != nil || !bytes.Equal(got, content) {
			t.Errorf("read by zstd: %d bytes, %v", len(got), err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("the disk is full")

// TestFramesEndAfterAnError checks that a failed write ends a pack early, with that error and without goroutines left.
func TestFramesEndAfterAnError(t *testing.T) {
	before := runtime.NumGoroutine()
	f, err := newFrames(full{})
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for i := 0; err == nil && i < 1000; i++ {
		_, err = f.Write(zeros)
	}
	if closed := f.Close(); !errors.Is(err, errFull) || !errors.Is(closed, errFull) {
		t.Errorf("error is %v, and %v at the end", err, closed)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
		}
	}
}
