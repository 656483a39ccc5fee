// Package doctor checks a store as a host or a publisher sees it: its clock, credentials, rights, signatures and their
// expiry. It changes nothing. Package onhost checks the host itself.
package doctor

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Status is the result of one check.
type Status string

// The results of a check.
const (
	OK      Status = "ok"
	Warning Status = "warning" // works today, and needs attention
	Failed  Status = "failed"  // runs fail, or soon will
	Skipped Status = "skipped" // could not be checked, or does not apply
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"` // such as clock; the names are in docs/troubleshooting.md
	Status Status `json:"status"`
	Text   string `json:"text"`
	Cure   string `json:"cure,omitempty"` // what to do, with its code; only for warnings and failures
	Code   string `json:"code,omitempty"`
}

// Findings holds the results of all checks, in the order in which they are shown.
type Findings struct {
	List []Finding `json:"findings"`
}

// OK adds that a check passed.
func (f *Findings) OK(check, format string, args ...any) { f.add(check, OK, "", format, args...) }

// Skip adds that a check does not apply, and why.
func (f *Findings) Skip(check, format string, args ...any) {
	f.add(check, Skipped, "", format, args...)
}

// Warn adds something about a topic that works today and needs attention.
func (f *Findings) Warn(check string, topic diag.Topic, cure, format string, args ...any) {
	f.add(check, Warning, topic.Coded(cure), format, args...)
}

// Fail adds something about a topic that makes runs fail.
func (f *Findings) Fail(check string, topic diag.Topic, cure, format string, args ...any) {
	f.add(check, Failed, topic.Coded(cure), format, args...)
}

// Error adds a failure about a topic. Its cure is the hint of the error, or else the given one.
func (f *Findings) Error(check string, topic diag.Topic, err error, cure string) {
	if hint := diag.HintOf(err); hint != "" {
		cure = hint
	}
	f.Fail(check, topic, cure, "%v", err)
}

func (f *Findings) add(check string, status Status, cure, format string, args ...any) {
	f.List = append(f.List, Finding{Check: check, Status: status, Text: redact.URLs(fmt.Sprintf(format, args...)),
		Cure: redact.URLs(cure), Code: diag.CodesOf(cure)})
}

// count returns the number of findings with a status.
func (f *Findings) count(status Status) (n int) {
	for _, one := range f.List {
		if one.Status == status {
			n++
		}
	}
	return n
}

// Err returns an error with the exit code 3 if a check failed. Warnings are not errors.
func (f *Findings) Err() error {
	if n := f.count(Failed); n > 0 {
		return exit.WithCode(exit.Failed, errors.New(diag.Count(n, "check")+" failed"))
	}
	return nil
}

// Write prints one line for each finding, with the hint of a warning or a failure below it, and a summary.
func (f *Findings) Write(w io.Writer) error {
	lines := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, one := range f.List {
		fmt.Fprintf(lines, "%s\t%s\t%s\n", one.Status, one.Check, one.Text)
		if one.Cure != "" {
			fmt.Fprintf(lines, "\t\thint: %s\n", one.Cure)
		}
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s: %d ok, %s, %d failed, %d skipped\n", diag.Count(len(f.List), "check"), f.count(OK),
		diag.Count(f.count(Warning), "warning"), f.count(Failed), f.count(Skipped))
	return err
}
