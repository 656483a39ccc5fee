package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// DeployNow starts the unit that the timer starts, without waiting for the timer, so that the run has the environment
// and the limits of an unattended run. It returns the report when that run has ended. A run that is in progress may
// have read the store before there was anything new, so DeployNow waits for its end and starts another one. If systemd
// does not have the unit, the run happens in this process, inUnit is false, and the agent's sinks have received its
// events. DeployNow calls say with what it waits for.
//
// A run of the unit that ended and could not keep its report gives an error with its exit code, or, if it succeeded, a
// warning and no report. root is the root of trust that the environment names, as in Given.
func (a *Agent) DeployNow(ctx context.Context, root string, say func(format string, args ...any)) (r *report.Report,
	inUnit bool, err error) {
	introduced, err := trust.Introduced(a.Layout.Trust())
	if errors.Is(err, fs.ErrPermission) {
		err = diag.Rights.Hint(err, "run as root")
	}
	if err != nil {
		return nil, false, err
	}
	if lost, err := a.lostRoot(); err != nil {
		return nil, false, err
	} else if !introduced && !lost && root == "" {
		return nil, false,
			exit.WithCode(exit.Usage, diag.Root.Hint(errors.New("this host has no root of trust"),
				"copy keys/root.json of the publisher to this host, and give it to the first deploy: `corpus-agent deploy "+
					"--store URL --trust-root FILE`"))
	}
	switch load := a.unitLoad(ctx); load {
	case "loaded":
	case "", "not-found":
		return a.deployHere(ctx, Given{TrustRoot: root}, say)
	case "masked":
		return nil, false,
			exit.WithCode(exit.Usage,
				diag.Agent.Hint(fmt.Errorf("%s is masked: runs of this host are turned off", records.ServiceUnit),
					"systemctl unmask %s; or `corpus-agent deploy`, which runs here and not in the unit", records.ServiceUnit))
	default:
		return nil, false,
			exit.WithCode(exit.Usage, diag.Agent.Hint(fmt.Errorf("systemd cannot load %s: %s", records.ServiceUnit, load),
				"systemd-analyze verify %s shows why", records.ServiceUnit))
	}
	r, err = a.startUnit(ctx, say)
	return r, true, err
}

// lostRoot reports whether this host has deployed from a store, so that a run without a root of trust says that it was
// lost.
func (a *Agent) lostRoot() (bool, error) {
	if before, err := trust.Bootstrapped(a.Layout.Trust()); before || err != nil {
		return before, err
	}
	book, err := a.ReadLedger()
	return err == nil && book != nil && book.Runs() != nil, err
}

// startUnit starts the unit until a run of it has ended that began after this call.
func (a *Agent) startUnit(ctx context.Context, say func(format string, args ...any)) (*report.Report, error) {
	started := a.Time().UTC()
	for tries := 0; ; tries++ {
		if err := a.waitBeforeTry(ctx, tries, say); err != nil {
			return nil, err
		}
		if err := a.WaitUntilIdle(ctx, say); err != nil {
			return nil, err
		}
		say("%s is started; the run continues if this command is ended", records.ServiceUnit)
		before := askUnitRun(ctx)
		result, failed := site.Systemctl(ctx, 24*time.Hour, "start", records.ServiceUnit)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if r, err := a.deployedSince(started); r != nil || err != nil {
			return r, err
		}
		// Another run may have taken the lock first, or the unit was about to end.
		if after := askUnitRun(ctx); failed != nil || !after.again(before, tries) {
			return nil, after.unreported(strings.TrimSpace(result), a.Unwritable(), say)
		}
	}
}

// deployHere runs the deploy of DeployNow in this process.
func (a *Agent) deployHere(ctx context.Context, given Given, say func(format string, args ...any)) (*report.Report,
	bool, error) {
	for tries := 0; ; tries++ {
		if err := a.waitBeforeTry(ctx, tries, say); err != nil {
			return nil, false, err
		}
		if err := a.WaitUntilIdle(ctx, say); err != nil {
			return nil, false, err
		}
		r, err := a.Deploy(ctx, given, false)
		var other *lock.Held
		if !errors.As(err, &other) || a.Within != "" {
			return r, false, err
		}
	}
}

// waitBeforeTry waits before another try if a run could not take the lock, since systemd refuses to start a unit more
// than five times in ten seconds.
func (a *Agent) waitBeforeTry(ctx context.Context, tries int, say func(format string, args ...any)) error {
	if tries == 0 {
		return nil
	}
	wait := min(time.Duration(tries)*restStep, restMost)
	holder, busy := lock.Taken(a.Layout.Lock())
	sharers := lock.Sharers(a.Layout.Lock())
	switch {
	case busy:
		say("the run could not start: %v; the next try is in %s", &lock.Held{Holder: holder}, wait)
	case len(sharers) > 0:
		say("the run could not start: %s shares the lock, which keeps every run from starting; the next try is in %s",
			strings.Join(sharers, ", "), wait)
	default:
		say("another run was quicker; the next try is in %s", wait)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// How long DeployNow waits before another try.
const (
	restStep = 3 * time.Second
	restMost = 30 * time.Second
)

// deployedSince returns the newest report if it is of a deploy that began at moment or later, and nil otherwise.
func (a *Agent) deployedSince(moment time.Time) (*report.Report, error) {
	r, err := a.Reports().Last()
	if err != nil || r == nil || r.Command != "deploy" || r.Started.Before(moment) {
		return nil, err
	}
	return r, nil
}

// unitLoad returns systemd's load state of the unit, such as loaded or masked. It returns "" if the host is not the
// running system or systemd does not answer.
func (a *Agent) unitLoad(ctx context.Context) string {
	if a.Layout.Relocated() {
		return ""
	}
	out, err := site.Systemctl(ctx, 5*time.Second, "show", "--property=LoadState", records.ServiceUnit)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(out), "LoadState=")
}
