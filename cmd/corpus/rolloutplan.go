package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// planFlags are the flags that change a plan. A flag that is not given leaves its part of the plan unchanged.
type planFlags struct {
	waves, haltAt, atOnce, healthy   string
	windows, canaries, last, regions []string
	given                            func(name string) bool
}

func (f *planFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.waves, "waves", "",
		"waves as [NAME=]SHARE[:WAIT],..., such as 1%:1h,10%:4h,50%:12h,100%; shares count all hosts up "+
			"to that wave, except those of --canary and --last")
	flags.StringVar(&f.haltAt, "halt-at", "", "stop at so many failed hosts, at such a share of them, or at both, such "+
		"as 2,5%")
	flags.StringVar(&f.atOnce, "at-once", "", "hosts of a cluster that deploy at the same time at most, such as 25%")
	flags.StringVar(&f.healthy, "healthy", "", "hosts of a wave that have to be healthy before the next one begins, "+
		"such as 80%")
	flags.StringArrayVar(&f.windows, "window", nil,
		`hours in which hosts may take a release, such as "Mon-Thu 09:00-16:00 Europe/Paris"; may be repeated`)
	flags.StringArrayVar(&f.canaries, "canary", nil,
		"hosts that are always in the first wave, on top of its share of the others, such as 'myapp-production-*-1'; "+
			"may be repeated")
	flags.StringArrayVar(&f.last, "last", nil, "hosts that are always in the last wave, on top of its share of the "+
		"others; may be repeated")
	flags.StringSliceVar(&f.regions, "regions", nil, "the hosts of these regions in this order; the others follow")
	f.given = func(name string) bool { return flags.Changed(name) }
}

// planFlagNames returns the names of the flags of planFlags.
func planFlagNames() []string {
	return []string{"waves", "halt-at", "at-once", "healthy", "window", "canary", "last", "regions"}
}

// any reports whether one of the flags was given.
func (f *planFlags) any() bool {
	return slices.ContainsFunc(planFlagNames(), f.given)
}

// change sets the parts of a plan for which a flag was given, and returns every mistake in the flags and in the plan.
func (f *planFlags) change(p *rollout.Plan) error {
	errs := []error{
		parsed(f, "waves", f.waves, rollout.ParseWaves, &p.Waves),
		parsed(f, "halt-at", f.haltAt, rollout.ParseHalt, &p.Halt),
		parsed(f, "at-once", f.atOnce, rollout.ParseShare, &p.AtOnce),
		parsed(f, "healthy", f.healthy, rollout.ParseShare, &p.Healthy),
	}
	if f.given("window") {
		p.Windows = nil
		for _, w := range written(f.windows) {
			p.Windows = append(p.Windows, rollout.Window(w))
		}
		if len(p.Windows) == 1 && p.Windows[0] == "always" {
			p.Windows = nil
		}
	}
	listed(f, "canary", f.canaries, &p.First)
	listed(f, "last", f.last, &p.Last)
	listed(f, "regions", f.regions, &p.Regions)
	return exit.WithCode(exit.Usage, errors.Join(append(errs, p.Check())...))
}

// parsed parses the text of a flag into a part of a plan. A part that cannot be parsed stays unchanged, so that the
// mistakes in the others are found as well.
func parsed[T any](f *planFlags, name, text string, parse func(string) (T, error), into *T) error {
	if !f.given(name) {
		return nil
	}
	value, err := parse(text)
	if err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	*into = value
	return nil
}

func listed(f *planFlags, name string, items []string, into *[]string) {
	if f.given(name) {
		*into = written(items)
	}
}

// written returns the items that are not empty. A list of one empty item therefore empties the list of the plan.
func written(items []string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(s string) bool { return strings.TrimSpace(s) == "" })
}

