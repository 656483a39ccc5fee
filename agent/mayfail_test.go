package agent_test

import (
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
)

// A release stays in which only states failed that may fail. Other states run, and each run tries those again.
func TestStatesThatMayFail(t *testing.T) {
	t.Parallel()
	const broken = `
broken: {test.fail_without_changes: [{may_fail: true}]}
after broken: {test.nop: [{require: [{test: broken}]}]}
/other: {file.managed: [{contents: x}]}
`
	l := newNativeLab(t)
	excused := func(r *report.Report, version string) {
		t.Helper()
		l.links(version, version, "1")
		if !r.Excused || r.States.Failed != 2 || r.Fault != nil || len(r.Quarantined) > 0 ||
			r.Left.Service.Version != version || r.Outcome != report.Failed {
			t.Errorf("the report of a run with states that may fail: %+v", r)
		}
		if _, err := os.Stat(l.Layout.Path("/other")); err != nil {
			t.Errorf("a state after one that may fail did not run: %v", err)
		}
	}
	l.states("1", "a: {test.nop: []}\n")
	l.expect(exit.OK)
	l.states("2", broken)
	excused(l.expect(exit.Failed), "2")
	if err := os.Remove(l.Layout.Path("/other")); err != nil {
		t.Fatal(err)
	}
	excused(l.expect(exit.Failed), "2")

	l.states("3", broken+"mine: {test.fail_without_changes: []}\n")
	if r := l.expect(exit.RolledBack); r.Excused {
		t.Error("the failure of another state is excused")
	}
	l.links("2", "2", "1")
	l.states("4", "a: {test.nop: []}\n")
	l.expect(exit.OK)
}
