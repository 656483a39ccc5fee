// Package python runs a tree's own Salt modules: execution and state modules, grains, renderers and whatever else
// Salt's loader would load from directories such as _modules.
//
// They run in a worker, one python3 process for a run of the engine, which is started when the first module is needed.
// The worker has its own loader, and a package salt with the names that such modules import; both are embedded in this
// program, so nothing of Salt has to be on the host. The agent and the worker exchange messages over two pipes: JSON,
// with tags for values that JSON does not have, and before each message its length. The agent sends one question at a
// time. Before the worker answers, it may send questions of its own, for example to call the agent's functions through
// __salt__. To answer these, the agent may ask the worker again, so questions nest like calls.
//
// If a worker ends, does not answer in time, or sends a malformed message, the question returns an error. The worker is
// killed with all processes that it started, and the next question starts another one.
package python

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/dialog"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// The program carries the files in Python compressed, at a quarter of their size.
//
//go:generate go test -count=1 -run ^TestPacked$ . -args -pack

//go:embed worker.gz
var workerText string

//go:embed library.gz
var libraryText string // a JSON object of the files of the package salt, by name

// unpacked decompresses a file that `go generate` made. The file is part of the program, so errors are impossible.
func unpacked(data string) []byte {
	r, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(r)
	return text
}

// Asker answers the questions of the worker: for functions, states, and sources of modules.
type Asker interface {
	// Ask returns the answer to a question, whose key "ask" holds its name.
	Ask(ctx context.Context, question *value.Map) (any, error)
	// World returns the variables that modules see beside their arguments, such as grains and pillar, by their names. A
	// mapping that is the same as before, or has the same content, is not sent again.
	World() *value.Map
}

// Options are the options of a worker.
type Options struct {
	Host *host.Host
	Asks Asker
	Opts *value.Map // Salt's options, without grains and pillar
	// Modules are the files of the tree's modules, by kind and by the name of the file without its ending.
	Modules *value.Map
	// Packages are the tree's directories of Python packages. Python itself finds there what Modules does not have, such
	// as libraries in C, if root alone can change it.
	Packages []string
	RealSalt bool // modules import a salt package that the host has
}

// Worker is a python3 process that runs modules. It is safe for concurrent use: questions wait for each other. While
// the agent answers a question of the worker, it may ask another one, which has to be done before the answer is sent.
type Worker struct {
	options Options

	mu    sync.Mutex
	free  *sync.Cond // signals that the turn is free, or that a question is done
	taken bool       // a goroutine has the turn to use the pipes and the fields below
	depth int        // questions that are not done

	talk    *dialog.Dialog
	sent    map[string][]byte // the variables of the world that the worker has, as they were encoded
	pillar  any               // the pillar that was sent last
	started int
	closed  atomic.Bool
	loading
}

// New returns a worker. It starts no process yet.
func New(o Options) *Worker {
	w := &Worker{options: o, loading: loading{broken: value.NewMap().Plain(), most: importTime, each: grainTime}}
	w.free = sync.NewCond(&w.mu)
	return w
}

// Close ends the process, if there is one.
func (w *Worker) Close() {
	w.take(-1)
	defer w.release(0)
	w.closed.Store(true)
	if w.talk != nil {
		w.talk.Close()
		w.talk = nil
	}
}

// take waits until the turn is free and the number of open questions is depth, and takes the turn. If depth is -1, the
// number does not matter.
func (w *Worker) take(depth int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.taken || depth >= 0 && w.depth != depth {
		w.free.Wait()
	}
	w.taken = true
}