func (p *program) projectRolloutCommand() *cobra.Command {
	var flags planFlags
	none, isNew, agent := false, false, ""
	c := &cobra.Command{
		Use:   "rollout PROJECT CHANNEL",
		Short: "Let a release reach the hosts of a channel in waves that stop by themselves",
		Long: `rollout writes the plan by which the hosts of a channel take a release: waves of hosts, how long each waits, and at how many
failed hosts the rollout stops. From then on promote, point and publish --channel start a rollout of the channel. Without flags
rollout shows the plan.

What is not given stays as the channel has it; a channel without a plan begins with the default one:
--waves 1%:1h,10%:4h,50%:12h,100% --halt-at 2,5% --at-once 25% --healthy 80%. An empty --canary, --last or --regions empties that
list; --window always does it for windows.

The plan names the version of the agent that it takes: the one of this corpus, or --agent. A rollout does not start while hosts
report an older one, since agents that know no plans take a release at once.

It is written into targets, and takes the targets key: who has only the project's key cannot change it. docs/rollouts.md
explains what hosts do with it.`,
		Example: `  corpus project rollout myapp production --waves 1%:1h,10%:4h,50%:12h,100% --halt-at 2,5% --store s3://bucket/prefix --keys keys
  corpus project rollout myapp production --canary 'myapp-production-*-1' --window "Mon-Thu 09:00-16:00 Europe/Paris" --store s3://bucket/prefix --keys keys
  corpus project rollout myapp production --regions uswest2,useast1 --at-once 10% --store s3://bucket/prefix --keys keys
  corpus project rollout myapp production --json --store s3://bucket/prefix --trust-root keys/root.json
  corpus project rollout myapp production --none --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			ref := artifact.Ref{Project: args[0], Channel: args[1]}
			switch {
			case none:
				return p.setPlan(c.Context(), ref, nil, isNew)
			case !flags.any() && !flags.given("agent"):
				return p.showPlan(c.Context(), ref)
			}
			return p.setPlan(c.Context(), ref, func(plan *rollout.Plan) error {
				if flags.given("agent") {
					plan.Agent = agent
				}
				plan.Agent = cmp.Or(plan.Agent, cli.Version)
				return flags.change(plan)
			}, isNew)
		},
	}
	flags.add(c)
	c.Flags().StringVar(&agent, "agent", "", "version of the agent that every host needs before a rollout starts; '' "+
		"for that of this corpus")
	c.Flags().BoolVar(&none, "none", false, "remove the plan: all hosts take a release at once")
	newChannelFlag(c, &isNew)
	for _, name := range append(planFlagNames(), "agent") {
		c.MarkFlagsMutuallyExclusive("none", name)
	}
	p.draftFlag(c)
	return c
}

func (p *program) setPlan(ctx context.Context, ref artifact.Ref, change func(*rollout.Plan) error, isNew bool) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	publisher.New = isNew
	if change == nil {
		if err := mayEndPlan(ctx, publisher, ref); err != nil {
			return err
		}
	}
	result, err := projects.Rollout(ctx, publisher, ref, change)
	if err != nil {
		return code(err)
	}
	if n, err := publisher.View(ctx); err == nil && result.Plan != nil {
		p.warnOfChannel(ctx, n.Client, ref, "the plan counts once it is made")
		p.warnOfLimit(ctx, publisher, ref, result.Plan.Halt)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	text := planText(result)
	if result.Underway != nil && result.Plan != nil {
		text += fmt.Sprintf("\nits rollout of %s continues with this plan; %s", diag.Stamp(result.Underway.At),
			sameWaves(*result.Underway, *result.Plan))
	}
	return p.answer(result, "%s", text)
}

// sameWaves says what becomes of the waves of a rollout whose plan changed.
func sameWaves(s rollout.Start, p rollout.Plan) string {
	text := "its hosts stay in the waves that they had when it started"
	if !hosts.Divided(p, s) {
		text = "the plan has another number of waves, so its hosts are divided into waves again"
	}
	if s.Order == nil {
		return text + "; an older corpus started it, so changes of --canary, --last and --regions move its hosts at once"
	}
	return text + "; --canary, --last and --regions count from the next rollout on"
}

// mayEndPlan returns an error if a rollout by the plan is not complete: without the plan, every other host would take
// the release at once.
func mayEndPlan(ctx context.Context, publisher *publish.Publisher, ref artifact.Ref) error {
	n, err := publisher.View(ctx)
	if err != nil {
		return err
	}
	plan, err := n.Client.Rollout(ref)
	if err != nil || plan == nil {
		return err
	}
	u, err := loadRollout(ctx, n.Client, publisher.Store, ref)
	switch {
	case errors.Is(err, errNoRollout), errors.Is(err, trust.ErrNoChannel), u != nil && u.rollout.Start.Aborted,
		err == nil && u.arrived():
		return nil
	}
	state := "whose hosts cannot be seen"
	if err == nil {
		state, _ = u.next(1, 0)
		state = "which is " + state
	}
	return exit.WithCode(exit.Refused, diag.Rollout.Hint(fmt.Errorf(
		"a rollout of %s has not arrived, %s: without a plan every host would take the release at once", ref, state),
		"end it first with `corpus rollout abort %s %s`, or let it arrive (`corpus rollout status`)", ref.Project,
		ref.Channel))
}

func (p *program) showPlan(ctx context.Context, ref artifact.Ref) error {
	client, done, err := p.reader(ctx)
	if err != nil {
		return err
	}
	defer done()
	result, err := projects.Plan(client, ref)
	if err != nil {
		return err
	}
	p.warnOfChannel(ctx, client, ref, "no host follows it")
	return p.answer(result, "%s", planText(result))
}

// warnOfChannel warns of a channel that does not exist, with what that means and the channels that the project has. If
// they cannot be read, it says nothing: the plan is right all the same.
func (p *program) warnOfChannel(ctx context.Context, client *trust.Client, ref artifact.Ref, means string) {
	l, err := client.ListOne(ctx, ref.Project)
	if err != nil || l.Err != nil {
		return
	}
	if _, there := l.Channels[ref.Channel]; there {
		return
	}
	has := "none yet"
	if all := slices.Sorted(maps.Keys(l.Channels)); len(all) > 0 {
		has = trust.Printable(named(all, mostNamed))
	}
	fmt.Fprintf(p.Err, "warning: %s has no channel %s: %s (corpus promote, corpus point); its channels: %s\n", ref.Project,
		ref.Channel, means, has)
}

// planText returns a plan as text for people.
func planText(r projects.Planned) string {
	if r.Plan == nil {
		return fmt.Sprintf("%s has no rollout plan: its hosts take a release as soon as they see it", r.Ref)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s rolls out in %s, of at least %s\n", r.Ref, diag.Count(len(r.Plan.Waves), "wave"),
		rollout.Duration(r.Plan.Least()))
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for i, wave := range r.Plan.Waves {
		after := ""
		if i < len(r.Plan.Waves)-1 {
			after = fmt.Sprintf("\tthen %s after %s of them are healthy", wave.Soak, r.Plan.Healthy)
		}
		fmt.Fprintf(w, "  wave %s\t%s of the hosts%s\n", trust.Printable(r.Plan.WaveName(i)), wave.Share, after)
	}
	_ = w.Flush() // a strings.Builder never returns an error
	fmt.Fprintf(&b, "  stops at %s, %s of a cluster at once", haltText(r.Plan.Halt), r.Plan.AtOnce)
	for _, list := range []struct {
		what  string
		items []string
	}{{"always first", r.Plan.First}, {"always last", r.Plan.Last}, {"regions in this order", r.Plan.Regions},
		{"windows", windowTexts(r.Plan.Windows)}} {
		if len(list.items) > 0 {
			fmt.Fprintf(&b, "\n  %s: %s", list.what, trust.Printable(strings.Join(list.items, ", ")))
		}
	}
	if r.Plan.Agent != "" {
		fmt.Fprintf(&b, "\n  takes agents of version %s or newer", trust.Printable(r.Plan.Agent))
	}
	return b.String()
}

// haltText returns the limits of failures at which a rollout halts.
func haltText(h rollout.Halt) string {
	count, share := diag.Count(h.Hosts, "failed host"), fmt.Sprintf("%s of the finished ones (from %d on)", h.Share,
		rollout.ShareCountsFrom)
	switch {
	case h.Hosts > 0 && h.Share > 0:
		return count + " or " + share
	case h.Share > 0:
		return share
	case h.Hosts > 0:
		return count
	}
	return "no limit of failed hosts"
}

func windowTexts(windows []rollout.Window) (texts []string) {
	for _, w := range windows {
		texts = append(texts, string(w))
	}
	return texts
}

// shortly formats a duration for people, rounded to minutes or hours if it is long.
func shortly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return rollout.Duration(d.Round(time.Second)).String()
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
	return rollout.Duration(d.Round(time.Minute)).String()
}
