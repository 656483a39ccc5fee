package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Refusals describes consecutive runs that could not take the lock of the host.
type Refusals struct {
	Since  time.Time   `json:"since"` // the first one
	Last   time.Time   `json:"last"`
	Count  int         `json:"count"`
	Holder lock.Holder `json:"holder"` // of the lock at the last one; zero if unknown
}

// usualInterval is the interval at which the packaged timer starts a run.
const usualInterval = 5 * time.Minute

// slack is how much earlier than its interval a timer may fire.
const slack = 5 * time.Second

// NoteRefusal records that a run could not take the lock. If runs have been refused for as long as the timer's
// interval, no run of the unit has happened in time, and the error gets an exit code that counts as a failure of the
// unit.
func (rs *Records) NoteRefusal(ctx context.Context, held *lock.Held, err error) error {
	r := rs.Refused()
	now := rs.Time().UTC().Truncate(time.Second)
	if r == nil || r.Since.After(now) {
		r = &Refusals{Since: now}
	}
	r.Last, r.Count, r.Holder = now, r.Count+1, held.Holder
	if rs.saveRefusals(r) != nil {
		return err // the user may not write here; the error of the lock is more important
	}
	if r.Last.Sub(r.Since) < rs.interval(ctx)-slack {
		return err
	}
	return exit.WithCode(exit.Starved,
		diag.Busy.Hint(fmt.Errorf("no run got the lock since %s, %s refused: %w", r.Since.Local().Format(time.DateTime),
			diag.Count(r.Count, "run"), err),
			"look at what holds the lock: `corpus-agent status`, `fuser -v %s`; end that process if it hangs",
			rs.Layout.Inside(rs.Layout.Lock())))
}

// Refused returns the recorded refusals; nil if there are none.
func (rs *Records) Refused() *Refusals {
	data, err := walk.ReadFile(rs.Layout.Refusals())
	var r Refusals
	if err != nil || json.Unmarshal(data, &r) != nil || r.Count == 0 {
		return nil
	}
	return &r
}

func (rs *Records) saveRefusals(r *Refusals) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(rs.Layout.Refusals(), append(data, '\n'), 0o600); err != nil {
		return err
	}
	rs.lockMetrics(r)
	return nil
}

// ForgetRefusals removes the recorded refusals. A run that got the lock calls it.
func (rs *Records) ForgetRefusals() {
	if err := os.Remove(rs.Layout.Refusals()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		rs.lockMetrics(&Refusals{})
	}
}

// lockMetrics writes the metrics of refusals, into a file of their own, since the holder of the lock writes the others.
// It ignores errors.
func (rs *Records) lockMetrics(r *Refusals) {
	if file := rs.Config.Metrics; file != "" {
		_ = report.LockMetrics{File: rs.Layout.Path(file), Since: r.Since, Count: r.Count}.Write()
	}
}

// interval returns the interval at which the host's timer starts a run.
func (rs *Records) interval(ctx context.Context) time.Duration {
	if rs.Layout.Relocated() {
		return usualInterval
	}
	out, err := site.Systemctl(ctx, 5*time.Second, "list-timers", "--all", "--output=json", TimerUnit)
	if err != nil {
		return usualInterval
	}
	return between(out)
}

// between returns the time from a timer's last start of its unit to the next one, from the output of systemctl.
func between(answer string) time.Duration {
	var timers []struct {
		Next int64  `json:"next"`
		Last int64  `json:"last"`
		Unit string `json:"unit"`
	}
	if json.Unmarshal([]byte(answer), &timers) == nil {
		for _, t := range timers {
			if t.Unit == TimerUnit && t.Last > 0 && t.Next > t.Last {
				return time.Duration(t.Next-t.Last) * time.Microsecond
			}
		}
	}
	return usualInterval
}
