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

// Refusals are runs that the lock of the host refused, one after the other, with none between that got it.
type Refusals struct {
	Since  time.Time   `json:"since"` // the first one
	Last   time.Time   `json:"last"`
	Count  int         `json:"count"`
	Holder lock.Holder `json:"holder"` // of the lock at the last one; zero where that is not known
}

// usualInterval is how often the packaged timer starts a run.
const usualInterval = 5 * time.Minute

// slack is how much earlier than its interval a timer may fire.
const slack = 5 * time.Second

// NoteRefusal records that the lock refused a run. Where runs have been refused for as long as the unit's interval,
// no run of the unit has happened in time, and the error has an exit code that is a failure of the unit.
func (rs *Records) NoteRefusal(ctx context.Context, held *lock.Held, err error) error {
	r := rs.Refused()
	now := rs.Time().UTC().Truncate(time.Second)
	if r == nil || r.Since.After(now) {
		r = &Refusals{Since: now}
	}
	r.Last, r.Count, r.Holder = now, r.Count+1, held.Holder
	if rs.saveRefusals(r) != nil {
		return err // of a user who may not write here; the lock's answer matters more
	}
	if r.Last.Sub(r.Since) < rs.interval(ctx)-slack {
		return err
	}
	return exit.WithCode(exit.Starved,
		diag.WithHint(fmt.Errorf("no run got the lock since %s, %d were refused: %w", r.Since.Local().Format(time.DateTime),
			r.Count, err),
			"look at what holds the lock: `corpus-agent status`, `fuser -v %s`; end that process if it hangs",
			rs.Layout.Inside(rs.Layout.Lock())))
}

// Refused reads the recorded refusals; nil for none.
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

// ForgetRefusals is called by a run that got the lock.
func (rs *Records) ForgetRefusals() {
	if err := os.Remove(rs.Layout.Refusals()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		rs.lockMetrics(&Refusals{})
	}
}

// lockMetrics writes metrics that the holder of the lock does not write: they have a file of their own. They are
// a help for monitoring, and a failure to write them changes nothing about the run.
func (rs *Records) lockMetrics(r *Refusals) {
	if file := rs.Config.Metrics; file != "" {
		_ = report.LockMetrics{File: rs.Layout.Path(file), Since: r.Since, Count: r.Count}.Write()
	}
}

// interval is how often the host's timer starts a run.
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

// between is the time from a timer's last start of its unit to the next one, out of the answer of systemctl.
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
