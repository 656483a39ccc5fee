package onhost

import (
	"cmp"
	"context"
	"crypto/sha256"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/doctor"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// trust adds whether the host has a root of trust.
func (h *Host) trust() {
	root, err := h.root()
	h.anchor = root
	switch {
	case err != nil:
		h.found.Error("trust", diag.Root, err,
			"give it once, from a place that you trust: corpus-agent deploy --trust-root root.json")
	case root == nil:
		h.found.Skip("trust", "a root was given by its digest alone, and no store was verified under it yet")
	default:
		h.found.OK("trust", "a root of trust is there, %s", artifact.NewDigest(sha256.Sum256(root)))
	}
}

// root returns the root that this host trusts: the pinned one, or the one that was given and has verified no store yet.
// It is nil if only its digest was given.
func (h *Host) root() ([]byte, error) {
	dir := h.Layout.Trust()
	pinned, err := trust.Pinned(dir)
	if err != nil {
		return nil, err
	}
	if pinned {
		return trust.ReadRoot(filepath.Join(dir, "root.json"))
	}
	given, err := trust.Given(dir)
	if err != nil {
		return nil, err
	}
	if given == nil {
		return nil, errNone
	}
	if _, err := artifact.ParseDigest(string(given)); err == nil {
		return nil, nil
	}
	return given, nil
}

// signatures follows the store from the root of this host.
func (h *Host) signatures(ctx context.Context, s doctor.Store) {
	if h.anchor == nil {
		h.found.Skip("signatures", "they are verified under a root of trust")
		return
	}
	client, done := h.found.AskTrust(ctx, s, h.anchor, h.Layout.Trust())
	defer done()
	if client == nil || h.id.Service == "" {
		return
	}
	h.found.AskChannels(ctx, client, artifact.Ref{Project: artifact.Base, Channel: h.Config.BaseChannel},
		artifact.Ref{Project: h.id.Service, Channel: cmp.Or(h.Config.ServiceChannel, h.id.Instance)})
}

// rights compares the rights of this host in the store with those that its configuration needs.
func (h *Host) rights(ctx context.Context, s doctor.Store) {
	needed := ""
	if len(h.status.Turns) > 0 {
		needed = "hosts in rollouts"
	}
	if h.id.Service == "" {
		h.found.Skip("list", "the project of this host is not known")
	} else {
		h.found.AskList(ctx, s, "rollouts/"+h.id.Service+"/", needed) // agents list nothing else of a shared prefix
	}
	if !h.Config.UploadReports {
		h.found.Skip("write", "reports.upload is off: this host writes nothing into the store")
		return
	}
	name, err := h.TreeHostname()
	if err != nil || h.id.Service == "" {
		h.found.Skip("write", "who this host is, and so where it writes, is not known")
		return
	}
	prefixes := []string{fleet.Prefix(h.id.Service) + name + "/", hostkey.Prefix + name + "/",
		hostrecord.PrefixOf(h.id.Service) + name + "/"}
	if err := store.CheckKey(prefixes[0] + "doctor"); err != nil {
		h.found.Error("write", diag.Identity, err, "give the host another name")
		return
	}
	registered, err := walk.Exists(h.Layout.HostRegistered())
	if err != nil {
		h.found.Error("records", diag.Records, err, "docs/troubleshooting.md says how records of the agent are restored")
	}
	h.found.AskWrite(ctx, s, "host-reports", registered, prefixes...)
}