// begun takes the turn for one more question, and returns the number of open questions, including this one.
func (w *Worker) begun() int {
	w.take(-1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.depth++
	return w.depth
}

// release gives the turn up, and adds more to the number of open questions.
func (w *Worker) release(more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = false
	w.depth += more
	w.free.Broadcast()
}

// keyPillar is the name of the pillar in the world.
const keyPillar = "pillar"

// Do sends a question to the worker and returns its answer. For an exception that a module raised, the error is a
// *Raised.
func (w *Worker) Do(ctx context.Context, what string, arguments *value.Map) (any, error) {
	depth := w.begun()
	defer w.release(-1)
	question := value.NewMap("do", what)
	question.Update(arguments)
	for {
		v, err := w.once(ctx, depth, question.Clone())
		// A file that cannot be loaded costs itself alone. What only looks at modules is done again without it.
		if _, unloaded := errors.AsType[*unloaded](err); !unloaded || ctx.Err() != nil || !looks(what) {
			return v, err
		}
	}
}

// looks reports whether a question changes nothing, so that it can be asked again.
func looks(what string) bool {
	return slices.Contains([]string{"list", "why", "watches", "grains"}, what)
}

// once sends a question, and starts the process before if there is none.
func (w *Worker) once(ctx context.Context, depth int, question *value.Map) (any, error) {
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	talk := w.talk
	stop := context.AfterFunc(ctx, func() { interrupt(talk) })
	v, err := w.converse(ctx, talk, depth, question.Plain())
	if (!stop() || w.late()) && err == nil { // interrupt kills the worker, although it did answer
		w.talk = nil
		w.forget()
	}
	var raised *Raised
	if err == nil || errors.As(err, &raised) {
		return v, err
	}
	return nil, w.lost(ctx, talk, question, err)
}

// lost returns the error for a worker that did not answer, and kills the worker unless the question was never sent.
func (w *Worker) lost(ctx context.Context, talk *dialog.Dialog, question *value.Map, err error) error {
	var sized *tooLarge
	if errors.As(err, &sized) { // nothing was sent
		return err
	}
	if w.talk == talk {
		w.talk = nil
	}
	file, subject := w.file(), subjectOf(question)
	var last load
	if file != "" {
		subject, last = "loading "+file, w.stack[len(w.stack)-1]
		if last.function != "" {
			subject = file + ": " + last.name + "." + last.function
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		talk.Kill()
		return diag.Timeout.Hint(&Overdue{subject: cmp.Or(subject, "python3"), cause: cause, printed: talk.Printed()},
			"see what the module waits for")
	}
	if subject != "" {
		subject += ": "
	}
	if w.late() {
		talk.Kill()
		if file == "" { // it was loaded meanwhile, so no file is at fault
			w.forget()
			return fmt.Errorf("%sloading a file before it: loading it took more than %s%s", subject, w.most,
				lastLines(talk.Printed()))
		}
		return w.unload(last.late() + lastLines(talk.Printed()))
	}
	if hungUp(err) {
		err = ended(endedInCall, talk.Ending(), talk.Printed())
		talk.Kill()
		if _, killed := errors.AsType[*Killed](err); file != "" && (!killed || last.function != "") {
			return w.unload(last.ended() + strings.TrimPrefix(err.Error(), endedInCall))
		}
		return fmt.Errorf("%s%w", subject, err)
	}
	talk.Kill()
	return fmt.Errorf("%s%w%s", subject, err, lastLines(talk.Printed()))
}

// subjectOf returns what a question is about, for its error. Callers name
// functions, sources of pillar and renderers themselves.
func subjectOf(question *value.Map) string {
	if slices.Contains([]any{"call", "pillar", "render", "program"}, question.Value("do")) {
		return ""
	}
	if name, ok := question.Value("name").(string); ok {
		return name
	}
	return "the list of modules"
}

const endedInCall = "python3 ended during the call"

// hungUp reports whether an error of the pipes says that the process closed them.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE)
}

// shownLines is the maximum number of lines of the output that a message has.
const shownLines = 8

// lastLines returns the last lines that a process printed, for the end of a message. Templates show only the first line
// of a message: of a traceback, that has the place in the tree's code at which the main thread was, and otherwise the
// last line.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, `  File "<`) })
	trace := 0
	for i, line := range lines {
		if strings.Contains(line, traceStart) {
			trace = i + 1
		}
	}
	if trace > 0 && trace < len(lines) {
		lines = lines[trace:]
		lines = lines[:min(len(lines), shownLines)]
		if place := placeIn(lines[0]); place != "" {
			return " (" + place + ")\n" + strings.Join(lines, "\n")
		}
	}
	lines = lines[max(0, len(lines)-shownLines):]
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "" {
		return ""
	}
	last := len(lines) - 1
	said := "; it printed last: " + strings.TrimSpace(lines[last])
	if last == 0 {
		return said
	}
	return said + "\nbefore that:\n" + strings.Join(lines[:last], "\n")
}

// placeIn returns the place that a line of a traceback names, as errors show it, or "".
func placeIn(line string) string {
	_, line, ok := strings.Cut(line, `File "`)
	file, line, ok2 := strings.Cut(line, `", line `)
	number, function, ok3 := strings.Cut(line, " in ")
	if !ok || !ok2 || !ok3 {
		return ""
	}
	return file + ":" + number + ", in " + function
}

