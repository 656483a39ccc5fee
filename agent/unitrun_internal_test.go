package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestUnitRunWithoutReportEnds checks which answers of systemd make deploy --now start the unit again, and the error
// and exit code of the others.
func TestUnitRunWithoutReportEnds(t *testing.T) {
	full := diag.Disk.Hint(errors.New("/var/lib/corpus has 0 B left"), "make room")
	ran := func(id, result, code, status string) map[string]string {
		return map[string]string{"InvocationID": id, "Result": result, "ExecMainCode": code, "ExecMainStatus": status,
			"ConditionResult": "yes"}
	}
	old := ran("a1", "success", "1", "0")
	for name, c := range map[string]struct {
		after      map[string]string
		unwritable error
		again      bool
		code       int
		want       string // in the error or the warning
		topic      string
	}{
		"succeeded on a full disk": {
			after:      ran("b2", "success", "1", "0"),
			unwritable: full, want: "has 0 B left", topic: "C070",
		},
		"failed on a full disk": {
			after:      ran("b2", "exit-code", "1", "7"),
			unwritable: full, code: 7, want: "code 7", topic: "C070",
		},
		"succeeded without a report": {
			after: ran("b2", "success", "1", "0"),
			code:  exit.Failed, want: "exit code 0", topic: "C066",
		},
		"interrupted": {
			after: ran("b2", "success", "1", "130"),
			code:  130, want: "130", topic: "C066",
		},
		"killed": {
			after: ran("b2", "signal", "2", "9"),
			code:  exit.Failed, want: "with signal", topic: "C066",
		},
		"another run had the lock":    {after: ran("b2", "success", "1", "6"), again: true},
		"a run that had begun before": {after: old, again: true},
		"nothing known":               {after: map[string]string{}, again: true},
		"a condition of a service": {
			after: ran("b2", "exec-condition", "1", "1"),
			code:  exit.Failed, want: "skipped", topic: "C066",
		},
		"a condition, and an older run": {
			after: map[string]string{"InvocationID": "a1", "ConditionResult": "no"},
			code:  3, want: "skipped", topic: "C066",
		},
		"by an old systemd, without an ID": {
			after: map[string]string{"ExecMainStartTimestampMonotonic": "9", "ExecMainCode": "1", "ExecMainStatus": "4"},
			code:  4, want: "code 4", topic: "C066",
		},
		"by an old systemd, and no process": {
			after: map[string]string{"ExecMainStartTimestampMonotonic": "0"},
			again: true,
		},
	} {
		after := parseUnitRun(c.after)
		if got := after.again(parseUnitRun(old), 0); got != c.again {
			t.Errorf("%s: started again: %v", name, got)
		}
		if c.again {
			continue
		}
		warned := ""
		err := after.unreported("", c.unwritable, func(format string, args ...any) { warned = fmt.Sprintf(format, args...) })
		text := warned + fmt.Sprint(err) + diag.HintOf(err)
		if exit.Code(err) != c.code || !strings.Contains(text, c.want) || !strings.Contains(text, "["+c.topic+"]") {
			t.Errorf("%s: exit code %d, want %d: %s", name, exit.Code(err), c.code, text)
		}
	}
	for _, after := range []map[string]string{{}, old} {
		if parseUnitRun(after).again(parseUnitRun(old), unknownTries-1) {
			t.Errorf("%v: started again after %d tries", after, unknownTries)
		}
	}
}
