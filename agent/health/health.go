// Package health checks whether a release works: it probes over HTTP and TCP, queries systemd for a unit, or runs a
// script of the release.
//
// A service takes time to start, so a probe that fails is retried until its retries or the deadline of all probes are
// used up. The grace at the start covers the opposite case: a service that starts and ends a second later would pass an
// immediate probe.
//
// A probe only shows that some process answers. The units of the release show that this process is of the release and
// not of the previous one: their main processes must run from its directory, see agent/service.
package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Options are the options of Check.
type Options struct {
	recipe.Health
	Dir   string         // the release's directory, where scripts are found and run
	Env   []string       // of scripts
	Units *service.Watch // of the release; nil for none
	// Answering determines which process responds; nil if that is not checked.
	Answering *service.Answering
	// Journal returns the last lines that a unit logged, redacted for a report; nil if they are not read.
	Journal func(ctx context.Context, unit string) []string
	// Check returns an error for a script that must not be run; nil if no script is checked.
	Check func(path string) error
}

// Merge returns the settings of a release, completed by those of the host. The probes are those of both.
func Merge(release, host recipe.Health) recipe.Health {
	return recipe.Health{
		Grace: cmp.Or(release.Grace, host.Grace), Deadline: cmp.Or(release.Deadline, host.Deadline),
		Interval: cmp.Or(release.Interval, host.Interval), Timeout: cmp.Or(release.Timeout, host.Timeout),
		Retries: cmp.Or(release.Retries, host.Retries), Probes: slices.Concat(release.Probes, host.Probes),
	}
}

// Result is the result of a probe.
type Result struct {
	Probe    string        `json:"probe"`
	Tries    int           `json:"tries"`
	Duration time.Duration `json:"duration_ns"`
	Error    string        `json:"error,omitempty"` // of the last try; empty when it passed
	Test     string        `json:"test,omitempty"`  // of a unit: the test that shows that it runs the release

	// Answered is the process of this host that listens at the address that answered; "" if unknown.
	Answered string `json:"answered,omitempty"`

	// Journal has the unit's last log lines if its program ended or is not up.
	Journal []string `json:"journal,omitempty"`

	Project string `json:"-"` // project of the unit or probe; "" for a probe of the host
	unit    string
	logs    string // the unit whose journal may explain Error; "" if there is none
	hint    string // a hint about Error; "" for the general one
	// occupied is set if another process has the port, which is not a fault of the release.
	occupied *service.Occupied
}

// Unhealthy is the error of a check, with all results.
type Unhealthy struct{ Results []Result }

func (u *Unhealthy) Error() string {
	var failed []string
	for _, r := range u.Results {
		if r.Error != "" {
			failed = append(failed, r.failure())
		}
	}
	return "the release is not healthy: " + strings.Join(failed, "; ") + u.journals()
}

// Unwrap returns the *service.Occupied of each probe whose port another process has.
func (u *Unhealthy) Unwrap() []error {
	var causes []error
	for _, r := range u.Results {
		if r.Error != "" && r.occupied != nil {
			causes = append(causes, r.occupied)
		}
	}
	return causes
}

// Project returns the project of the first unit or probe that failed; "" for the host.
func (u *Unhealthy) Project() string {
	for _, r := range u.Results {
		if r.Error != "" {
			return r.Project
		}
	}
	return ""
}

// Units returns the units that do not run their release.
func (u *Unhealthy) Units() []string {
	var units []string
	for _, r := range u.Results {
		if r.Error != "" && r.unit != "" {
			units = append(units, r.unit)
		}
	}
	return units
}

func (r Result) failure() string {
	if r.Tries == 0 {
		return r.Probe + ": " + r.Error
	}
	return fmt.Sprintf("%s: %s (%s in %s)", r.Probe, r.Error, diag.Count(r.Tries, "try"), diag.Elapsed(r.Duration))
}

// Hint returns what the user can do about it.
func (u *Unhealthy) Hint() string {
	for _, r := range u.Results {
		if r.Error != "" && r.hint != "" {
			return r.hint
		}
	}
	return diag.Health.Coded(
		"`corpus-agent report` has every probe; a release that is only slow needs a longer health.deadline")
}

