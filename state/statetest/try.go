package statetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// outcome is the result of a call, as a run would report it.
type outcome struct {
	diff     module.Diff
	result   any // true, false, nil
	changes  *value.Map
	comment  string
	hint     string
	warnings []string
	skipped  bool
}

// trial is a running case.
type trial struct {
	Case
	suite Suite
	host  *Host
	table module.Table
}

// try runs a case: a dry run, a first run and a second run.
func (s Suite) try(t *testing.T, c Case) {
	h := NewHost(t)
	h.ordinary = c.User
	h.Build(t, c.Tree)
	if s.Prepare != nil {
		s.Prepare(t, h)
	}
	if c.Setup != nil {
		c.Setup(t, h)
	}
	r := &trial{Case: c, suite: s, host: h, table: s.Functions(h)}
	for _, b := range c.Before {
		if o := r.run(t, b); o.result != true {
			t.Fatalf("%s, a call before the case, fails: %s", b.Function, o.comment)
		}
	}
	r.dry(t)
	first := r.first(t)
	r.second(t, first)
}

// dry checks twice. Nothing may be written, and both checks must have the same result.
func (r *trial) dry(t *testing.T) {
	before := r.host.Snapshot(t)
	first, again := r.check(t, r.call()), r.check(t, r.call())
	r.unchanged(t, before, "a dry run")
	if !value.Equal(first.changes, again.changes) || first.result != again.result {
		t.Errorf("two checks differ:\n%s\n%s", first, again)
	}
	r.judge(t, "dry run", r.Dry, first)
}

// first makes a real run. Its changes must be those that its check predicted.
func (r *trial) first(t *testing.T) outcome {
	o := r.run(t, r.call())
	if o.result == true && !o.diff.Unknown && !value.Equal(orEmpty(o.diff.Changes), o.changes) {
		t.Errorf("the check predicted the changes\n%s\nand the run made\n%s", value.Repr(o.diff.Changes),
			value.Repr(o.changes))
	}
	r.judge(t, "first run", r.First, o)
	r.host.Expect(t, r.After)
	r.host.tidy(t)
	return o
}

// second applies again: after a success there must be nothing to do and nothing may be written.
func (r *trial) second(t *testing.T, first outcome) {
	before := r.host.Snapshot(t)
	o := r.run(t, r.call())
	r.judge(t, "second run", r.Second, o)
	if first.result != true || r.Always || first.diff.Unknown {
		return
	}
	if !o.diff.Empty() {
		t.Errorf("a second run still has something to do: %s", o)
	}
	r.unchanged(t, before, "a second run")
}

func (r *trial) call() Call { return Call{r.Function, r.Arguments} }

func (r *trial) unchanged(t *testing.T, before Tree, what string) {
	t.Helper()
	for _, difference := range before.Diff(r.host.Snapshot(t)) {
		t.Errorf("%s changes the host: %s", what, difference)
	}
}

// check creates a resource and returns the outcome of its Check.
func (r *trial) check(t *testing.T, c Call) outcome {
	_, o := r.look(t, c)
	return o
}

func (r *trial) look(t *testing.T, c Call) (module.Resource, outcome) {
	t.Helper()
	resource, ok := module.Registry{r.suite.State: r.table}.New(r.suite.State, c.Function)
	if !ok {
		t.Fatalf("there is no %s.%s", r.suite.State, c.Function)
	}
	warnings, problems := module.Decode(resource, call(r.suite.State+"."+c.Function, c.Arguments))
	var o outcome
	for _, w := range warnings {
		o.warnings = append(o.warnings, w.Message)
	}
	if err := problems.Err(); err != nil {
		return nil, o.failed(err, nil)
	}
	diff, err := resource.Check(context.Background(), r.host.Host)
	o.diff, o.comment = diff, diff.Comment
	o.warnings = append(o.warnings, diff.Warnings...)
	for _, missing := range diff.Missing {
		o.warnings = append(o.warnings, missing.Error())
	}
	switch {
	case err != nil:
		return nil, o.failed(err, diff.Changes)
	case diff.Empty():
		o.result, o.changes = true, value.NewMap()
		return nil, o
	}
	o.changes = orEmpty(diff.Planned, diff.Changes)
	return resource, o
}

// run acts as a real run: it checks, and applies the difference if there is one.
func (r *trial) run(t *testing.T, c Call) outcome {
	t.Helper()
	resource, o := r.look(t, c)
	if resource == nil {
		return o
	}
	report, err := resource.Apply(context.Background(), r.host.Host, o.diff)
	o.warnings = append(o.warnings, report.Warnings...)
	o.result, o.comment, o.changes = true, report.Comment, orEmpty(report.Changes)
	if err != nil {
		return o.failed(err, report.Changes)
	}
	return o
}

func (o outcome) failed(err error, changes *value.Map) outcome {
	var skipped *host.Skipped
	o.skipped = errors.As(err, &skipped)
	o.result, o.comment, o.hint, o.changes = o.skipped, err.Error(), diag.HintOf(err), orEmpty(changes)
	return o
}

func orEmpty(maps ...*value.Map) *value.Map {
	for _, m := range maps {
		if m != nil {
			return m
		}
	}
	return value.NewMap()
}

func (o outcome) String() string {
	return fmt.Sprintf("result %s, changes %s, comment %q, hint %q, warnings %q", value.Repr(o.result),
		value.Repr(o.changes), o.comment, o.hint, o.warnings)
}

// judge compares the result of a call with the expected one.
func (r *trial) judge(t *testing.T, what string, want *Want, got outcome) {
	t.Helper()
	for _, secret := range r.Secrets {
		if strings.Contains(got.String(), secret) {
			t.Errorf("%s shows a secret: %s", what, got)
		}
	}
	for _, mistake := range []string{"<nil>", "%!"} { // a message with a nil error, or with a wrong verb
		if text := strings.Join(append(got.warnings, got.comment, got.hint), "\n"); strings.Contains(text, mistake) {
			t.Errorf("%s: a message contains %q: %s", what, mistake, text)
		}
	}
	if want == nil {
		return
	}
	if got.result != want.Result {
		t.Errorf("%s: result is %s, want %s: %s", what, value.Repr(got.result), value.Repr(want.Result), got)
	}
	if want.Changes != nil && !value.Equal(want.Changes, got.changes) {
		t.Errorf("%s: changes are\n%s\nwant\n%s\n%s", what, value.Repr(got.changes), value.Repr(want.Changes), got)
	}
	for _, w := range []struct{ name, want, got string }{
		{"comment", want.Comment, got.comment}, {"hint", want.Hint, got.hint},
		{"warnings", want.Warning, strings.Join(got.warnings, "\n")},
	} {
		if !strings.Contains(w.got, w.want) {
			t.Errorf("%s: %s is %q, which lacks %q", what, w.name, w.got, w.want)
		}
	}
}
