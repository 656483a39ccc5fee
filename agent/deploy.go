package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// resolveTimeout is how long the store may take to say what there is to run.
const resolveTimeout = 5 * time.Minute

// Deploy brings the host to the releases that its channels name, or converges what is current when
// there is nothing new. With test it changes nothing. Names that no host can have are refused before there is a
// lock or a report.
func (a *Agent) Deploy(ctx context.Context, given Given, test bool) (*report.Report, error) {
	if err := (grains.Request{Given: given.Identity}).Check(); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	return a.pass(ctx, "deploy", test, func(r *run) error { return r.orDoubt(r.deploy(ctx, given)) })
}

func (r *run) deploy(ctx context.Context, given Given) error {
	r.only, r.project.Settings = given.Only, given.Settings
	if err := r.introduce(ctx, given); err != nil {
		return err
	}
	refused := r.settleCut(ctx)
	if refused != nil && !r.deploysBaseWithout(refused) {
		return r.baseWithout(ctx, refused)
	}
	if cut := r.ledger.Running; cut != nil && cut.Leaves != nil && !r.test {
		return r.goBack(ctx, cut.Pair, *cut.Leaves) // what somebody asked for comes first
	}
	if !r.only.Has(procedure.ReleaseSync) {
		return r.named(ctx)
	}
	var client *trust.Client
	var pair ledger.Pair
	err := r.record.Stage("resolve", r.identity.String(), func() (err error) {
		// A store that gives a byte now and then would hold the host up for ever.
		return r.limited(ctx, min(resolveTimeout, r.Config.FetchTimeout), func(ctx context.Context) (err error) {
			if client, err = r.connect(ctx, given); err == nil {
				pair, err = r.resolve(ctx, client)
			}
			if err == nil && refused != nil {
				pair, err = r.baseOf(pair, refused)
			}
			return err
		})
	})
	if err != nil {
		if refused != nil && !errors.Is(err, refused) {
			r.record.Note("%v", refused)
		}
		return r.without(ctx, err)
	}
	return r.orTrouble(r.carryOut(ctx, client, pair))
}

// introduce decides who the host is, and keeps what it was given. An identity that contradicts the host's name is not kept,
// nor is what was given with it. Where the host could not find out who it is, since the cloud does not answer yet, a later
// run may.
func (r *run) introduce(ctx context.Context, given Given) error {
	err := r.identify(ctx, given.Identity)
	if err != nil && given.Identity != (grains.Identity{}) {
		return err
	}
	if kept := r.keepGiven(given); err == nil {
		err = kept
	}
	return err
}

// carryOut brings the host to a pair, or converges what is current when there is nothing new.
func (r *run) carryOut(ctx context.Context, client *trust.Client, pair ledger.Pair) error {
	if !pair.BaseAlone() {
		r.report.To = &pair
	}
	keep, err := r.stay(&pair)
	err = errors.Join(err, r.repairLinks(site.ProjectsOf(pair)))
	switch {
	case err != nil:
		return err
	case keep && !r.only.All():
		return r.named(ctx)
	case keep:
		return r.keepServing(ctx)
	}
	held := r.heldOf(pair)
	if err := r.fetch(ctx, client, pair); err != nil {
		return r.withoutOne(ctx, client, pair, err)
	}
	if r.heldMeanwhile(pair) {
		return r.heal(ctx, r.convergeGood(ctx))
	}
	if err := r.suits(pair); err != nil {
		return r.withoutOne(ctx, client, pair, err)
	}
	if err := r.soundBefore(ctx, pair, held); err != nil {
		return err
	}
	r.noteUnread(pair)
	if r.test {
		return r.rehearse(ctx, pair)
	}
	if !r.only.Has(procedure.Converge) && !r.only.Has(procedure.Install) {
		r.record.Note("%s is fetched; converge and install were not asked for, so it is not made current", pair)
		return nil
	}
	if err := r.project.Archive(ctx, pair); err != nil {
		return r.without(ctx, err)
	}
	return r.apply(ctx, pair)
}

// fetch brings the releases of a pair onto the disk.
func (r *run) fetch(ctx context.Context, client *trust.Client, pair ledger.Pair) error {
	return r.record.Stage("fetch", pair.String(), func() error {
		return r.limited(ctx, r.Config.FetchTimeout, func(ctx context.Context) error { return r.fetcher(client).Fetch(ctx, pair.Releases()) })
	})
}