// Check waits for all units to run the release, and then for all probes to pass. An answer counts only if the units run
// the release at the end, and none of their programs ended since the beginning. If something fails, the error is an
// *Unhealthy. The results are in the order of the units, and then of the probes.
func Check(ctx context.Context, o Options) ([]Result, error) {
	if len(o.Probes) == 0 && o.Units == nil {
		return nil, nil
	}
	within, cancel := context.WithTimeout(ctx, o.Deadline)
	defer cancel()
	units := newUnits(o)
	if err := units.begin(within); err != nil {
		return nil, late(ctx, within, o, err)
	}
	wait(within, units.grace())
	units.until(within)
	results := make([]Result, len(o.Probes))
	if units.pass() {
		probeAll(within, results, o)
		units.look(within)
	} else {
		for i, p := range o.Probes {
			results[i] = Result{Probe: p.String(), Project: p.Project,
				Error: "not asked, since the units do not run the release"}
		}
	}
	results = slices.Concat(units.results, results)
	o.readJournals(context.WithoutCancel(ctx), results)
	if ctx.Err() != nil {
		return results, ctx.Err()
	}
	for _, r := range results {
		if r.Error != "" {
			return results, &Unhealthy{Results: results}
		}
	}
	return results, nil
}

// late adds the name of the setting to an error that was caused by the deadline of all probes.
func late(ctx, within context.Context, o Options, err error) error {
	if ctx.Err() != nil || within.Err() == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return diag.Health.Hint(fmt.Errorf("health.deadline (%s) was over: %w", recipe.Short(o.Deadline), err),
		"see what takes so long, or raise the deadline of health in corpus.yaml or agent.yaml")
}

// probeAll runs all probes in parallel.
func probeAll(ctx context.Context, results []Result, o Options) {
	started := time.Now()
	group := errgroup.Group{}
	for i, p := range o.Probes {
		group.Go(func() error {
			results[i] = attempts(ctx, p, o)
			results[i].Duration = time.Since(started)
			return nil
		})
	}
	_ = group.Wait() // failures are in the results
}

// attempts retries a probe until it passes or its retries are used up.
func attempts(ctx context.Context, p recipe.Probe, o Options) Result {
	r := Result{Probe: p.String(), Project: p.Project}
	if p.Kind == recipe.ProbeUnit {
		r.logs = p.Target
	}
	for ctx.Err() == nil && (o.Retries == 0 || r.Tries <= o.Retries) {
		if r.Tries > 0 {
			if wait(ctx, o.Interval); ctx.Err() != nil {
				break
			}
		}
		r.Tries++
		answered, err := once(ctx, p, o)
		if err == nil {
			r.Error, r.hint, r.occupied, r.Answered = "", "", nil, answered
			return r
		}
		// The error of an attempt that the deadline interrupted has less information than the one before.
		if r.Error == "" || ctx.Err() == nil {
			r.Error, r.hint, r.occupied = err.Error(), diag.HintOf(err), nil
			_ = errors.As(err, &r.occupied)
		}
	}
	if r.Error == "" {
		r.Error = "it was not asked within the deadline"
	}
	return r
}

// once runs a probe once, and returns the process that responded.
func once(ctx context.Context, p recipe.Probe, o Options) (answered string, err error) {
	tryCtx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var seen connection
	if o.Answering != nil {
		seen.at = func(c service.Connection) (string, error) { return o.Answering.At(tryCtx, c, p.Project != "") }
	}
	err = ask(tryCtx, p, o, &seen)
	switch {
	case seen.err != nil: // independently of its answer
		return "", seen.err
	case err != nil && tryCtx.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("no answer within %s", diag.Elapsed(o.Timeout))
	}
	return seen.answered, err
}

func ask(ctx context.Context, p recipe.Probe, o Options, seen *connection) error {
	switch p.Kind {
	case recipe.ProbeHTTP:
		return askHTTP(ctx, p, seen)
	case recipe.ProbeTCP:
		return askTCP(ctx, p, seen)
	case recipe.ProbeUnit:
		return askUnit(ctx, p)
	}
	return askScript(ctx, p, o)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
