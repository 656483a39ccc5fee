package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// AskTrust reads the store from a root as a new client does, in a scratch directory, and adds whether its signatures
// verify and when they expire. seen is a directory with the metadata that this machine has seen of the store, so that a
// store that was rolled back is a failure; "" for none. The returned client is nil if the store does not verify. The
// caller must call done.
func (f *Findings) AskTrust(ctx context.Context, s Store, root []byte, seen string) (client *trust.Client,
	done func()) {
	dir, done, err := durable.Scratch()
	if err != nil {
		f.Error("signatures", diag.Disk, err, "make room in the directory for temporary files (TMPDIR)")
		return nil, func() {}
	}
	if client, err = follow(ctx, s, root, dir, seen); err == nil {
		f.OK("signatures", "all metadata is signed as root version %d demands", client.Trusted().Root.Signed.Version)
		if !f.expiry(client.Expiries(), s.Now()) {
			f.firstExpiry(client.Expiries())
		}
		return client, done
	}
	f.signatures(err)
	kept, _ := trust.KeptExpiries(dir)
	if !f.expiry(kept, s.Now()) {
		f.Skip("expiry", "the metadata does not verify, and so not all dates are known")
	}
	return nil, done
}

// follow opens a client in dir that trusts root, and reads the newest metadata.
func follow(ctx context.Context, s Store, root []byte, dir, seen string) (*trust.Client, error) {
	if err := trust.Pin(dir, root); err != nil {
		return nil, err
	}
	if seen != "" {
		if err := trust.Remind(dir, seen, root); err != nil {
			return nil, err
		}
	}
	client, err := trust.Open(s, dir, s.Now)
	if err != nil {
		return nil, err
	}
	return client, client.Refresh(ctx)
}

// signatures adds the reason why the store's metadata does not verify.
func (f *Findings) signatures(err error) {
	cures := map[trust.Check]string{
		trust.CheckPin: "the root of this machine is not that of the store: compare both with the root.json of those " +
			"who publish",
		trust.CheckExpiry:    "renew the signatures with the keys of the store: corpus refresh",
		trust.CheckClock:     "set the clock of this machine: timedatectl set-ntp true",
		trust.CheckVersion:   "the store is older than what this machine has seen: docs/trust.md says how that happens",
		trust.CheckSignature: "do not deploy from this store until you know who changed it: docs/trust.md",
	}
	cure := "see docs/trust.md"
	var refused *trust.Refused
	if errors.As(err, &refused) && cures[refused.Check] != "" {
		cure = cures[refused.Check]
	}
	f.Error("signatures", diag.Metadata, err, cure)
}

// expiry adds the signatures that have expired or expire soon, and reports whether there are any.
func (f *Findings) expiry(all []trust.Expiry, now time.Time) (found bool) {
	for _, e := range all {
		day := e.Expires.UTC().Format(time.DateOnly)
		switch {
		case now.After(e.Expires):
			f.Fail("expiry", diag.Metadata, e.Remedy(),
				"the signature of %s expired on %s: hosts take no new release", e.Role, day)
		case e.Soon(now):
			f.Warn("expiry", diag.Metadata, e.Remedy()+", every day from a timer: docs/trust.md#a-timer-for-it",
				"the signature of %s expires on %s", e.Role, day)
		default:
			continue
		}
		found = true
	}
	return found
}

// firstExpiry adds the signature that expires first.
func (f *Findings) firstExpiry(all []trust.Expiry) {
	if len(all) > 0 {
		f.OK("expiry", "the first signature to expire is that of %s, on %s", all[0].Role,
			all[0].Expires.UTC().Format(time.DateOnly))
	}
}

// AskChannels adds the releases that the channels of a host name.
func (f *Findings) AskChannels(ctx context.Context, client *trust.Client, channels ...artifact.Ref) {
	for _, ref := range channels {
		release, err := client.Resolve(ctx, ref)
		var withdrawn *trust.Withdrawn
		switch {
		case err == nil:
			f.OK("channel", "%s names %s", ref, release)
		case errors.As(err, &withdrawn):
			f.Warn("channel", diag.Withdrawn, "publish or point the channel at another release: corpus point", "%v", err)
		case ref.Project == artifact.Base && errors.Is(err, trust.ErrNoProject):
			f.Skip("channel", "the store has no %s: this host deploys its service alone", ref)
		default:
			f.Error("channel", diag.Unpublished, err,
				"publish to the channel, or correct channels in agent.yaml: corpus ls shows all")
		}
	}
}