// identify decides who the host is and remembers what was given.
func (r *run) identify(ctx context.Context, given grains.Identity) error {
	if r.Alone != "" {
		return r.identifyAlone(ctx)
	}
	id, doubt, err := r.Who(ctx, given, r.ledger)
	if err != nil {
		return err
	}
	if r.identity = id; doubt != nil {
		r.doubt(doubt)
	}
	if err := r.project.Enter(r.identity.Service); err != nil {
		return err
	}
	r.noteIdentity(given)
	return nil
}

// noteIdentity remembers who a person said the host is.
func (r *run) noteIdentity(given grains.Identity) {
	if given.Service != "" {
		h := &r.ledger.Host
		h.Service, h.Instance, h.Region, h.Node = given.Service, given.Instance, given.Region, given.Node
	}
}

// identifyAlone is identify for a project that is not the host's service. Its instance is that of the
// host, where the host has one.
func (r *run) identifyAlone(ctx context.Context) error {
	host, err := r.ReadHostLedger()
	if err != nil {
		return err
	}
	r.identity, _, err = r.Who(ctx, grains.Identity{}, host)
	if err != nil {
		r.identity = grains.Identity{Instance: r.Config.Instance} // nobody knows who the host is, and a project does not need it
	}
	r.identity.Service = r.Alone
	return r.project.Enter(r.Alone)
}

// linked reports whether the links say what the ledger says.
func (r *run) linked(p ledger.Pair) bool {
	for _, release := range p.Releases() {
		s, err := link.Of(r.LayoutOf(release.Project)).Read()
		if err != nil || s.Current != release.Dir() || s.Next != release.Dir() || !r.Held().Has(release) {
			return false
		}
	}
	return r.Alone != "" || r.namesLead(p)
}

// namesLead reports whether /srv/base and /srv/service lead to the projects of a pair.
func (r *run) namesLead(p ledger.Pair) bool {
	names := map[string]layout.Project{}
	if !p.BaseAlone() {
		names[r.Layout.ServiceLink()] = r.LayoutOf(p.Service.Project)
	}
	if p.Base != nil {
		names[r.Layout.BaseLink()] = r.LayoutOf(p.Base.Project)
	}
	for path, project := range names {
		if target, err := os.Readlink(path); err != nil || target != project.LinkTarget() {
			return false
		}
	}
	return true
}

// without goes on when the store did not give what the host is to run: an interrupted deploy is
// finished from what is on disk, and else what is current converges. The store's failure stays the
// result of the run, unless states fail as well.
func (r *run) without(ctx context.Context, cause error) error {
	if stopped(ctx) {
		return cause
	}
	cause = explainReach(cause)
	var err error
	switch cut := r.ledger.Running; {
	case cut != nil && !r.test && r.Held().Has(cut.Pair.Releases()...): // what cannot be read is taken up by a later run
		err = r.apply(ctx, cut.Pair)
	case r.ledger.Runs() != nil && (exit.Code(cause) != exit.Usage || errors.Is(cause, errLost)):
		r.record.Note("converging what is current: %v", cause)
		err = r.convergeGood(ctx)
	default:
		return cause
	}
	if errors.Is(err, errGone) {
		return exit.WithCode(exit.Code(cause), diag.WithHint(fmt.Errorf("%w; and nothing could converge meanwhile: %w", cause, err), "%s", diag.HintOf(cause)))
	}
	if err != nil {
		return err
	}
	return cause
}

// explainReach says what to look at when the store did not give what was asked of it.
func explainReach(err error) error {
	switch {
	case diag.HintOf(err) != "":
		return err
	case errors.Is(err, store.ErrUnreachable):
		return diag.WithHint(err, "see whether this host reaches the store; the next run tries again")
	case errors.Is(err, store.ErrNotFound):
		return diag.WithHint(err, "see that the store's URL is right, and what `corpus verify` says of it")
	}
	return err
}

// rehearse is the dry run of a deploy: states as they would run, no link, no hook.
func (r *run) rehearse(ctx context.Context, pair ledger.Pair) error {
	if runs := r.ledger.Runs(); runs == nil || !runs.Same(pair) {
		r.record.Note("would deploy %s", pair)
		r.showActs(ctx, pair)
		r.noteInterpreters(pair)
	}
	return r.converge(ctx, pair)
}
