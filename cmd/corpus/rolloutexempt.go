package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// startFlags are the flags of commands that start rollouts.
type startFlags struct {
	urgent  bool
	exempt  []string       // hosts whose agents may be older than the plan requires
	command *cobra.Command // the command that runs
}

func (f *startFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.urgent, "urgent", false,
		"a security fix: a rollout of it waits for no waves and no windows, and still stops where it fails")
	f.addExempt(c)
}

// addExempt adds --exempt alone, for commands that start no urgent rollouts.
func (f *startFlags) addExempt(c *cobra.Command) {
	cli.RepeatedVar(c.Flags(), &f.exempt, "exempt", "", "start the rollout although this host reports an agent that is "+
		"older than the plan requires: it may take the release at once; may be repeated")
	c.PreRun = func(c *cobra.Command, _ []string) { f.command = c }
}

// again returns the command line once more, with further hosts for --exempt. Flags that many commands have, such as
// --store, are left out.
func (f *startFlags) again(exempt []string) string {
	words := append(strings.Fields(f.command.CommandPath()), f.command.Flags().Args()...)
	f.command.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		switch repeated, ok := flag.Value.(*cli.Repeated); {
		case !flag.Changed:
		case ok:
			for _, value := range *repeated {
				words = append(words, "--"+flag.Name, value)
			}
		case flag.Value.Type() == "bool":
			words = append(words, "--"+flag.Name)
		default:
			words = append(words, "--"+flag.Name, flag.Value.String())
		}
	})
	for _, host := range exempt {
		words = append(words, "--exempt", host)
	}
	for i, word := range words {
		words[i] = diag.ShellWord(word)
	}
	return strings.Join(words, " ")
}

// withoutExempt returns the hosts of a channel without those with an older agent that --exempt names, whose names it
// returns as well. It returns an error if others have agents that are older than the plan requires: they would take the
// release at once.
func (f *startFlags) withoutExempt(b publish.Beginning, all []fleet.Follower) (rest []fleet.Follower, ahead []string,
	err error) {
	var old []fleet.Agent
	for _, h := range all {
		switch {
		case b.Plan.Agent == "" || !rollout.Older(h.Agent, b.Plan.Agent):
			rest = append(rest, h)
		case slices.Contains(f.exempt, h.Host):
			ahead = append(ahead, h.Host)
		default:
			old = append(old, fleet.Agent{Host: h.Host, Version: h.Agent})
		}
	}
	if len(old) == 0 {
		return rest, ahead, nil
	}
	return nil, nil, exit.WithCode(exit.Refused, diag.Rollout.Hint(
		fmt.Errorf("%d of %s of %s have agents older than %s, which would take the release at once: %s", len(old),
			diag.Count(len(all), "host"), b.Ref, trust.Printable(b.Plan.Agent), namedHosts(old)),
		"install that version there and wait for their next run; or, where older agents know rollouts, sign a plan with "+
			"`corpus project rollout %s %s --agent VERSION`\n%s", b.Ref.Project, b.Ref.Channel, f.exemptHint(old)))
}

// exemptHint returns how a rollout starts in spite of hosts with older agents.
func (f *startFlags) exemptHint(old []fleet.Agent) string {
	names := []string{"HOST"} // for each, if there are too many for a line
	if len(old) <= mostOnLine {
		names = nil
		for _, a := range old {
			names = append(names, trust.Printable(a.Host))
		}
	}
	return fmt.Sprintf("a user who has the key of a host, or may write its reports, can forge the version (corpus host "+
		"show NAME); to start the rollout all the same, if no host but those named may take the release at once: `%s`",
		f.again(names))
}

// exemptions returns the warnings of --exempt: of hosts that take the release at once, and of names without effect.
func (s *starter) exemptions(made *begun) (texts []string) {
	if len(made.ahead) > 0 {
		texts = append(texts, fmt.Sprintf("the rollout leaves out %s, whose agent may take the release at once: %s",
			diag.Count(len(made.ahead), "exempt host"), strings.Join(made.ahead, ", ")))
	}
	var idle []string
	for _, host := range s.flags.exempt {
		if !slices.Contains(made.ahead, host) {
			idle = append(idle, trust.Printable(host))
		}
	}
	if len(idle) > 0 {
		texts = append(texts, "--exempt changes nothing for hosts that report no older agent: "+strings.Join(idle, ", "))
	}
	return texts
}

// olderAgents returns the entry for hosts of a channel that report older agents than its plan requires, for which
// promotions are refused; false if there are none. It ignores hosts that have reported nothing for so long that a
// promotion ignores them as well.
func olderAgents(client *trust.Client, v *fleet.View, ref artifact.Ref) (fleet.Attention, bool) {
	a := fleet.Attention{What: fleet.OldAgent, Project: ref.Project, Channel: ref.Channel, Hosts: []string{}}
	plan, err := client.Rollout(ref)
	if err != nil || plan == nil || plan.Agent == "" {
		return a, false
	}
	for _, h := range v.Hosts {
		if h.Agent == "" || !h.Follows(ref) || !rollout.Older(h.Agent, plan.Agent) || v.At.Sub(h.Seen) > mayAgain {
			continue
		}
		if a.Hosts = append(a.Hosts, h.Host); a.Since.IsZero() || h.Seen.Before(a.Since) {
			a.Since = h.Seen
		}
	}
	a.Why = fmt.Sprintf("%s: its plan takes agents of version %s or newer, so no rollout starts", ref,
		trust.Printable(plan.Agent))
	a.Hint = "install that version there; if a record is forged (corpus host show NAME): corpus promote with --exempt NAME"
	return a, len(a.Hosts) > 0
}
