// Package watchdog notifies systemd that a run makes progress.
//
// The unit of a run is a oneshot: for systemd it is starting for as long as the run takes, and WatchdogSec=, which
// applies to active units, has no effect. The start timeout has. The unit's start timeout is short, and a run that
// makes progress extends it repeatedly (EXTEND_TIMEOUT_USEC= of sd_notify(3)). A process that hangs does not extend it,
// and neither does a run whose current stage has made no progress for longer than its limit; systemd then ends the run,
// with SIGTERM first, and the next run finds that a run was interrupted.
package watchdog

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

const (
	// extension is the time that a run asks for each time. It is longer than a very busy or suspended machine keeps a
	// process from running.
	extension = 5 * time.Minute
	pace      = 30 * time.Second
)

// Options are the settings of a Watchdog.
type Options struct {
	Socket string // where systemd listens: $NOTIFY_SOCKET
	// Patience returns how long a stage may make no progress.
	Patience func(stage string) time.Duration

	Now   func() time.Time // the clock; nil means time.Now
	Ticks <-chan time.Time // when to ask for more time; nil means every half minute
}

// Watchdog is a sink: each event shows that the run makes progress.
type Watchdog struct {
	Options
	conn net.Conn

	mu    sync.Mutex
	stage string
	last  time.Time
	ended chan struct{}
}

// New returns the watchdog of a run; nil if nothing listens on the socket. Programs that the run starts must not
// find the socket in their environment: their messages would be taken for the run's.
func New(o Options) *Watchdog {
	if o.Socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", o.Socket)
	if err != nil {
		return nil // without messages systemd ends the run, which is better than a run without supervision
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Watchdog{Options: o, conn: conn, ended: make(chan struct{})}
}

func (w *Watchdog) say(text string) { _, _ = w.conn.Write([]byte(text)) } // without it systemd ends the run

// Begin implements report.Sink.
func (w *Watchdog) Begin(*report.Report) {
	w.noteProgress()
	ticks := w.Ticks
	if ticks == nil {
		ticks = time.Tick(pace)
	}
	w.extend()
	go w.watch(ticks)
}

func (w *Watchdog) watch(ticks <-chan time.Time) {
	for {
		select {
		case <-w.ended:
			return
		case <-ticks:
			w.extend()
		}
	}
}

// extend asks for more time, unless the run has been silent for too long.
func (w *Watchdog) extend() {
	w.mu.Lock()
	silent, patience := w.Now().Sub(w.last), w.Patience(w.stage)
	w.mu.Unlock()
	if silent <= patience {
		w.say("EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(extension.Microseconds(), 10))
	}
}

func (w *Watchdog) noteProgress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = w.Now()
}

// Stage implements report.Sink. `systemctl status` shows the stage.
func (w *Watchdog) Stage(name, detail string) {
	w.noteProgress()
	w.mu.Lock()
	w.stage = name
	w.mu.Unlock()
	w.say(fmt.Sprintf("STATUS=%s %s", name, detail))
}

// Fetching implements report.Sink.
func (w *Watchdog) Fetching(string, int64, int64) { w.noteProgress() }

// Step implements report.Sink.
func (w *Watchdog) Step(report.Step) { w.noteProgress() }

// Hook implements report.Sink.
func (w *Watchdog) Hook(string, hook.Result) { w.noteProgress() }

// Note implements report.Sink.
func (w *Watchdog) Note(string) { w.noteProgress() }

// End implements report.Sink.
func (w *Watchdog) End(r *report.Report) {
	close(w.ended)
	w.say("STATUS=" + string(r.Outcome))
}
