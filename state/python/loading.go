package python

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host/dialog"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// importTime is the maximum time that a file of the tree takes to be loaded, its __virtual__ and __init__ included.
const importTime = 30 * time.Second

// grainTime is the maximum time that a function of a grain module takes.
const grainTime = 10 * time.Second

// loading records which files the process is loading and which grain functions it runs, and those that no process
// loads or runs any more: they ended one, or took too long. Only the goroutine that has the turn uses it, except for
// overdue.
type loading struct {
	most    time.Duration
	each    time.Duration // for a grain function
	stack   []load
	overdue atomic.Bool
	broken  *value.Map // the reasons, by kind and name
}

type load struct {
	kind, name string
	function   string // the grain function that runs; "" while the file is loaded
	most       time.Duration
	timer      *time.Timer
}

const endedWhileItRan = "python3 ended while it ran"

// ended says what became of a file or function during which python3 ended.
func (l load) ended() string {
	if l.function != "" {
		return endedWhileItRan
	}
	return "python3 ended while it was loaded"
}

// late says that a file or function took too long.
func (l load) late() string {
	if l.function != "" {
		return fmt.Sprintf("it took more than %s", l.most)
	}
	return fmt.Sprintf("loading it took more than %s", l.most)
}

// began records that the process loads a file or runs a grain function. One that takes too long is interrupted.
func (l *loading) began(what any, talk *dialog.Dialog) {
	one := load{most: l.most}
	if list, ok := what.(*value.List); ok && list.Len() >= 2 {
		one.kind, one.name = value.Str(list.Items[0]), value.Str(list.Items[1])
		if list.Len() > 2 {
			one.function, one.most = value.Str(list.Items[2]), l.each
		}
	}
	one.timer = time.AfterFunc(one.most, func() {
		l.overdue.Store(true)
		interrupt(talk)
	})
	l.stack = append(l.stack, one)
}

// done records that the process has loaded the file that it began last.
func (l *loading) done() {
	if n := len(l.stack); n > 0 {
		l.stack[n-1].timer.Stop()
		l.stack = l.stack[:n-1]
	}
}

// late reports whether a file took too long, so that interrupt kills the process, even if the file was loaded
// meanwhile.
func (l *loading) late() bool { return l.overdue.Load() }

// forget drops the files of a process that has ended.
func (l *loading) forget() {
	for len(l.stack) > 0 {
		l.done()
	}
	l.overdue.Store(false)
}

// file returns the path of the file that the process is loading, or "" for none.
func (w *Worker) file() string {
	if len(w.stack) == 0 {
		return ""
	}
	last := w.stack[len(w.stack)-1]
	files, _ := w.options.Modules.Value(last.kind).(*value.Map)
	return value.Str(files.Value(last.name))
}

// showTime is the maximum time that an overdue worker gets to print its traceback. showStep is the interval in which
// its output is read.
const (
	showTime = 2 * time.Second
	showStep = 20 * time.Millisecond
)

// traceStart is a part of the line with which Python's faulthandler begins the traceback of a thread.
const traceStart = "(most recent call first)"

// interrupt ends an overdue worker. SIGUSR1 makes it print its traceback, which is complete once two successive
// readings of the output are equal.
func interrupt(talk *dialog.Dialog) {
	_ = talk.Signal(syscall.SIGUSR1) // it may have ended
	last := ""
	for range showTime / showStep {
		time.Sleep(showStep)
		printed := talk.Printed()
		if printed == last && strings.Contains(printed, traceStart) {
			break
		}
		last = printed
	}
	talk.Kill()
}

// unloaded is the error of a file that is not loaded any more, or of a grain function that is not called any more.
type unloaded struct{ text string }

func (u *unloaded) Error() string { return u.text }

// unload records why the file that the process was loading is not loaded any more, or the function that it was running
// not called any more, and returns that as an error.
func (w *Worker) unload(why string) error {
	last := w.stack[len(w.stack)-1]
	names, ok := w.broken.Value(last.kind).(*value.Map)
	if !ok {
		names = value.NewMap().Plain()
		w.broken.Set(last.kind, names)
	}
	file := w.file()
	w.forget()
	if last.function != "" {
		name := last.name + "." + last.function
		names.Set(name, name+": "+why)
		return &unloaded{file + ": " + name + ": " + why}
	}
	names.Set(last.name, file+": "+why)
	return &unloaded{"loading " + file + ": " + why}
}

// Overdue is the error of a question whose context ended before it was answered.
type Overdue struct {
	subject string
	cause   error
	printed string
}

func (o *Overdue) Error() string {
	return o.subject + " was ended: " + o.cause.Error() + o.LastLines()
}

// Unwrap returns the cause of the context.
func (o *Overdue) Unwrap() error { return o.cause }

// LastLines returns the end of a message: the place where python3 was, and the last lines that it printed.
func (o *Overdue) LastLines() string { return lastLines(o.printed) }
