// Package balance deregisters a host from its load balancers before a deploy, and registers it again once it is
// healthy.
//
// The ledger records each load balancer before the host leaves it, so that the run after an interrupted one registers
// the host again.
package balance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/elb"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Run leaves and enters load balancers in one run of the agent.
type Run struct {
	Host   *inspect.Host
	ID     string
	Test   bool
	Ledger *ledger.Ledger
	Record *report.Builder

	// Open opens the load balancers of this host's instance; nil if the agent does not converge the running system.
	Open    func(context.Context) (*elb.Client, error)
	Cluster func() string               // names the classic load balancer of the host if none is configured
	Save    func() error                // writes the ledger
	Healthy func(context.Context) error // checks that the deployed pair is healthy, unless this run has done so
}

// NotLeft is the error of a host that could not leave its load balancers, so that nothing was deployed. No release is
// at fault.
type NotLeft struct{ err error }

func (n *NotLeft) Error() string {
	return "nothing was deployed, since this host could not leave its load balancers: " + n.err.Error()
}

func (n *NotLeft) Unwrap() error { return n.err }

// balancerTime limits the time for responses of load balancers, without the waits for a new state.
const balancerTime = time.Minute

// The stages of a run in which it waits for load balancers.
const (
	leaveStage = "leave load balancers"
	enterStage = "enter load balancers"
)

// balances reports whether a deploy of a pair deregisters the host. The load balancers are those of the host's service:
// base alone and other projects leave them unchanged.
func (r *Run) balances(pair ledger.Pair) bool {
	return r.Host.Config.ELB.Deploy && r.Host.Alone == "" && !pair.BaseAlone()
}

// balancers returns the load balancers of this host, as agent.yaml names them.
func (r *Run) balancers() elb.Balancers {
	return elb.Balancers{Names: r.Host.Config.ELB.Names, TargetGroups: r.Host.Config.ELB.TargetGroups}.OrNamed(r.Cluster())
}

// Leave deregisters the host from those load balancers that it is registered with, and waits until they have drained.
// If one does not respond, the host is registered as before, and the deploy does not start.
func (r *Run) Leave(ctx context.Context, pair ledger.Pair) error {
	if !r.balances(pair) {
		return nil
	}
	if r.Open == nil {
		r.Record.Note("elb.deploy has no effect below %s: its load balancers are those of the running system",
			r.Host.Layout.Root)
		return nil
	}
	if err := r.Host.Unwritable(); err != nil {
		return err
	}
	err := r.leaveThose(ctx, r.balancers())
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return exit.WithCode(exit.Interrupted,
			errors.New("interrupted while this host left its load balancers; nothing was deployed"))
	}
	return exit.WithCode(exit.Failed, withHints(&NotLeft{err},
		"the next run tries it again; with elb.deploy: false in agent.yaml the host stays in them during deploys"))
}

func (r *Run) leaveThose(ctx context.Context, all elb.Balancers) error {
	client, registered, err := r.registered(ctx, all)
	if err != nil {
		return err
	}
	before := r.Ledger.Away
	away := ledger.Away{Run: r.ID, Since: r.Host.Time().UTC(), Instance: client.Instance}
	comesBack := registered
	if r.Ledger.Good == nil { // its first deploy registers it with all of them
		comesBack = all
	}
	if before != nil && before.Instance == client.Instance {
		away.Run, away.Since = before.Run, before.Since
		comesBack = elb.Balancers{Names: before.Names, TargetGroups: before.TargetGroups}.With(comesBack)
	}
	away.Names, away.TargetGroups = comesBack.Names, comesBack.TargetGroups
	if comesBack.Empty() {
		r.Record.Note("this host is registered with none of its load balancers, %s, and stays out of them", all)
		return nil
	}
	r.Ledger.Away = &away
	if err := r.Save(); err != nil {
		return err
	}
	if registered.Empty() {
		return nil
	}
	err = r.Record.Stage(leaveStage, registered.String(), func() error {
		return within(ctx, r.Host.Config.ELB.Timeout+balancerTime, func(ctx context.Context) error {
			return client.Deregister(ctx, registered, r.Host.Config.ELB.Timeout)
		})
	})
	var late *elb.Late
	if errors.As(err, &late) {
		r.Record.Note("%v; the deploy continues, and connections that are open may be cut", late)
		return nil
	}
	if err != nil && ctx.Err() == nil {
		return errors.Join(err, r.stayIn(ctx, client, registered, before))
	}
	return err
}

