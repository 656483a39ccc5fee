package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// rolloutMove is a command that signs a move of a rollout, such as pause.
type rolloutMove struct {
	name, short, long string
	urgent            *bool // value of the flag --urgent; nil for none
	do                func(ctx context.Context, publisher *publish.Publisher,
		ref artifact.Ref) (releases.Steered, string, error)
}

func (p *program) rolloutMoveCommand(m rolloutMove) *cobra.Command {
	c := &cobra.Command{
		Use:     m.name + " PROJECT CHANNEL",
		Short:   m.short,
		Long:    m.long + "\n\nIt is a move of the channel, and takes the project's key and those of snapshot and timestamp.",
		Example: exampleOf(m.name) + "\n" + exampleOf(m.name) + " --draft myapp.draft",
		Args:    cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			result, text, err := m.do(c.Context(), publisher, artifact.Ref{Project: args[0], Channel: args[1]})
			if err != nil {
				return code(err)
			}
			if p.drafted != nil {
				return p.answerDraft()
			}
			return p.answer(result, "%s", text)
		},
	}
	if m.urgent != nil {
		c.Flags().BoolVar(m.urgent, "urgent", false, "also a rollout that has arrived: all its hosts go back at once")
	}
	p.byFlag(c)
	p.draftFlag(c)
	return c
}

func (p *program) rolloutMoveCommands() []*cobra.Command {
	var commands []*cobra.Command
	urgent := false
	for _, m := range []rolloutMove{
		{"pause", "Stop a rollout until it is resumed",
			"pause stops more hosts from taking the release. Hosts that have begun continue, and those that have it keep it.",
			nil, pauseRollout},
		{"resume", "Let a rollout continue that was paused or has stopped",
			`resume lets a rollout continue that was paused, or that stopped at its limit. Where it stopped, failures up to now count no more:
it stops again when the limit is reached by later ones. Look at them first (corpus rollout status).`, nil, p.resumeRollout},
		{"abort", "End a rollout, and point the channel back",
			`abort points the channel at the version that it named before the rollout, at once and for all hosts: those that have taken the
release go back by themselves, and undo what its states changed, as corpus-agent rollback --converge does. The release is not
quarantined there: another rollout may bring it.

A rollout that has arrived, since enough hosts of each wave are healthy, is refused: corpus rollout back goes back in waves. With
--urgent abort goes back from it, too.

A channel that requires proof (corpus project require) requires it of the version before, too.`, &urgent,
			func(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) (releases.Steered, string, error) {
				return abortRollout(ctx, publisher, ref, urgent)
			}},
		{"skip-wave", "Let the next wave begin without waiting for the one before",
			`skip-wave opens the first wave that is still waiting: neither the time nor the healthy hosts of the waves before it are waited for.
Windows and limits of failed hosts continue to count.`, nil, skipWave},
	} {
		commands = append(commands, p.rolloutMoveCommand(m))
	}
	return commands
}

func pauseRollout(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) (releases.Steered, string,
	error) {
	u, err := publisherRollout(ctx, publisher, ref)
	known := err == nil && !u.rollout.Start.Aborted // otherwise a person may pause it nevertheless
	if known && u.isOver() && u.waiting() == 0 {
		return releases.Steered{}, "", u.over("there is nothing to pause", "")
	}
	if known && u.halted() {
		return releases.Steered{}, "", u.refusal("is halted, so no more hosts take the release: there is nothing to pause",
			fmt.Sprintf("after a repair of the hosts `corpus rollout resume %[1]s %[2]s` continues, and `corpus rollout "+
				"abort %[1]s %[2]s` rolls back", ref.Project, ref.Channel))
	}
	result, err := releases.Pause(ctx, publisher, ref)
	return result, fmt.Sprintf("the rollout of %s is paused: no more hosts take %s", ref, result.Version), err
}

