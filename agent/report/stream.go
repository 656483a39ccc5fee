package report

import (
	"encoding/json"
	"io"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hook"
)

// Stream prints the events of a run while they happen, for a program that shows them: one JSON object per line.
type Stream struct {
	Out io.Writer
	Now func() time.Time // the clock; nil means time.Now

	fetches map[string]time.Time // time of the last event of each artifact
}

// streamed is one event. Every event has the first two keys; What says which others it has.
type streamed struct {
	What string    `json:"event"` // begin, stage, fetching, state, hook, unit, probe, note or end
	At   time.Time `json:"time"`

	Run     string `json:"run,omitempty"`     // of begin and end
	Command string `json:"command,omitempty"` // of begin
	Host    string `json:"host,omitempty"`    // of begin; "" if the run is still to find it

	Stage  string `json:"stage,omitempty"`  // of stage and hook
	Detail string `json:"detail,omitempty"` // of stage: its subject, such as a release

	Artifact string `json:"artifact,omitempty"` // of fetching
	Done     int64  `json:"done,omitempty"`     // of fetching, in bytes
	Total    int64  `json:"total,omitempty"`    // of fetching, in bytes

	State  *Step        `json:"state,omitempty"`  // of state, as in the report
	Result *hook.Result `json:"result,omitempty"` // of hook, unit and probe
	Text   string       `json:"text,omitempty"`   // of note

	Outcome Outcome `json:"outcome,omitempty"` // of end
	Exit    *int    `json:"exit_code,omitempty"`
	Error   string  `json:"error,omitempty"`
	Hint    string  `json:"hint,omitempty"`
	Code    string  `json:"code,omitempty"`
}

// print prints an event. A reader that has gone away does not end the run.
func (s *Stream) print(e streamed) {
	e.At = s.now().UTC()
	if line, err := json.Marshal(e); err == nil {
		_, _ = s.Out.Write(append(line, '\n'))
	}
}

func (s *Stream) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Begin implements Sink.
func (s *Stream) Begin(r *Report) {
	s.print(streamed{What: "begin", Run: r.ID, Command: r.Command, Host: r.Host})
}

// Stage implements Sink.
func (s *Stream) Stage(name, detail string) {
	s.print(streamed{What: "stage", Stage: name, Detail: detail})
}

// streamEvery is the shortest time between two events of a fetch, but for the last one.
const streamEvery = time.Second

// Fetching implements Sink.
func (s *Stream) Fetching(artifact string, done, total int64) {
	now := s.now()
	if last, found := s.fetches[artifact]; found && done < total && now.Sub(last) < streamEvery {
		return
	}
	if s.fetches == nil {
		s.fetches = map[string]time.Time{}
	}
	s.fetches[artifact] = now
	s.print(streamed{What: "fetching", Artifact: artifact, Done: done, Total: total})
}

// Step implements Sink.
func (s *Stream) Step(step Step) { s.print(streamed{What: "state", State: &step}) }

// Hook implements Sink.
func (s *Stream) Hook(stage string, r hook.Result) {
	switch stage {
	case UnitsStage:
		s.print(streamed{What: "unit", Result: &r})
	case HealthStage:
		s.print(streamed{What: "probe", Result: &r})
	default:
		s.print(streamed{What: "hook", Stage: stage, Result: &r})
	}
}

// Note implements Sink.
func (s *Stream) Note(text string) { s.print(streamed{What: "note", Text: text}) }

// End implements Sink.
func (s *Stream) End(r *Report) {
	s.print(streamed{What: "end", Run: r.ID, Outcome: r.Outcome, Exit: &r.Exit, Error: r.Error, Hint: r.Hint,
		Code: r.Code})
}
