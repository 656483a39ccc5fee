package python_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// needPython skips a test on a host without /usr/bin/python3.
func needPython(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("this host has no /usr/bin/python3 to run modules with")
	}
}

// fakeSession answers the requests of a worker as a session does.
type fakeSession struct {
	texts map[string]string // the modules, by kind/name
	world *value.Map
	call  func(ctx context.Context, name string, args []any) (any, error)
	asked int // questions of the worker
	logs  []string
}

func (a *fakeSession) World() *value.Map {
	if a.world == nil {
		return value.NewMap()
	}
	return a.world
}

func (a *fakeSession) Ask(ctx context.Context, q *value.Map) (any, error) {
	a.asked++
	name, _ := q.Value("name").(string)
	switch q.Value("ask") {
	case "source":
		key := value.Str(q.Value("kind")) + "/" + name
		return value.NewMap("path", "/tree/"+key+".py", "text", a.texts[key]), nil
	case "log":
		a.logs = append(a.logs, value.Str(q.Value("level"))+": "+value.Str(q.Value("message")))
		return nil, nil
	case "has":
		return a.call != nil && strings.HasPrefix(name, "go."), nil
	case "salt":
		return a.call(ctx, name, q.Value("args").(*value.List).Items)
	}
	return nil, fmt.Errorf("unexpected request %s", value.Repr(q))
}

// start creates a worker with the modules of a session.
func start(t testing.TB, a *fakeSession) *python.Worker {
	t.Helper()
	return startOn(t, nil, a)
}

// startOn is like start for a host that keeps data between runs.
func startOn(t testing.TB, kept host.Kept, a *fakeSession) *python.Worker {
	t.Helper()
	needPython(t)
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.Kept = kept
	modules := value.NewMap()
	for key := range a.texts {
		kind, name, _ := strings.Cut(key, "/")
		if !modules.Has(kind) {
			modules.Set(kind, value.NewMap())
		}
		modules.Value(kind).(*value.Map).Set(name, "/tree/"+key+".py")
	}
	w := python.New(python.Options{Host: h, Asks: a, Modules: modules, Opts: value.NewMap("id", "here", "test", false)})
	t.Cleanup(w.Close)
	return w
}

func call(w *python.Worker, ctx context.Context, name string, args ...any) (any, error) {
	return w.Do(ctx, "call", value.NewMap("kind", "modules", "name", name, "args", value.NewList(args...), "kwargs",
		value.NewMap()))
}

