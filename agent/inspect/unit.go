package inspect

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// Unreported is a run of the agent's unit that left no report, for example because the disk was full or the unit may
// not write to the state directory.
type Unreported struct {
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	Result string    `json:"result"` // in systemd's words, such as exit-code
	Status int       `json:"status"` // the exit code, or the number of a signal
}

func (u Unreported) String() string {
	return fmt.Sprintf("%s ended at %s with %s, status %d, and its run could keep no report; journalctl -u %s",
		records.ServiceUnit, diag.Stamp(u.Ended), u.Result, u.Status, records.ServiceUnit)
}

// AskUnit adds the state of the agent's unit in systemd to a status: a run that failed without a report, and jobs that
// wait during a run.
func (h *Host) AskUnit(ctx context.Context, s *Status) {
	if h.Layout.Relocated() || s.Hidden {
		return
	}
	if s.Running != nil {
		s.Waiting = h.waitingJobs(ctx)
		return
	}
	out, err := site.Systemctl(ctx, 5*time.Second, "show",
		"--property=Result,ExecMainStatus,ExecMainStartTimestampMonotonic,ExecMainExitTimestampMonotonic",
		records.ServiceUnit)
	if err != nil {
		return
	}
	s.Unreported = unreported(service.Properties(out), s.LastRun, time.Now(), units.Monotonic())
	if u := s.Unreported; u != nil && s.Refused != nil {
		s.Unreported = nil // it was refused, which status shows
	}
	if u, c := s.Unreported, s.Cut; u != nil && c != nil && u.Result == "exit-code" &&
		(c.Began == nil || !c.Began.Before(u.Began.Truncate(time.Second))) {
		s.Cut.Ended = true
	}
}

// unreported parses the output of systemctl. now and clock are the same moment by the wall clock and by the monotonic
// clock. A process that began before the last report has kept that report.
func unreported(says map[string]string, last *report.Report, now time.Time, clock time.Duration) *Unreported {
	at := func(name string) time.Time {
		micro, err := strconv.ParseInt(says[name], 10, 64)
		if err != nil || micro == 0 {
			return time.Time{}
		}
		return now.Add(time.Duration(micro)*time.Microsecond - clock)
	}
	u := &Unreported{Began: at("ExecMainStartTimestampMonotonic"), Ended: at("ExecMainExitTimestampMonotonic"),
		Result: says["Result"]}
	u.Status, _ = strconv.Atoi(says["ExecMainStatus"])
	const tolerance = time.Second // a clock that is being set
	switch {
	case u.Result == "" || u.Result == "success" && u.Status != 0 || u.Result == "exec-condition" || u.Began.IsZero() ||
		u.Ended.IsZero():
		return nil
	case last != nil && !last.Started.Before(u.Began.Add(-tolerance)):
		return nil
	}
	return u
}

// waitingJobs returns the first few jobs of systemd that have not begun, such as "start of web.service".
func (h *Host) waitingJobs(ctx context.Context) []string {
	out, err := site.Systemctl(ctx, 5*time.Second, "list-jobs", "--no-legend", "--no-pager", "--full", "--plain")
	if err != nil {
		return nil
	}
	return waitingIn(out)
}

// waitingIn parses the output of systemctl, whose lines are like "123 web.service start waiting".
func waitingIn(answer string) (jobs []string) {
	const most = 5
	for line := range strings.Lines(answer) {
		if f := strings.Fields(line); len(f) == 4 && f[3] == "waiting" && len(jobs) < most {
			jobs = append(jobs, f[2]+" of "+f[1])
		}
	}
	return jobs
}
