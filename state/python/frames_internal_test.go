package python

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host/dialog"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// requests returns requests that a worker answers.
func requests(t *testing.T) (all [][]byte) {
	t.Helper()
	for _, v := range []*value.Map{
		value.NewMap("do", "ping", "value", value.NewMap("a", value.Tuple{1, 2.5, nil}, "b", []byte{0, 255})),
		value.NewMap("do", "call", "kind", "modules", "name", "none.f", "args", value.NewList(1), "kwargs", value.NewMap()),
		value.NewMap("do", "list", "kind", "modules", "world", value.NewMap("grains", value.NewMap("os", "Debian"))),
		value.NewMap("do", "program", "data", "def run():\n    return {}\n", "path", "/x", "sls", "x", "env", "base", "vars",
			value.NewMap()),
	} {
		data, err := encode(v.Plain())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

// damaged returns a stream of requests. The last one has a changed byte, is truncated, or has a wrong length.
func damaged(r *rand.Rand, all [][]byte) []byte {
	var b bytes.Buffer
	for n := r.IntN(3); n >= 0; n-- {
		_ = writeFrame(&b, all[r.IntN(len(all))]) // into memory
	}
	last := bytes.Clone(all[r.IntN(len(all))])
	length := uint32(len(last))
	switch r.IntN(3) {
	case 0:
		last[r.IntN(len(last))] = byte(r.IntN(256))
	case 1:
		last = last[:r.IntN(len(last))]
	case 2:
		length = r.Uint32()
	}
	return append(binary.BigEndian.AppendUint32(b.Bytes(), length), last...)
}

// TestTheWorkerEndsAfterDamagedFrames sends damaged frames, from a fixed seed. A worker must write only complete
// messages, and end when its pipe is closed.
func TestTheWorkerEndsAfterDamagedFrames(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this host has no /usr/bin/python3")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 6 {
		stream := damaged(r, requests(t))
		talk, err := dialog.Start(exec.Command("/usr/bin/python3", pythonOptions()...))
		if err != nil {
			t.Fatal(err)
		}
		w := New(Options{Opts: value.NewMap(), Modules: value.NewMap()})
		if err := w.introduce(t.Context(), talk, time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := talk.Write(stream); err != nil {
			t.Logf("the worker ended before it read the whole stream: %v", err)
		}
		read := make(chan error, 1)
		go func() { read <- messages(talk) }()
		if err := talk.HangUp(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-read:
			if !errors.Is(err, io.EOF) {
				t.Errorf("after %q the worker writes %v", stream, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("after %q the worker does not end", stream)
		}
		talk.Close()
	}
}

// messages reads messages until the end of a stream, which is io.EOF.
func messages(from io.Reader) error {
	for {
		data, err := readFrame(from)
		if err != nil {
			return err
		}
		if _, err := decode(data, nil); err != nil {
			return err
		}
	}
}
