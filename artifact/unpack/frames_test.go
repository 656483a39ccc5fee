package unpack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// content returns text that compresses in part.
func content(size int, seed uint64) []byte {
	random, text := rand.New(rand.NewPCG(seed, 1)), make([]byte, 0, size+16)
	for len(text) < size {
		text = append(text, "the quick brown fox"[:random.IntN(19)]...)
		text = binary.LittleEndian.AppendUint16(text, uint16(random.Uint32()))
	}
	return text[:size]
}

// inFrames encodes content in frames of a size.
func inFrames(t testing.TB, content []byte, size int, options ...zstd.EOption) (all []byte) {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	for len(content) > 0 {
		n := min(size, len(content))
		all = encoder.EncodeAll(content[:n], all)
		content = content[n:]
	}
	return all
}

// asStream encodes content as one frame that does not say how large it is.
func asStream(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	encoder, err := zstd.NewWriter(&b)
	if err == nil {
		_, err = encoder.Write(content)
	}
	if err == nil {
		err = encoder.Flush()
	}
	if err := errors.Join(err, encoder.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decoded reads a stream to its end with frames of at most largest bytes.
func decoded(t testing.TB, r io.Reader, largest int) ([]byte, error) {
	t.Helper()
	f, err := newFrames(r, 3, largest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(f)
	return got, errors.Join(err, f.Close())
}

// streamed decodes a stream as agents before frames did.
func streamed(t testing.TB, data []byte) ([]byte, error) {
	t.Helper()
	d, err := newStream(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(d)
	return got, errors.Join(err, d.Close())
}

// FuzzFrames compares the decoder of frames with the decoder of streams: both return the same bytes, or both fail, and
// then the bytes before the error are the beginning of what the other returned.
func FuzzFrames(f *testing.F) {
	text := content(3000, 1)
	many, stream := inFrames(f, text, 700), asStream(f, text)
	for _, seed := range [][]byte{nil, many, stream, append(bytes.Clone(many), stream...), append(bytes.Clone(stream),
		many...), many[:len(many)-2], append(bytes.Clone(many), "trailing"...), append(bytes.Clone(many), 0x28),
		append([]byte("\x50\x2a\x4d\x18\x02\x00\x00\x00ab"), many...), inFrames(f, text, 100, zstd.WithEncoderCRC(false)),
		inFrames(f, make([]byte, 2500), 2000), inFrames(f, text, 2999), []byte("\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"),
		[]byte("\x28\xb5\x2f\xfd\x20\xff\x07\x00\x00"), []byte("\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\xff\x01")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, wantErr := streamed(t, data)
		got, err := decoded(t, bytes.NewReader(data), 2<<10)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("frames: %d bytes and %v; stream: %d bytes and %v", len(got), err, len(want), wantErr)
		}
		if err == nil && !bytes.Equal(got, want) || !bytes.HasPrefix(want, got) && !bytes.HasPrefix(got, want) {
			t.Fatalf("frames: %d bytes, stream: %d bytes, and they differ", len(got), len(want))
		}
	})
}

// TestFramesAreDecodedInOrder reads many frames, in every way in which their bytes can arrive.
func TestFramesAreDecodedInOrder(t *testing.T) {
	text := content(300_000, 2)
	for name, data := range map[string][]byte{
		"small frames": inFrames(t, text, 5000), "large blocks": inFrames(t, text, 200_000), "a stream": asStream(t, text),
		"a stream behind frames": append(inFrames(t, text[:150_000], 5000), asStream(t, text[150_000:])...),
		"zeros":                  inFrames(t, make([]byte, 300_000), 5000),
		"without checksums":      inFrames(t, text, 5000, zstd.WithEncoderCRC(false)),
	} {
		want, err := streamed(t, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []io.Reader{bytes.NewReader(data), iotest.HalfReader(bytes.NewReader(data)),
			iotest.DataErrReader(bytes.NewReader(data))} {
			if got, err := decoded(t, r, 250_000); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
			}
		}
	}
}

// TestFramesAreSplit checks that the frames of `corpus build` are decoded concurrently, and others as a stream.
func TestFramesAreSplit(t *testing.T) {
	text := content(300_000, 3)
	for name, c := range map[string]struct {
		data   []byte
		frames int
		rest   bool
	}{
		"small frames": {inFrames(t, text, 100_000), 3, false},
		"larger ones":  {inFrames(t, text, 100_001), 0, true},
		"a stream":     {asStream(t, text), 0, true},
		"damaged":      {inFrames(t, text, 100_000)[:20_000], 0, true},
		"a claim of more than can be": {append([]byte("\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\x7f"),
			make([]byte, 100)...), 0, true},
	} {
		f, err := newFrames(bytes.NewReader(c.data), 9, 100_000)
		if err != nil {
			t.Fatal(err)
		}
		frames, rest := 0, false
		for one := range f.ordered {
			if one.rest != nil {
				rest = true
			} else {
				frames++
			}
		}
		if err := f.Close(); err != nil || frames != c.frames || rest != c.rest {
			t.Errorf("%s: %d frames, and a rest: %v, %v; want %d, %v", name, frames, rest, err, c.frames, c.rest)
		}
	}
}

// TestErrorsOfTheSourceAreReturned checks that an error of the source, such as a refused block, is not replaced by one
// about the frame that it cut.
func TestErrorsOfTheSourceAreReturned(t *testing.T) {
	refused := errors.New("the block at byte 0 has another digest than was signed")
	data := inFrames(t, content(50_000, 4), 10_000)
	for _, at := range []int{0, 3, 12, 5000, len(data) - 1, len(data)} {
		r := io.MultiReader(bytes.NewReader(data[:at]), iotest.ErrReader(refused))
		if _, err := decoded(t, r, 10_000); !errors.Is(err, refused) {
			t.Errorf("after %d bytes: %v, want the error of the source", at, err)
		}
	}
}

// TestClosedFramesLeaveNoGoroutines closes readers at every stage, also while the source waits for bytes.
func TestClosedFramesLeaveNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	text := content(100_000, 5)
	data := inFrames(t, text, 1000)
	damaged := bytes.Clone(data)
	damaged[len(damaged)/2] ^= 0xff
	for _, d := range [][]byte{data, damaged, asStream(t, text), append(bytes.Clone(data), asStream(t, text)...)} {
		for _, read := range []int64{0, 1, 1000, 50_000, 150_000} {
			ctx, stop := context.WithCancel(t.Context())
			waiting := io.MultiReader(bytes.NewReader(d), blocked(ctx.Done()))
			f, err := newFrames(artifact.Awaited(ctx, waiting), 4, 1000)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.CopyN(io.Discard, f, min(read, int64(len(text))))
			stop()
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
		}
	}
}

// blocked is a reader that waits for a channel.
type blocked <-chan struct{}

func (b blocked) Read([]byte) (int, error) {
	<-b
	return 0, errors.New("it ended")
}

// TestOneReaderDecodesConcurrently opens two readers: the second decodes as a stream until the first is closed.
func TestOneReaderDecodesConcurrently(t *testing.T) {
	t.Cleanup(func() func() {
		before := runtime.GOMAXPROCS(2)
		return func() { runtime.GOMAXPROCS(before) }
	}())
	text := content(1000, 1)
	data := inFrames(t, text, 100)
	open := func() (r io.ReadCloser, concurrent bool) {
		r, err := newZstd(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		_, concurrent = r.(onlyFrames)
		return r, concurrent
	}
	first, concurrent := open()
	second, too := open()
	if !concurrent || too {
		t.Errorf("the readers decode concurrently: %v and %v", concurrent, too)
	}
	for _, r := range []io.ReadCloser{second, first} {
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, text) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	third, concurrent := open()
	if !concurrent {
		t.Error("the place of a closed reader is not free")
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}