// TestForkedProcessSendsNoResults calls modules whose child processes return, raise, exit and send requests. The calls
// after them must get their own results.
func TestForkedProcessSendsNoResults(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/forks": `
import os

def returns():
    return "parent" if os.fork() else "child"

def raises():
    if os.fork() == 0:
        os.execv("/no/such/program", ["program"])
    return "parent"

def asks():
    if os.fork() == 0:
        return __salt__["go.x"]()
    return "parent"

def leaves():
    if os.fork() == 0:
        raise SystemExit(0)
    return "parent"

def ident(x):
    return x
`}, call: func(context.Context, string, []any) (any, error) { return "asked", nil }})
	for round := range 3 {
		for _, name := range []string{"returns", "raises", "asks", "leaves"} {
			if got, err := call(w, t.Context(), "forks."+name); err != nil || got != "parent" {
				t.Fatalf("%s returns %v, %v", name, got, err)
			}
			want := fmt.Sprint(name, round)
			if got, err := call(w, t.Context(), "forks.ident", want); err != nil || got != want {
				t.Fatalf("the call after %s returns %v, %v, want %s", name, got, err, want)
			}
		}
	}
}

const own = `
import logging, datetime, collections
log = logging.getLogger(__name__)

def echo(*args, **kwargs):
    return args[0] if args else kwargs

def kinds():
    return {"t": (1, 2), "b": b"\xff", "o": collections.OrderedDict([("a", 1)]), "f": 1.0, "i": 2 ** 70, "s": {3},
            "d": datetime.date(2024, 1, 31), "g": (x for x in "ab"), "n": None, 5: {"$x": 1}, "x": float("inf"), "u": "\udcff"}

def kind_of(v):
    return type(v).__name__

def fail():
    raise ValueError("no luck")

def leave():
    import sys
    sys.exit(3)

def die():
    import os
    print("last words", flush=True)
    os._exit(7)

def hang():
    import time
    while True:
        time.sleep(1)

def noise():
    import sys, os
    print("x" * 200000)
    os.system("echo more; echo again >&2")
    sys.stdout.flush()
    return True

def big(n):
    return "x" * n

def ask(*args):
    return __salt__["go.add"](*args)

def nested(n):
    return 0 if n == 0 else 1 + __salt__["go.nested"](n - 1)

def threads():
    import threading
    got = []
    def run(i):
        got.append(__salt__["go.add"](i, 1))
    all = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    [x.start() for x in all]
    [x.join() for x in all]
    return sorted(got)

def fork():
    import os
    pid = os.fork()
    if pid == 0:
        try:
            __salt__["go.add"](1, 1)
        except RuntimeError:
            return 1
    return os.waitpid(pid, 0)[1] >> 8

def where():
    import os
    mask = os.umask(0)
    os.umask(mask)
    return [os.getcwd(), mask, sorted(k for k in os.environ if k != "CORPUS_PROCESS_TREE"), __opts__["id"], __grains__.get("os"),
            __pillar__.get("a")]
`

func TestValuesKeepTheirTypes(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/own": own}})
	v, err := call(w, t.Context(), "own.kinds")
	if err != nil {
		t.Fatal(err)
	}
	m := v.(*value.Map)
	for key, want := range map[string]string{"t": "(1, 2)", "b": `b'\xff'`, "f": "1.0", "i": "1180591620717411303424",
		"s": "{3}", "d": "datetime.date(2024, 1, 31)", "n": "None", "x": "inf"} {
		if got := value.Repr(m.Value(key)); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if o := m.Value("o").(*value.Map); o.IsPlain() || !m.IsPlain() {
		t.Errorf("plain: %t and %t", o.IsPlain(), m.IsPlain())
	}
	for key, want := range map[string]string{"t": "tuple", "b": "bytes", "o": "OrderedDict", "f": "float", "s": "set",
		"d": "date", "g": "generator", "u": "str", "n": "NoneType"} {
		got, err := call(w, t.Context(), "own.kind_of", m.Value(key))
		if err != nil || got != want {
			t.Errorf("%s comes back as %v, want %s: %v", key, got, want, err)
		}
	}
	if w.Started() != 1 {
		t.Errorf("%d processes were started", w.Started())
	}
}

func TestPythonErrorsHavePositions(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/own": own, "modules/broken": "import nowhere_at_all\n",
		"modules/wrong": "def f(:\n", "modules/no": "def __virtual__():\n    return False, 'no disk'\n"}})
	for _, c := range []struct {
		name  string
		args  []any
		words []string
	}{
		{"own.fail", nil, []string{"ValueError: no luck", `File "/tree/modules/own.py", line`, "in fail"}},
		{"own.leave", nil, []string{"SystemExit: the module called sys.exit(3)"}},
		{"own.die", nil, []string{"python3 ended during the call (exit status 7); it printed last: last words"}},
		{"own.big", []any{100 << 20}, []string{"ValueError", "at most 67108864"}},
		{"own.echo2", nil, []string{"'own.echo2' is not available"}},
		{"broken.f", nil, []string{"'broken' __virtual__ returned False: No module named 'nowhere_at_all'"}},
		{"wrong.f", nil, []string{"'wrong' does not load: SyntaxError", "/tree/modules/wrong.py"}},
		{"no.f", nil, []string{"'no' __virtual__ returned False: no disk"}},
		{"own.fail", []any{1}, []string{"TypeError: fail() takes 0 positional arguments"}},
	} {
		_, err := call(w, t.Context(), c.name, c.args...)
		for _, word := range c.words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error is %v, want %q", c.name, err, word)
			}
		}
		if v, err := call(w, t.Context(), "own.echo", "on"); err != nil || v != "on" {
			t.Errorf("after %s: %v, %v", c.name, v, err)
		}
	}
}

// TestAHangEndsWithItsContext cancels the context of a call after its function begins to hang.
func TestAHangEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	a := &fakeSession{texts: map[string]string{"modules/own": own + `
def hangs():
    __salt__["go.hangs"]()
    hang()
`}, call: func(context.Context, string, []any) (any, error) {
		time.AfterFunc(50*time.Millisecond, func() { cancel(context.DeadlineExceeded) })
		return nil, nil
	}}
	w := start(t, a)
	_, err := call(w, ctx, "own.hangs")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "python3 was ended: context "+
		"deadline exceeded (/tree/modules/own.py:") || !strings.Contains(err.Error(), "in hangs") {
		t.Errorf("the error is %v, want one with the function that hangs", err)
	}
	if v, err := call(w, t.Context(), "own.echo", 1); err != nil || v != 1 {
		t.Errorf("the next call: %v, %v", v, err)
	}
}

func TestPythonAndAgentCallEachOther(t *testing.T) {
	a := &fakeSession{texts: map[string]string{"modules/own": own}}
	w := start(t, a)
	a.call = func(ctx context.Context, name string, args []any) (any, error) {
		switch name {
		case "go.add":
			return args[0].(int) + args[1].(int), nil
		case "go.nested":
			return call(w, ctx, "own.nested", args...)
		}
		return nil, errors.New("no such thing")
	}
	for _, c := range []struct {
		name string
		args []any
		want string
	}{
		{"own.ask", []any{1, 2}, "3"}, {"own.nested", []any{20}, "20"}, {"own.threads", nil, "[1, 2, 3, 4, 5, 6, 7, 8]"},
		{"own.fork", nil, "1"}, {"own.noise", nil, "True"},
	} {
		v, err := call(w, t.Context(), c.name, c.args...)
		if got := value.Repr(v); err != nil || got != c.want {
			t.Errorf("%s gives %s, want %s: %v", c.name, got, c.want, err)
		}
	}
	if w.Started() != 1 {
		t.Errorf("%d processes were started", w.Started())
	}
}

func TestModulesGetAFixedEnvironment(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	a := &fakeSession{texts: map[string]string{"modules/own": own},
		world: value.NewMap("grains", value.NewMap("os", "Debian"), "pillar", value.NewMap("a", 1))}
	w := start(t, a)
	v, err := call(w, t.Context(), "own.where")
	if want := "['/', 18, ['HOME', 'LANG', 'LC_ALL', 'PATH'], 'here', 'Debian', 1]"; err != nil || value.Repr(v) != want {
		t.Errorf("a module sees %s, want %s: %v", value.Repr(v), want, err)
	}
	a.world.Value("grains").(*value.Map).Set("os", "Ubuntu")
	a.world.Set("pillar", value.NewMap("a", 2))
	v, err = call(w, t.Context(), "own.where")
	if want := "'here', 'Ubuntu', 2]"; err != nil || !strings.HasSuffix(value.Repr(v), want) {
		t.Errorf("a module sees %s, want %s: %v", value.Repr(v), want, err)
	}
}

// TestTheWorkerIsKilledAtEveryMessage kills the worker before each message of a call with nested requests.
func TestTheWorkerIsKilledAtEveryMessage(t *testing.T) {
	const kill = "\ndef kill():\n    import os\n    os.kill(os.getpid(), 9)\n"
	a := &fakeSession{texts: map[string]string{"modules/own": own + kill}}
	w := start(t, a)
	for at := range 4 {
		n := 0
		a.call = func(ctx context.Context, name string, args []any) (any, error) {
			if n++; n > at {
				_, err := call(w, ctx, "own.kill")
				return nil, err
			}
			return call(w, ctx, "own.nested", args...)
		}
		_, err := call(w, t.Context(), "own.nested", 10)
		if err == nil || !strings.Contains(err.Error(), "python3") {
			t.Errorf("killed at request %d: %v", at, err)
		}
		if _, is := errors.AsType[*python.Killed](err); !is && at == 0 {
			t.Errorf("killed at request %d: %v is no fault of the host", at, err)
		}
		if v, err := call(w, t.Context(), "own.echo", at); err != nil || v != at {
			t.Errorf("after request %d: %v, %v", at, v, err)
		}
	}
}

func TestCloseEndsAllProcesses(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/own": own + `
def stay():
    import subprocess, threading, time
    threading.Thread(target=time.sleep, args=(600,)).start()
    return subprocess.Popen(["sleep", "600"]).pid
`}})
	pid, err := call(w, t.Context(), "own.stay")
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	for range 500 {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a process that a module started is still running")
}

func BenchmarkFirstCall(b *testing.B) {
	needPython(b)
	b.Run("python3 -I -c pass", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/usr/bin/python3", "-I", "-c", "pass").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, kept := range map[string]host.Kept{"worker": nil, "worker with bytecode of the run before": python.Keeps{}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w := startOn(b, kept, &fakeSession{texts: map[string]string{"modules/own": own}})
				if _, err := call(w, b.Context(), "own.echo", 1); err != nil {
					b.Fatal(err)
				}
				w.Close()
			}
		})
	}
}

func BenchmarkFurtherCall(b *testing.B) {
	w := start(b, &fakeSession{texts: map[string]string{"modules/own": own},
		world: value.NewMap("grains", value.NewMap("os", "Debian"))})
	for b.Loop() {
		if _, err := call(w, b.Context(), "own.echo", 1); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFurtherCallsAskNothing counts the questions of the worker: one for the text of the module, and none in further
// calls, which are a message in each direction, in the same process.
func TestFurtherCallsAskNothing(t *testing.T) {
	a := &fakeSession{texts: map[string]string{"modules/own": own},
		world: value.NewMap("grains", value.NewMap("os", "Debian"))}
	w := start(t, a)
	for range 50 {
		if _, err := call(w, t.Context(), "own.echo", 1); err != nil {
			t.Fatal(err)
		}
	}
	if a.asked != 1 || w.Started() != 1 {
		t.Errorf("50 calls led to %d questions and %d processes, want one of each", a.asked, w.Started())
	}
}

// TestEveryModuleOfThePackageSaltCanBeImported imports each module in a new process.
func TestEveryModuleOfThePackageSaltCanBeImported(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/alone": `
import importlib, os, pickle, sys

def names():
    library = [f for f in sys.meta_path if hasattr(f, "library")][0].library
    return sorted(n[:-3].replace("/", ".").replace(".__init__", "") for n in library if n.endswith(".py"))

def check(name):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            importlib.import_module(name)
            os._exit(0)
        except BaseException as e:
            os.write(write, ("%s: %s" % (type(e).__name__, e)).encode())
            os._exit(1)
    os.close(write)
    text = os.read(read, 4096).decode()
    os.close(read)
    os.waitpid(pid, 0)
    return text
`}})
	names, err := call(w, t.Context(), "alone.names")
	if err != nil || names.(*value.List).Len() < 50 {
		t.Fatalf("the package has %v: %v", value.Repr(names), err)
	}
	for _, name := range names.(*value.List).Items {
		if text, err := call(w, t.Context(), "alone.check", name); err != nil || text != "" {
			t.Errorf("%s cannot be imported: %v %v", name, text, err)
		}
	}
}

func TestMissingSaltModuleHasHint(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{
		"modules/client": "import salt.client\nfrom salt.runner import RunnerClient\ndef fine():\n    return 1\n" +
			"def use():\n    return salt.client.LocalClient()\ndef run():\n    return RunnerClient({})\n",
		"modules/other": "import salt.transport.zeromq\ndef f():\n    return 1\n",
	}})
	if v, err := call(w, t.Context(), "client.fine"); err != nil || v != 1 {
		t.Errorf("a module that imports salt.client: %v, %v", v, err)
	}
	for name, want := range map[string]string{
		"client.use": "salt.client.LocalClient is not part of the agent",
		"client.run": "salt.runner.RunnerClient is not part", "other.f": "salt.transport is not part of the agent",
	} {
		if _, err := call(w, t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", name, err, want)
		}
	}
}

// TestObjectsReachAnotherProcess passes objects that one process made to another one that numbers its own objects, as a
// run does with grains: values are equal there, and of other objects a stand-in prints alike.
func TestObjectsReachAnotherProcess(t *testing.T) {
	modules := map[string]string{"modules/m": `
import datetime
class Own:
    def __repr__(self):
        return "<own>"
def make():
    return [{1, 2}, datetime.date(2024, 1, 2), Own(), frozenset([3])]
def same(a, b, c, d):
    return [a == {1, 2}, b == datetime.date(2024, 1, 2), repr(c), 3 in d]
`}
	first, second := start(t, &fakeSession{texts: modules}), start(t, &fakeSession{texts: modules})
	if _, err := call(second, t.Context(), "m.make"); err != nil {
		t.Fatal(err)
	}
	made, err := call(first, t.Context(), "m.make")
	if err != nil {
		t.Fatal(err)
	}
	got, err := call(second, t.Context(), "m.same", made.(*value.List).Items...)
	if want := "[True, True, '<own>', True]"; err != nil || value.Repr(got) != want {
		t.Errorf("the other process has %v, want %s: %v", got, want, err)
	}
}

// FuzzFrames checks that a message that can be read can be written, and that the written message reads the same.
func FuzzFrames(f *testing.F) {
	for _, text := range []string{`{"done":1}`, `{"$tuple":[1,{"$bytes":"AA=="}]}`, `{"$items":[[1,2],[[3],4]]}`,
		`{"$o":{"a":{"$float":"inf"}}}`,
		`{"$object":[1,"set","{1}","{1}",true,[1],"",false]}`, `{"$object":[1]}`,
		`{"$text":"gICA"}`, `{"$oitems":[["$a",null]]}`,
		`[[[[]]]]`} {
		f.Add(append([]byte{0, 0, 0, byte(len(text))}, text...))
	}
	f.Add([]byte{255, 255, 255, 255})
	f.Add([]byte{0, 0, 0, 9, '{'})
	f.Fuzz(func(t *testing.T, data []byte) {
		message, err := python.ReadFrame(bytes.NewReader(data))
		if err != nil {
			return
		}
		v, err := python.Decode(message)
		if err != nil {
			return
		}
		again, err := python.Encode(v)
		if err != nil {
			return // nested more deeply than Encode allows
		}
		if _, is := v.(json.Marshaler); is || bytes.Contains(again, []byte("$object")) {
			return // a reference to an object in Python
		}
		back, err := python.Decode(again)
		if err != nil || value.Repr(back) != value.Repr(v) {
			t.Errorf("%q reads as %s, and written again as %s: %v", message, value.Repr(v), value.Repr(back), err)
		}
	})
}

// TestCallsImportLittle checks that a first call imports none of the modules that take longest to import.
func TestCallsImportLittle(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/own": `
import sys

def loaded(given=1, *rest, named=2, **more):
    slow = ("json", "re", "enum", "inspect", "signal", "traceback", "typing")
    return " ".join(name for name in slow if name in sys.modules)
`}})
	listed, err := w.Do(t.Context(), "list", value.NewMap("kind", "modules", "module", "own"))
	want := "[['given', 'optional', 1, False], ['rest', 'rest', None, False], ['named', 'optional', 2, True], " +
		"['more', 'keywords', None, False]]"
	one, _ := listed.(*value.Map).Value("own.loaded").(*value.Map)
	if got := value.Repr(one.Value("signature")); err != nil || got != want {
		t.Errorf("the parameters are %s, %v, want %s", got, err, want)
	}
	if got, err := call(w, t.Context(), "own.loaded"); err != nil || got != "" {
		t.Errorf("a call imports %v, %v", got, err)
	}
}

// TestTableOfFunctionsIsALazyLoader asks for the class of __salt__, as modules do that accept a dict as well.
func TestTableOfFunctionsIsALazyLoader(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/own": "import salt.loader\n" +
		"def f():\n    return isinstance(__salt__, salt.loader.LazyLoader), hasattr(salt.loader, 'nothing')\n"}})
	got, err := call(w, t.Context(), "own.f")
	if err != nil || value.Repr(got) != "(True, False)" {
		t.Errorf("got %s, %v", value.Repr(got), err)
	}
}

// TestMessagesThatCannotBeFormattedAreKept logs messages whose arguments do not fit them.
func TestMessagesThatCannotBeFormattedAreKept(t *testing.T) {
	a := &fakeSession{texts: map[string]string{"modules/own": `
import logging

class Odd:
    def __str__(self):
        raise ValueError("never")
    __repr__ = __str__

def f():
    log = logging.getLogger(__name__)
    log.error("bad fmt %d", "x")
    log.warning("odd %s", Odd())
    log.error(Odd())
    log.error("good %s", "x")
`}}
	if _, err := call(start(t, a), t.Context(), "own.f"); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(a.logs, "\n")
	for _, want := range []string{"error: bad fmt %d (its arguments ('x',) do not fit: TypeError: %d format",
		"warning: odd %s (its arguments, whose repr raises ValueError, do not fit: ValueError: never)",
		"error: a message of the class Odd, whose text cannot be read: ValueError: never", "error: good x"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
	}
}

// TestProcessesOfModulesFork starts processes in each way of multiprocessing. They have the functions of the tree.
func TestProcessesOfModulesFork(t *testing.T) {
	w := start(t, &fakeSession{texts: map[string]string{"modules/own": `
import multiprocessing

def child(queue):
    queue.put(__opts__["id"])

def f(method):
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    p = context.Process(target=child, args=(queue,))
    p.start()
    p.join()
    return queue.get() if p.exitcode == 0 else p.exitcode
`}})
	for _, method := range []any{"fork", "spawn", "forkserver", nil} {
		if got, err := call(w, t.Context(), "own.f", method); err != nil || got != "here" {
			t.Errorf("%v: %v, %v", method, got, err)
		}
	}
}
