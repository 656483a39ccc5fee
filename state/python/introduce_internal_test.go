package python

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/dialog"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestProgramsInThePlaceOfPython starts programs that are not python3. The start must end with an error in time.
func TestProgramsInThePlaceOfPython(t *testing.T) {
	for script, want := range map[string]string{
		"exec sleep 1000":                "it did not read its program within 300ms",
		"exec yes":                       "it did not read its program within 300ms",
		"kill -9 $$":                     "it ended at once (signal: killed)",
		"echo broken python >&2; exit 3": "it ended at once (exit status 3); it printed last: broken python",
		"echo Traceback; echo '  line'; echo broken; exit 3": "it ended at once (exit status 3); it printed last: broken\n" +
			"before that:\nTraceback\n  line",
	} {
		talk, err := dialog.Start(exec.Command("/bin/sh", "-c", script))
		if err != nil {
			t.Fatal(err)
		}
		w := New(Options{Opts: value.NewMap(), Modules: value.NewMap()})
		began := time.Now()
		err = w.introduce(t.Context(), talk, 300*time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", script, err, want)
		}
		if _, is := errors.AsType[*Unstarted](err); !is {
			t.Errorf("the error of %s is no fault of the host: %v", script, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("the start of %s took %s", script, took)
		}
	}
}

// TestPythonThatIsNoProgramHasAHint starts files that the kernel refuses to execute.
func TestPythonThatIsNoProgramHasAHint(t *testing.T) {
	elf := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 200)...)
	for name, data := range map[string][]byte{"empty": nil, "damaged": elf} {
		file := filepath.Join(t.TempDir(), "python3")
		if err := os.WriteFile(file, data, 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := dialog.Start(exec.Command(file))
		err = notStarted(err)
		if _, is := errors.AsType[*Unstarted](err); !is || !strings.Contains(diag.HintOf(err), "reinstall python3") ||
			strings.Contains(err.Error(), "hint") {
			t.Errorf("%s: %v (%s)", name, err, diag.HintOf(err))
		}
	}
}

func TestTheStartOfPythonEndsWithItsContext(t *testing.T) {
	talk, err := dialog.Start(exec.Command("/bin/sh", "-c", "exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	interrupted := errors.New("the run is interrupted")
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { end(interrupted) })
	w := New(Options{Opts: value.NewMap(), Modules: value.NewMap()})
	if err := w.introduce(ctx, talk, time.Hour); !errors.Is(err, interrupted) {
		t.Errorf("the start gives %v", err)
	}
}

var pack = flag.Bool("pack", false, "write the packed files")

// TestPacked checks that the packed files equal the files in Python that people edit.
func TestPacked(t *testing.T) {
	worker, err := os.ReadFile("worker.py")
	if err != nil {
		t.Fatal(err)
	}
	library := map[string]string{}
	err = filepath.WalkDir("lib", func(name string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".py") {
			return err
		}
		text, err := os.ReadFile(name)
		library[strings.TrimPrefix(name, "lib/")] = string(text)
		return err
	})
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := errors.Join(err, e.Encode(library)); err != nil {
		t.Fatal(err)
	}
	if *pack {
		writePacked(t, "library.gz", text.Bytes())
		writePacked(t, "worker.gz", worker)
		return
	}
	if string(unpacked(libraryText)) != text.String() || string(unpacked(workerText)) != string(worker) {
		t.Error("a file in Python was changed: run `go generate ./state/python`")
	}
}

func writePacked(t *testing.T, name string, data []byte) {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(data)
	if err := errors.Join(err, w.Close(), os.WriteFile(name, b.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}