// begin returns the first message: the package salt, the options, and the modules of the tree.
func (w *Worker) begin() ([]byte, error) {
	data, err := encode(value.NewMap("opts", plainOpts(w.options.Opts), "modules", w.options.Modules, "broken",
		w.broken, "real", w.options.RealSalt, "packages", value.Strings(w.options.Packages...)).Plain())
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`{"library":`), unpacked(libraryText), []byte(","), data[1:]), nil
}

func plainOpts(opts *value.Map) *value.Map {
	m := value.NewMap()
	m.Update(opts)
	return m.Plain()
}

// tooLarge is the error for a question that was not sent.
type tooLarge struct{ error }

func (t *tooLarge) Unwrap() error { return t.error }

func (w *Worker) send(talk *dialog.Dialog, message *value.Map) error {
	data, err := encode(message.Plain())
	if err == nil && len(data) > maxFrame {
		err = fmt.Errorf("the arguments have %d bytes, and at most %d are passed on", len(data), maxFrame)
	}
	if err != nil {
		return &tooLarge{err}
	}
	return writeFrame(talk, data)
}

// converse sends a question, and answers the questions of the worker until the worker has answered it.
func (w *Worker) converse(ctx context.Context, talk *dialog.Dialog, depth int, question *value.Map) (any, error) {
	world, err := w.news()
	if err != nil {
		return nil, &tooLarge{err}
	}
	if world.Len() > 0 {
		question.Set("world", world)
	}
	if err := w.send(talk, question); err != nil {
		return nil, err
	}
	for {
		message, err := w.receive(talk)
		switch {
		case err != nil:
			return nil, err
		case message.Has("done"):
			return message.Value("done"), nil
		case message.Has("raised"):
			return nil, newRaised(message.Value("raised"))
		case message.Has("loading"):
			w.began(message.Value("loading"), talk)
		case message.Has("loaded"):
			w.done()
		case message.Has("ask"):
			if err := w.answer(ctx, talk, depth, message); err != nil {
				return nil, err
			}
		default:
			return nil, errors.New("python3 sent a message of an unknown kind")
		}
	}
}

// news returns the variables of the world that have changed since the worker last received them.
func (w *Worker) news() (*value.Map, error) {
	news := value.NewMap()
	for name, v := range w.options.Asks.World().All() {
		if name == keyPillar && w.pillar == v {
			continue // large, and compiled as a whole
		}
		data, err := encode(v)
		if err != nil {
			return nil, fmt.Errorf("passing on %s: %w", name, err)
		}
		if key := value.Str(name); !bytes.Equal(w.sent[key], data) {
			w.sent[key] = data
			news.Set(key, v)
		}
		if name == keyPillar {
			w.pillar = v
		}
	}
	return news, nil
}

func (w *Worker) receive(talk *dialog.Dialog) (*value.Map, error) {
	data, err := readFrame(talk)
	if err != nil {
		return nil, err
	}
	v, err := decode(data, w)
	if err != nil {
		return nil, fmt.Errorf("python3 sent what is no message: %w", err)
	}
	message, ok := v.(*value.Map)
	if !ok {
		return nil, errors.New("python3 sent what is no message")
	}
	return message, nil
}

// answer answers a question of the worker.
func (w *Worker) answer(ctx context.Context, talk *dialog.Dialog, depth int, question *value.Map) error {
	w.release(0)
	v, err := w.options.Asks.Ask(ctx, question)
	w.take(depth)
	if w.talk != talk {
		within := errors.New("python3 was ended by a call within this one")
		if err != nil {
			return fmt.Errorf("%w: %w", within, err)
		}
		return within
	}
	if err == nil {
		err = w.send(talk, value.NewMap("answer", v))
		var sized *tooLarge
		if !errors.As(err, &sized) {
			return err
		}
	}
	text := err.Error()
	if hint := diag.HintOf(err); hint != "" {
		text += " (hint: " + hint + ")"
	}
	return w.send(talk, value.NewMap("fails", text, "class", className(err)))
}

// className returns Python's class for an error of the agent.
func className(err error) string {
	var raised *Raised
	if errors.As(err, &raised) {
		return raised.Class
	}
	return cmp.Or(value.ClassOf(err), "CommandExecutionError")
}
