package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/report"
)

func TestUnitRunWithoutReportIsShown(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	says := func(result, status string) map[string]string {
		return map[string]string{"Result": result, "ExecMainStatus": status, "ExecMainStartTimestampMonotonic": "940000000",
			"ExecMainExitTimestampMonotonic": "941000000"}
	}
	at := func(ago time.Duration) *report.Report { return &report.Report{Started: now.Add(-ago)} }
	for name, c := range map[string]struct {
		says map[string]string
		last *report.Report
		want bool
	}{
		"failed, with an older last report": {says("exit-code", "1"), at(5 * time.Minute), true},
		"failed on a host without reports":  {says("exit-code", "226"), nil, true},
		"killed":                            {says("signal", "9"), at(5 * time.Minute), true},
		"with its report":                   {says("exit-code", "3"), at(59 * time.Second), false},
		"another run since":                 {says("exit-code", "1"), at(time.Second), false},
		"succeeded without a report":        {says("success", "0"), at(5 * time.Minute), true},
		"succeeded":                         {says("success", "0"), at(58 * time.Second), false},
		"another run had the lock":          {says("success", "6"), at(5 * time.Minute), false},
		"skipped":                           {says("exec-condition", "1"), at(5 * time.Minute), false},
		"never ran": {map[string]string{"Result": "exit-code",
			"ExecMainStartTimestampMonotonic": "0"}, nil, false},
	} {
		u := unreported(c.says, c.last, now, 1000*time.Second)
		if (u != nil) != c.want {
			t.Errorf("%s: %+v", name, u)
		}
		if u != nil &&
			(!u.Began.Equal(now.Add(-time.Minute)) || !strings.Contains(u.String(), "status "+c.says["ExecMainStatus"])) {
			t.Errorf("%s: %+v, %s", name, u, u)
		}
	}
}

func TestWaitingJobs(t *testing.T) {
	got := waitingIn("  12 web.service start waiting\n  13 corpus-agent.service start running\n\n")
	if !slices.Equal(got, []string{"start of web.service"}) {
		t.Errorf("the waiting jobs are %q", got)
	}
}