// stayIn registers the host again with the load balancers that it was about to leave.
func (r *Run) stayIn(ctx context.Context, client *elb.Client, left elb.Balancers, before *ledger.Away) error {
	err := within(ctx, balancerTime, func(ctx context.Context) error { return client.Register(ctx, left, 0) })
	if err != nil {
		return fmt.Errorf("the next run that ends healthy registers this host again: %w", err)
	}
	r.Ledger.Away = before
	return r.Save()
}

// registered returns the load balancers with which the host is registered. It changes nothing.
func (r *Run) registered(ctx context.Context, all elb.Balancers) (client *elb.Client, in elb.Balancers, err error) {
	err = within(ctx, balancerTime, func(ctx context.Context) (err error) {
		if client, err = r.Open(ctx); err == nil {
			in, err = client.Registered(ctx, all)
		}
		return err
	})
	return client, in, err
}

// Enter registers the host again with the load balancers that this run or an earlier one left, if the deployed pair is
// healthy. result is the error of the run so far.
func (r *Run) Enter(ctx context.Context, result error) error {
	away := r.Ledger.Away
	if away == nil || r.Host.Alone != "" {
		return nil
	}
	back := elb.Balancers{Names: away.Names, TargetGroups: away.TargetGroups}
	switch {
	case r.Test:
		r.Record.Note("would register this host again with %s, which run %s left", back, away.Run)
		return nil
	case r.Open == nil:
		return nil
	case ctx.Err() != nil || !r.mayServe(result):
		r.Record.Note("this host stays out of %s, which run %s left; the next run that ends healthy registers it again", back,
			away.Run)
		return nil
	}
	if err := r.enterThose(ctx, *away, back); err != nil {
		return exit.WithCode(exit.Failed, withHints(
			fmt.Errorf("this host is not back in its load balancers, which run %s left: %w", away.Run, err),
			"the next run tries it again: corpus-agent deploy; or register it by hand: corpus-agent elb register"))
	}
	return nil
}

// mayServe reports whether a run with this result left the host with a deployed release that may serve.
func (r *Run) mayServe(result error) bool {
	switch exit.Code(result) {
	case exit.OK, exit.RolledBack, exit.Unreachable, exit.Refused:
		l := r.Ledger
		return l.Good != nil && l.Running == nil && l.Failing == nil && l.Serving == nil
	}
	return false
}

func (r *Run) enterThose(ctx context.Context, away ledger.Away, back elb.Balancers) error {
	if err := r.Healthy(ctx); err != nil {
		return err
	}
	err := r.Record.Stage(enterStage, back.String(), func() error {
		return within(ctx, r.Host.Config.ELB.Timeout+balancerTime, func(ctx context.Context) error {
			client, err := r.Open(ctx)
			if err != nil {
				return err
			}
			if client.Instance != away.Instance {
				r.Record.Note("%s left %s, and this host is %s: it is not registered with them", away.Instance, back,
					client.Instance)
				return nil
			}
			return client.Register(ctx, back, r.Host.Config.ELB.Timeout)
		})
	})
	if err != nil {
		return err
	}
	r.Ledger.Away = nil
	return r.Save()
}

// Show notes what a deploy of a pair would do about load balancers.
func (r *Run) Show(pair ledger.Pair) {
	if r.balances(pair) && r.Open != nil {
		r.Record.Note("would deregister this host from %s, as far as it is registered there, and register it again once it "+
			"is healthy", r.balancers())
	}
}

// within limits the time for responses of load balancers.
func within(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ask(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("there was no answer within %s: %w", diag.Elapsed(limit), err)
	}
	return err
}

// withHints adds a hint to those that an error has.
func withHints(err error, hint string) error {
	hints := append(diag.HintsOf(err), hint)
	return diag.Balancer.Hint(err, "%s", strings.Join(slices.Compact(hints), "\n"))
}
