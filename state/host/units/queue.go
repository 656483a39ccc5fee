package units

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// This file prevents a deadlock between a run and the start of a unit for which the run waits. systemd orders the jobs
// of units: the start of a unit with After=corpus-agent.service waits in the queue as long as the start job of
// corpus-agent.service runs. That unit is a oneshot, so its start job runs until the run is over.

// queueLimit limits the time of a job in systemd's queue before it starts.
const queueLimit = 10 * time.Minute

// queue is systemd's queue of jobs during the wait for one of them.
type queue struct {
	conn  *dbus.Conn
	own   string    // the unit that this process runs in
	since time.Time // when the job was queued

	jobs map[string]dbus.JobStatus            // by unit
	deps func(unit string) (d order, ok bool) // returns the dependencies of a unit; replaced in tests
}

// order holds the dependencies of a unit on others.
type order struct {
	after []string // units whose jobs it waits for
	pulls []string // units that are started with it
}

const waiting = "waiting"

// free makes systemd start the job of a unit, or the job for which that waits, without regard to the order of units, if
// it waits for the job of this process's own unit. freed is the unit of the started job, or "" if there is none. It
// returns an error if the job has waited for too long.
func (q *queue) free(ctx context.Context, unit string) (freed string, err error) {
	all, err := q.conn.ListJobsContext(ctx)
	if err != nil {
		return "", fmt.Errorf("listing jobs: %w", err)
	}
	q.jobs = map[string]dbus.JobStatus{}
	for _, j := range all {
		q.jobs[j.Unit] = j
	}
	q.deps = func(unit string) (order, bool) { return q.ask(ctx, unit) }
	if next := q.next(unit, map[string]bool{}); next != "" {
		return next, q.release(ctx, q.jobs[next])
	}
	if q.jobs[unit].Status == waiting && time.Since(q.since) > queueLimit {
		return "", q.late(unit)
	}
	return "", nil
}

// FreeAll makes systemd start jobs for which a program of this run waits, such as those of a `systemctl restart` in a
// hook, if the jobs wait for the end of this process's own unit. It calls own.Passed with the units of these jobs.
func FreeAll(ctx context.Context, names []string, own *host.OwnUnit) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var errs []error
	for _, name := range names {
		id, err := c.GetUnitPropertyContext(ctx, host.UnitName(name), "Id") // jobs have no aliases of units
		if err != nil {
			continue // it does not exist
		}
		unit, _ := id.Value.Value().(string)
		q := queue{conn: c, own: Own(), since: time.Now()}
		freed, err := q.free(ctx, unit)
		if err == nil {
			own.Passed(freed)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (q *queue) ask(ctx context.Context, unit string) (o order, ok bool) {
	all, err := q.conn.GetUnitPropertiesContext(ctx, unit)
	if err != nil {
		return o, false
	}
	o.after, _ = all["After"].([]string)
	for _, name := range []string{"Requires", "BindsTo", "Wants"} {
		units, _ := all[name].([]string)
		o.pulls = append(o.pulls, units...)
	}
	return o, true
}

// next returns the unit whose job must be freed first so that the job of the given unit can start: a unit that the
// given one pulls in, or else the unit itself. It returns "" if the job does not wait for this process, or waits for a
// running job of a unit that it pulls in.
func (q *queue) next(unit string, seen map[string]bool) string {
	if seen[unit] || !q.behind(unit, map[string]bool{}) {
		return ""
	}
	seen[unit] = true
	o, _ := q.deps(unit)
	for _, other := range o.after {
		if _, queued := q.jobs[other]; queued && other != q.own && slices.Contains(o.pulls, other) {
			return q.next(other, seen)
		}
	}
	return unit
}

// behind reports whether the job of a unit waits for the job of this process's unit, directly or through other jobs.
func (q *queue) behind(unit string, seen map[string]bool) bool {
	if q.own == "" || q.jobs[unit].Status != waiting || q.jobs[q.own].Status == "" || seen[unit] {
		return false
	}
	seen[unit] = true
	o, ok := q.deps(unit)
	return ok && slices.ContainsFunc(o.after, func(other string) bool { return other == q.own || q.behind(other, seen) })
}

// release makes systemd start a waiting job: it requests the same job again, which changes the one in the queue.
func (q *queue) release(ctx context.Context, j dbus.JobStatus) error {
	call := q.conn.StartUnitContext
	switch j.JobType {
	case "restart", "try-restart":
		call = q.conn.RestartUnitContext
	case "reload", "reload-or-start":
		call = q.conn.ReloadUnitContext
	}
	if _, err := call(ctx, j.Unit, "ignore-dependencies", nil); err != nil {
		return fmt.Errorf("starting %s without waiting for %s: %w", j.Unit, q.own, err)
	}
	return nil
}

// late returns the error of a job that has waited for too long.
func (q *queue) late(unit string) error {
	o, _ := q.deps(unit)
	var others []string
	for _, other := range o.after {
		if j, queued := q.jobs[other]; queued {
			others = append(others, fmt.Sprintf("%s of %s (%s)", j.JobType, other, j.Status))
		}
	}
	text := fmt.Errorf("its job has waited in the queue of systemd for more than %v", queueLimit)
	if len(others) > 0 {
		text = fmt.Errorf("%w, behind: %s", text, strings.Join(others, ", "))
	}
	return diag.Unit.Hint(text, "`systemctl list-jobs --after` shows what waits for what; check After= and Before= of %s",
		unit)
}
