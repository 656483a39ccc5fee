package python

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/dialog"
)

// bootstrap reads the worker's program from the pipe and runs it. It first sends which bytecode this Python has. The
// agent answers with the text of the program, or with its bytecode if it has that from an earlier run, because
// compiling the text takes about as long as starting Python. After the text, bootstrap sends the bytecode.
const bootstrap = `import io,marshal,posix,sys
f=io.open(3,"rb")
def s(b):
 b=len(b).to_bytes(4,"big")+b
 while b:b=b[posix.write(4,b):]
s(b"%s %x %r %s"%(sys.implementation.name.encode(),sys.hexversion,` +
	`getattr(sys.modules.get("_frozen_importlib_external"),"MAGIC_NUMBER",b""),sys.flags.optimize and b"O" or b""))
b=f.read(int.from_bytes(f.read(4),"big"))
if b[:1]==b"c":b=marshal.loads(b[1:])
else:
 b=compile(b[1:],"<corpus-agent>","exec")
 s(marshal.dumps(b))
exec(b)`

// The first byte of the worker's program says what follows.
const (
	asText     = 't'
	asBytecode = 'c'
)

// keptProgram is the name of the bytecode of the worker's program among what the host keeps between runs.
const keptProgram = "python-worker"

// sendProgram sends the worker's program to the bootstrap.
func (w *Worker) sendProgram(talk *dialog.Dialog) error {
	python, err := readFrame(talk)
	if err != nil {
		return err
	}
	kept, key := w.kept(), programKey(python)
	if code, ok := unwrapped(key, kept.Read(keptProgram)); ok {
		return writeFrame(talk, append([]byte{asBytecode}, code...))
	}
	if err := writeFrame(talk, append([]byte{asText}, unpacked(workerText)...)); err != nil {
		return err
	}
	code, err := readFrame(talk)
	if err != nil {
		return err
	}
	kept.Write(keptProgram, wrapped(key, code))
	return nil
}

// kept returns what the host keeps between runs.
func (w *Worker) kept() host.Kept {
	if h := w.options.Host; h != nil && h.Kept != nil {
		return h.Kept
	}
	return keepsNothing{}
}

// keepsNothing is host.Kept for a host that keeps nothing between runs.
type keepsNothing struct{}

func (keepsNothing) Read(string) []byte   { return nil }
func (keepsNothing) Write(string, []byte) {}

// programKey identifies the bytecode of the worker's program for a Python.
func programKey(python []byte) []byte {
	key := sha256.Sum256(fmt.Appendf(nil, "%q %s", python, workerText))
	return key[:]
}

// wrapped returns the content of the file for bytecode. The key comes first, and then a digest, because Python crashes
// on damaged bytecode.
func wrapped(key, code []byte) []byte {
	digest := sha256.Sum256(code)
	return slices.Concat(key, digest[:], code)
}

// unwrapped returns the bytecode in the content of a file, if it has the key and is complete.
func unwrapped(key, data []byte) (code []byte, ok bool) {
	if len(data) <= len(key)+sha256.Size || !bytes.Equal(data[:len(key)], key) {
		return nil, false
	}
	digest, code := data[len(key):len(key)+sha256.Size], data[len(key)+sha256.Size:]
	is := sha256.Sum256(code)
	return code, bytes.Equal(is[:], digest)
}
