package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) holdCommand() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "hold",
		Short: "Do not deploy new releases; keep converging the deployed ones",
		Long: `hold stops the deployment of new releases until "corpus-agent unhold"; runs keep converging the deployed ones. It
also works during a run: a deploy that has moved links is finished, any other is not started.

A host that is held already keeps its reasons, and the new one is added: hold says so. One unhold ends them all.`,
		Example: `  corpus-agent hold --reason "load test until Friday"`,
		Args:    cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return p.edited(func(a *agent.Agent) (string, error) {
				const done = "held: new releases wait for `corpus-agent unhold`"
				before := heldNow(a)
				if err := a.Hold(reason); err != nil || before == nil {
					return done, err
				}
				return fmt.Sprintf("%s; it was held before, since %s%s: one unhold ends both", done, when(before.Since),
					inBrackets(before.Reason)), nil
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason that the status shows")
	return c
}

func (p *program) unholdCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unhold",
		Short: "Deploy new releases again",
		Args:  cli.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return p.edited(func(a *agent.Agent) (string, error) {
				before := heldNow(a)
				held, err := a.Unhold()
				switch {
				case !held:
					return "this host was not held", err
				case before != nil && before.Reason != "":
					return fmt.Sprintf("no longer held (%s): the next run deploys what the channels name", before.Reason), err
				}
				return "no longer held: the next run deploys what the channels name", err
			})
		},
	}
}

// heldNow returns the hold of a host; nil if there is none, or if that is not known.
func heldNow(a *agent.Agent) *ledger.Hold {
	s, err := a.Status()
	if err != nil {
		return nil // the change reports why
	}
	return s.Hold
}

// inBrackets returns a text after a blank, in brackets; "" for none.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func (p *program) edit(done string, change func(*agent.Agent) error) error {
	return p.edited(func(a *agent.Agent) (string, error) { return done, change(a) })
}

// edited is like edit, for a change that returns its message.
func (p *program) edited(change func(*agent.Agent) (string, error)) error {
	a, err := p.agent(map[string]string{})
	if err != nil {
		return err
	}
	done, err := change(a)
	if err != nil {
		return err
	}
	if s, err := a.Status(); err == nil && s.Running != nil {
		done += fmt.Sprintf("; %s, process %d, is under way and finishes what it has begun", s.Running.Command, s.Running.PID)
	}
	return p.answer(map[string]string{"result": done}, done)
}