func abortRollout(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref, urgent bool) (releases.Steered,
	string, error) {
	if u := reached(ctx, publisher, ref); u != nil && !urgent {
		return releases.Steered{}, "", u.over("abort would take every host back at once",
			fmt.Sprintf("; `corpus rollout abort %s %s --urgent` goes back at once", ref.Project, ref.Channel))
	}
	result, err := releases.Abort(ctx, publisher, ref)
	return result, fmt.Sprintf("the rollout of %s is aborted: it is %s again, and hosts that took the release go back",
		ref, result.Version), err
}

// resumeRollout resumes a rollout. It forgives earlier failures only if they have stopped the rollout.
func (p *program) resumeRollout(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) (releases.Steered,
	string, error) {
	u, err := publisherRollout(ctx, publisher, ref)
	if err != nil {
		return releases.Steered{}, "", err
	}
	if err := u.mayContinue(); err != nil {
		return releases.Steered{}, "", err
	}
	forget := u.stopsAt()
	result, err := releases.Resume(ctx, publisher, ref, forget)
	text := fmt.Sprintf("the rollout of %s continues", ref)
	if !forget.IsZero() {
		text += "; earlier failures no longer count"
	}
	return result, text, err
}

// stopsAt returns the time up to which failures have to be forgiven so that the rollout continues; zero if no failure
// stops it. The store's clock may be ahead of the local clock, so the time is after all results in the store.
func (u *activeRollout) stopsAt() time.Time {
	if !u.halted() {
		return time.Time{}
	}
	last := u.now
	for _, said := range append(u.seen.Results, u.seen.Halts...) {
		if said.At.After(last) {
			last = said.At
		}
	}
	return last.Add(time.Second)
}

// halted reports whether failures stop a rollout, also if it is paused as well.
func (u *activeRollout) halted() bool { return halts(u.verdict(len(u.plan.Waves) - 1)) }

// refusal returns the error for a move that a rollout does not take now.
func (u *activeRollout) refusal(why, hint string) error {
	return exit.WithCode(exit.Usage, diag.Rollout.Hint(fmt.Errorf("the rollout of %s to %s %s",
		trust.Printable(u.version), u.ref, why), "%s", hint))
}

// mayContinue returns an error for a rollout whose release is withdrawn: no host takes it.
func (u *activeRollout) mayContinue() error {
	if !u.yanked || u.rollout.Start.Aborted {
		return nil
	}
	return u.refusal("brings a release that is withdrawn, so it cannot continue", fmt.Sprintf("%s; if the "+
		"release is good: `corpus yank %s %s --undo`", u.wayBack(), u.ref.Project, trust.Printable(u.version)))
}

func skipWave(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) (releases.Steered, string, error) {
	u, err := publisherRollout(ctx, publisher, ref)
	if err != nil {
		return releases.Steered{}, "", err
	}
	if err := u.mayContinue(); err != nil {
		return releases.Steered{}, "", err
	}
	at := u.waitsAt()
	if at == len(u.plan.Waves) {
		return releases.Steered{}, "", exit.WithCode(exit.Usage, diag.Rollout.Hint(
			fmt.Errorf("every wave of the rollout of %s has begun", ref),
			"`corpus rollout status` shows which hosts it waits for"))
	}
	if v := u.verdict(at); v.Reason != rollout.Waits && v.Reason != rollout.TooFew {
		return releases.Steered{}, "", exit.WithCode(exit.Usage, diag.Rollout.Hint(
			fmt.Errorf("%s does not wait for a wave: %s", ref, v), "`corpus rollout status` shows what it waits for"))
	}
	result, err := releases.SkipWaves(ctx, publisher, ref, at)
	return result, fmt.Sprintf("wave %s of the rollout of %s begins now", u.plan.WaveName(at), ref), err
}

// exampleOf returns the shortest command line of a move, for help texts.
func exampleOf(move string) string {
	return strings.Join([]string{"  corpus", "rollout", move, "myapp production --store s3://bucket/prefix --keys keys"},
		" ")
}
