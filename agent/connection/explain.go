package connection

import (
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// ErrLost is the reason why a host with a deployed release does not read the store: it lost the store's URL or the
// root of trust. Such a host continues with the releases on its disk.
var ErrLost = errors.New("this host has lost the URL of its store")

// noStoreError returns the error of a host for which no store is configured. err is the error for a new host.
func (r *Run) noStoreError(err error) error {
	if r.Ledger.Runs() == nil {
		return exit.WithCode(exit.Usage, err)
	}
	return exit.WithCode(exit.Usage, diag.Store.Hint(ErrLost, "%s", diag.HintOf(err)))
}

// noRootError returns the error of a host without a root of trust. A host that has lost its root never takes another
// one from the store, since it would trust any server that answers. given is the identity on the command line, which
// the hint repeats.
func (r *Run) noRootError(given grains.Identity) error {
	before, err := trust.Bootstrapped(r.Site.Layout.Trust())
	if err != nil {
		return err
	}
	if r.Ledger.Runs() == nil && !before {
		return exit.WithCode(exit.Usage, diag.Root.Hint(errors.New("this host has no root of trust"),
			"give --trust-root once: the keys/root.json of `corpus store init`, or sha256:HEX of it"))
	}
	return diag.Root.Hint(&trust.Refused{Check: trust.CheckPin, Of: "the store",
		Err: errors.New("this host has lost its root of trust, and it is never taken from the store")},
		"give it again, from a place that you trust: %s, where FILE is the keys/root.json of `corpus store init`, or "+
			"sha256:HEX of it", r.Site.Introducing(r.Ledger, given))
}

// ExplainOlder adds the store to the error for metadata that is older than what the host has seen, since the host may
// use another store than before, and says how a host gets the root of a store that has another one. It returns any
// other error unchanged.
func (r *Run) ExplainOlder(err error) error {
	var refused *trust.Refused
	if !errors.As(err, &refused) || refused.Check != trust.CheckVersion && refused.Check != trust.CheckPin {
		return err
	}
	url := redact.URLs(r.URL())
	if refused.Check == trust.CheckPin {
		return diag.Root.Hint(err, "if %s is not the store that is meant: corpus-agent deploy --store URL; if it is, this "+
			"host has the root of another store, or of one that was set up in its place before: get the root.json that those "+
			"who publish here have beside their keys, never from the store; then: rm -r %s; corpus-agent deploy --trust-root "+
			"./root.json", url, r.Site.Layout.Trust())
	}
	return diag.Metadata.Hint(err, "the store %s is older than what this host has seen. To use another one: "+
		"corpus-agent deploy --store URL (or `store` in agent.yaml); else %s", url,
		strings.Replace(refused.Remedy(), "--rebuild`", "--rebuild --store "+url+"`", 1))
}

// ExplainReach adds a hint to the error of a request to the store, unless it has one.
func ExplainReach(err error) error {
	switch {
	case diag.HintOf(err) != "":
		return err
	case errors.Is(err, store.ErrUnreachable):
		return diag.Store.Hint(err, "see whether this host reaches the store; the next run tries again")
	case errors.Is(err, store.ErrNotFound) && ofArtifact(err):
		return diag.StoreLost.Hint(err, "the store lacks a file that is signed: a copy of a store is copied again from "+
			"the publisher's; in the publisher's store `corpus publish` of the same file puts it back; `corpus verify` "+
			"names all that is missing")
	case errors.Is(err, store.ErrNotFound):
		return diag.StoreURL.Hint(err, "check the store's URL, and run `corpus verify`")
	}
	return err
}

// ofArtifact reports whether an error is about an artifact, or a file beside it, which the metadata names.
func ofArtifact(err error) bool {
	failed, is := errors.AsType[*store.Error](err)
	return is && strings.LastIndex(failed.Object, "/deploy/") > strings.LastIndex(failed.Object, "/metadata/")
}
