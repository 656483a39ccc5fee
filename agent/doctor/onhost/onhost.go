// Package onhost checks a host: its configuration, identity, root of trust, units, disks, links and last run, and the
// store as this host sees it. It changes nothing on the host and nothing in the store.
package onhost

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/doctor"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Host is a host that is examined.
type Host struct {
	inspect.Host
	// OpenStore opens the store of a URL.
	OpenStore func(url string) (store.Store, error)
	// Mistakes and Warnings are the results of config.Check.
	Mistakes, Warnings diag.List

	found  *doctor.Findings
	status inspect.Status
	book   *ledger.Ledger  // empty if it cannot be read
	id     grains.Identity // the zero value if it is not known
	anchor []byte          // the root that this host trusts; nil for none, or if only its digest is known
}

// Examine makes all checks, in the order in which a run depends on them.
func (h *Host) Examine(ctx context.Context) (*doctor.Findings, error) {
	h.found = &doctor.Findings{}
	h.configuration()
	h.control()
	status, err := h.Status()
	if err != nil {
		h.found.Error("records", diag.Records, err, "docs/troubleshooting.md says how records of the agent are restored")
		h.units(ctx)
		h.disks()
		return h.found, nil
	}
	h.status = status
	for _, damage := range status.Damaged {
		h.found.Fail("records", diag.Records, damage.Hint, "%s", damage.Text)
	}
	if len(status.Damaged) == 0 {
		h.found.OK("records", "the records of the agent can be read")
	}
	h.identity(ctx)
	h.pillar()
	h.keys()
	h.trust()
	h.store(ctx)
	h.units(ctx)
	h.disks()
	h.links()
	h.lastRun()
	return h.found, ctx.Err()
}

// configuration adds the mistakes and warnings of the configuration.
func (h *Host) configuration() {
	if h.ConfigRefused != nil {
		h.found.Skip("config", "another user can change it, so none of it is read: see control")
		return
	}
	for _, d := range h.Mistakes {
		h.found.Fail("config", diag.Config, cmp.Or(d.Hint, "see docs/configuration.md"), "%s", d.Error())
	}
	for _, d := range h.Warnings {
		h.found.Warn("config", diag.Config, cmp.Or(d.Hint, "see docs/configuration.md"), "%s", d.Error())
	}
	if len(h.Mistakes)+len(h.Warnings) > 0 {
		return
	}
	switch file := h.Config.File; {
	case file.Content != nil:
		h.found.OK("config", "%s has no mistakes", h.Layout.Inside(file.Path))
	case walk.Misplaced(file.Path):
		h.found.Fail("config", diag.ConfigLost,
			"write the settings into a file there again, or remove the link: all settings have their "+
				"defaults now", "%s is a symbolic link that leads nowhere", h.Layout.Inside(file.Path))
	default:
		h.found.OK("config", "there is no configuration file, and all settings have their defaults")
	}
}

// identity adds the identity of the host.
func (h *Host) identity(ctx context.Context) {
	book, err := h.ReadLedger()
	if err != nil {
		h.book = &ledger.Ledger{}
		h.found.Error("identity", diag.Records, err, "docs/troubleshooting.md says how records of the agent are restored")
		return
	}
	h.book = book
	id, mismatch, err := h.Who(ctx, grains.Identity{}, book)
	switch {
	case err != nil:
		h.found.Error("identity", diag.Identity, err,
			"set service and instance in agent.yaml, or rename the host: docs/grains.md")
		return
	case mismatch != nil:
		h.found.Warn("identity", diag.Identity, diag.HintOf(mismatch), "%v", mismatch)
	default:
		h.found.OK("identity", "this host is %s", id)
	}
	h.id = id
}

// links adds each difference between the host and the ledger, such as a link that does not lead to the deployed
// release.
func (h *Host) links() {
	drift := slices.Clone(h.status.Drift)
	switch s := h.status; {
	case s.Running != nil:
		h.found.Skip("links", "a run is under way, and it moves them")
	case s.CutShort != nil:
		h.found.Warn("links", diag.Rollback, "corpus-agent deploy finishes or undoes it; the timer does that, too",
			"a run was interrupted")
	case s.Deployed == nil && s.BaseAlone == nil:
		h.found.Skip("links", "nothing is deployed")
	case len(drift) == 0:
		h.found.OK("links", "next and current lead to what is deployed")
	}
	for _, text := range drift {
		h.found.Warn("links", diag.Changed, "corpus-agent deploy, which the timer does; corpus-agent why says more",
			"%s", text)
	}
}

// lastRun adds the outcome of the last run.
func (h *Host) lastRun() {
	last := h.status.LastRun
	switch {
	case last == nil:
		h.found.Skip("last run", "none is remembered that this user may see")
	case last.Exit == exit.OK:
		h.found.OK("last run", "%s ended well at %s", last.Command, diag.Stamp(last.Ended))
	default:
		h.found.Warn("last run", diag.Run, cmp.Or(last.Hint, "corpus-agent why, and corpus-agent report"),
			"%s ended with code %d: %s",
			last.Command, last.Exit, last.Error)
	}
}

// store adds findings about the access of this host to the store.
func (h *Host) store(ctx context.Context) {
	url := cmp.Or(h.Config.Store, h.book.Host.Store) // the one of its last run
	if url == "" {
		h.found.Fail("store", diag.StoreURL, "give --store URL once, or set store in agent.yaml", "this host knows no store")
		return
	}
	opened, err := h.OpenStore(url)
	if err != nil {
		h.found.Error("store", diag.StoreURL, err, "correct store in agent.yaml")
		return
	}
	s := doctor.Store{Store: opened, URL: redact.URLs(url), Now: h.Time}
	if !h.found.AskStore(ctx, s) || ctx.Err() != nil {
		return
	}
	h.rights(ctx, s)
	h.signatures(ctx, s)
}

// errNone is the error of a host without a root of trust.
var errNone = errors.New("this host has no root of trust")
