package exec

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Outcome is the outcome of a step: Salt's True, False and None.
type Outcome int

// The outcomes of a step.
const (
	Failed    Outcome = iota
	Succeeded         // the host has the declared state, with or without a change
	Pending           // in a dry run: it would change something, or only a real run can tell
)

// Value returns the outcome as Salt writes it: True, False or None.
func (o Outcome) Value() any {
	switch o {
	case Succeeded:
		return true
	case Pending:
		return nil
	}
	return false
}

// Result is the result of a step.
type Result struct {
	Step     *compile.Step
	Outcome  Outcome
	Changes  *value.Map
	Comment  string
	Hint     string // what to do about a failure
	Warnings []string
	More     *value.Map // further keys that a state in Python returned
	Skipped  string     // why the step was skipped without an error: it would have changed something outside the root

	// Predicted has the changes that a real run would report, if Outcome is Pending. Changes then has those that Salt's
	// dry run reports, which for some states are fewer.
	Predicted *value.Map
	Unknown   bool // Pending, and only a real run can tell whether and what it changes

	Always bool // it acts at every run, so its changes do not show that the host differed

	RunNum    int // the place in the run, counted as Salt does
	Started   time.Time
	Duration  time.Duration
	NotRun    bool // it did not run, because of its requisites
	SkipWatch bool // a guard kept it from running, so its watch action does not run either
	Parallel  bool
	Remedied  bool // it failed, and an onfail step with onfail_stop: False handled that

	afterMayFail bool // it did not run, since steps failed that may fail, and no others

	redactor *redact.Redactor // for the ID and name of its step; nil for none
	cause    error            // error of a failure; may be nil
	pending  chan *Result     // while it runs in parallel
	never    bool             // the run was cancelled before it began
	batch    []*compile.Step  // the steps for which it tried to act as well
	made     []module.Report  // the changes it made for the first of them

	obstruction *host.Obstruction // see Obstruction
}

// wouldChange reports whether a step changed something, or certainly would.
func (r *Result) wouldChange() bool {
	if r.Outcome == Pending {
		return !r.Unknown && (r.Changes.Len() > 0 || r.Predicted.Len() > 0)
	}
	return r.Changes.Len() > 0
}

// isUnknown reports whether only a real run can tell if a step changes something.
func (r *Result) isUnknown() bool { return r.Outcome == Pending && r.Unknown }

// Fails reports whether the run failed because of this step, or because of a sub state of it.
func (r *Result) Fails() bool { return (r.Outcome == Failed || r.SubFailure() != "") && !r.Remedied }

// MayFail reports whether a failure of the step is none of the whole run: the step has may_fail, or it did not run only
// because such steps failed.
func (r *Result) MayFail() bool { return r.afterMayFail || mayFail(r.Step) }

func mayFail(s *compile.Step) bool { return value.Truth(s.Chunk.Value("may_fail")) }

// KeySubStates is the key of the results of sub states in More. Requisites look only at the result of the step itself,
// as under Salt, but a sub state that failed counts as a failure of the run.
const KeySubStates = "sub_state_run"

// SubFailure returns the name and the comment of the first sub state that failed, without secrets, or "" for none.
func (r *Result) SubFailure() string { return r.failureAmong(r.More.Value(KeySubStates)) }

// failureAmong returns the first failure among the results of sub states, and of theirs.
func (r *Result) failureAmong(results any) string {
	list, _ := results.(*value.List)
	if list == nil {
		return ""
	}
	for _, item := range list.Items {
		sub, _ := item.(*value.Map)
		low, _ := sub.Value("low").(*value.Map)
		if sub.Value("result") == false {
			return r.shown(fmt.Sprintf("its sub state %s.%s %s failed: %s", value.Str(low.Value("state")),
				value.Str(low.Value("fun")), value.Str(low.Value("name")), value.Str(sub.Value("comment"))))
		}
		if failure := r.failureAmong(sub.Value(KeySubStates)); failure != "" {
			return failure
		}
	}
	return ""
}

// Explanation returns the comment. To that of a step of which a sub state failed, it adds this failure.
func (r *Result) Explanation() string {
	failure := r.SubFailure()
	if failure == "" {
		return r.Comment
	}
	return strings.TrimPrefix(r.Comment+"; "+failure, "; ")
}

// FailedBy reports whether the step failed because of an error of this kind, or because of a command that printed the
// text of this error.
func (r *Result) FailedBy(kind error) bool {
	var errno syscall.Errno
	return errors.Is(r.cause, kind) || errors.As(kind, &errno) && r.printed(errno)
}

// printed reports whether the command of the step, if it ran one, printed an error.
func (r *Result) printed(errno syscall.Errno) bool {
	for _, stream := range []string{"stderr", "stdout"} {
		if text, ok := r.Changes.Value(stream).(string); ok && process.Printed(text, errno) {
			return true
		}
	}
	return false
}

// Cause returns the error that made the step fail, or nil if there is none. Its text may contain secrets.
func (r *Result) Cause() error { return r.cause }

// Obstruction returns the object that a user other than root may have put in the way of the step, so that it failed;
// nil if there is none.
func (r *Result) Obstruction() *host.Obstruction { return r.obstruction }

// ID returns the ID of the step without secrets.
func (r *Result) ID() string { return r.shown(r.Step.ID()) }

// Name returns the name of the step without secrets.
func (r *Result) Name() string { return r.shown(r.Step.Name()) }

// shownValue returns a value without secrets. It redacts a string as shown does, and the parts of any other value,
// including numbers.
func (r *Result) shownValue(v any) any {
	if text, ok := v.(string); ok {
		return r.shown(text)
	}
	return r.redactor.Value(v)
}

// ShownTag returns the tag of the step without secrets.
func (r *Result) ShownTag() string { return r.shown(r.Step.Tag()) }

// shown returns a text without secrets and credentials in URLs.
func (r *Result) shown(text string) string { return redact.URLs(r.redactor.Text(text)) }

// Tag returns the tag of the result's step.
func (r *Result) Tag() string { return r.Step.Tag() }

// Map returns the result in Salt's form. The hint of a failure is appended to the comment.
func (r *Result) Map() *value.Map {
	comment := r.Comment
	if r.Hint != "" {
		comment += "\nhint: " + r.Hint
	}
	m := value.NewMap(
		"name", r.shownValue(r.Step.Chunk.Value("name")), "changes", r.Changes, "result", r.Outcome.Value(), "comment",
		comment,
		"__sls__", r.Step.Chunk.Value(compile.KeySLS), "__run_num__", r.RunNum,
		"start_time", r.Started.Format("15:04:05.000000"), "duration", float64(r.Duration.Microseconds())/1000,
		"__id__", r.shownValue(r.Step.Chunk.Value(compile.KeyID)))
	for key, v := range r.More.All() {
		m.Set(value.Str(key), r.redactor.Value(v))
	}
	if r.NotRun {
		m.Set("__state_ran__", false)
	}
	if r.SkipWatch {
		m.Set("skip_watch", true)
	}
	if r.Parallel {
		m.Set("__parallel__", true)
	}
	if r.Skipped != "" {
		m.Set("skipped", r.Skipped)
	}
	if len(r.Warnings) > 0 {
		m.Set("warnings", value.Strings(r.Warnings...))
	}
	return m
}
