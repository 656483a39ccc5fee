package python

import (
	"bytes"
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestBytecodeOfTheWorkerIsKept starts the worker without bytecode, with that of the start before, and with bytecode
// that is damaged, cut short, or of another Python or worker. Each start works, and leaves the right bytecode.
func TestBytecodeOfTheWorkerIsKept(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this host has no /usr/bin/python3 to run modules with")
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kept := Keeps{}
	h.Kept = kept
	starts := func(name string) []byte {
		t.Helper()
		w := New(Options{Host: h, Asks: &noting{}, Opts: value.NewMap(), Modules: value.NewMap()})
		defer w.Close()
		if v, err := w.Do(t.Context(), "ping", value.NewMap("value", name)); err != nil || v != name {
			t.Fatalf("%s: the worker answers %v, %v", name, v, err)
		}
		return kept[keptProgram]
	}
	first := starts("nothing is kept")
	if len(first) == 0 {
		t.Fatal("nothing is kept")
	}
	at := len(first) / 2
	for name, data := range map[string][]byte{
		"kept":       bytes.Clone(first),
		"cut short":  first[:at],
		"damaged":    append(append(bytes.Clone(first[:at]), first[at]^1), first[at+1:]...),
		"of another": append([]byte{first[0] ^ 1}, first[1:]...),
		"empty":      {},
	} {
		kept[keptProgram] = data
		if !bytes.Equal(starts(name), first) {
			t.Errorf("%s: other bytecode is kept", name)
		}
	}
	code, ok := unwrapped(first[:32], first)
	if !ok {
		t.Fatal("the bytecode is not complete")
	}
	// Bytecode with the right key is what runs.
	kept[keptProgram] = wrapped(first[:32], code[:len(code)/2])
	w := New(Options{Host: h, Asks: &noting{}, Opts: value.NewMap(), Modules: value.NewMap()})
	defer w.Close()
	if _, err := w.Do(t.Context(), "ping", value.NewMap()); err == nil {
		t.Error("the text is compiled although there is bytecode")
	}
	if again := starts("after bytecode that cannot be run"); !bytes.Equal(again, first) {
		t.Error("bytecode that cannot be run is kept")
	}
}
