package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Store is a store to check.
type Store struct {
	store.Store
	URL string           // in the form for messages
	Now func() time.Time // the clock of this machine
}

// mostRead bounds how many bytes of an object the checks read.
const mostRead = 1 << 20

// AskStore reads the timestamp, which every command and run reads first. It adds findings about the address, the
// credentials, the permission to read and the clock, and reports whether the store responds.
func (f *Findings) AskStore(ctx context.Context, s Store) bool {
	began := s.Now()
	_, info, err := store.ReadUpTo(ctx, s, trust.TimestampKey, mostRead)
	clock := info.Now
	var failed *store.Error
	if errors.As(err, &failed) {
		clock = failed.Now
	}
	answers := f.answer(ctx, s, err)
	f.compareClock(began, s.Now(), clock)
	return answers
}

// answer adds the finding about the first request to the store.
func (f *Findings) answer(ctx context.Context, s Store, err error) bool {
	switch {
	case err == nil:
		f.OK("store", "%s answers", s.URL)
		f.OK("credentials", "the store accepts them, or needs none")
		f.OK("read", "metadata/ can be read")
		return true
	case errors.Is(err, store.ErrNoStore):
		f.Error("store", diag.StoreURL, err, "correct the URL of the store, or create the bucket or directory")
	case errors.Is(err, store.ErrCredentials):
		f.OK("store", "%s answers", s.URL)
		f.Error("credentials", diag.Credentials, err,
			"give credentials as docs/configuration.md#stores says; look at the clock, too")
	case errors.Is(err, store.ErrForbidden):
		f.OK("store", "%s answers", s.URL)
		f.Error("read", diag.Credentials, err, "allow s3:GetObject on metadata/* and deploy/*, as docs/buckets.md says")
	case errors.Is(err, store.ErrNotFound):
		f.OK("store", "%s answers", s.URL)
		f.Error("read", diag.StoreLost, err, cureMissing(ctx, s))
	default:
		f.Error("store", diag.Store, err,
			"look at the network, the proxy and the name server of this machine, and at the store")
	}
	return false
}

// cureMissing returns what to do about a store without a timestamp: the timestamp was removed if other metadata exists.
func cureMissing(ctx context.Context, s Store) string {
	for _, err := range s.List(ctx, "metadata/") {
		if err == nil {
			return "the store has other metadata: a holder of the keys signs the timestamp again with " +
				"corpus refresh --rebuild"
		}
	}
	return diag.StoreURL.Coded("the bucket has no store below this prefix: correct the URL, or run corpus store init")
}

// The difference of clocks from which it is a warning, and a failure. S3 refuses requests if the difference is 15
// minutes.
const (
	clockWarning = time.Minute
	clockLimit   = 5 * time.Minute
)

// compareClock compares the clock of this machine, before and after a request, with that of the store, which has whole
// seconds.
func (f *Findings) compareClock(before, after, theirs time.Time) {
	if theirs.IsZero() {
		f.Skip("clock", "the store does not say what time it is")
		return
	}
	off, side := before.Sub(theirs.Add(time.Second)), "ahead of"
	if off < 0 {
		off, side = max(theirs.Sub(after), 0), "behind"
	}
	const cure = "set the clock, and keep it right with chrony or systemd-timesyncd: timedatectl set-ntp true"
	switch off = off.Round(time.Second); {
	case off > clockLimit:
		f.Fail("clock", diag.Clock, cure, "the clock of this machine is %v %s that of the store", off, side)
	case off > clockWarning:
		f.Warn("clock", diag.Clock, cure, "the clock of this machine is %v %s that of the store", off, side)
	default:
		f.OK("clock", "it differs from that of the store by less than a minute")
	}
}

// AskList adds a finding about listing the objects below a prefix. needed names the role that needs it; "" if this host
// does not.
func (f *Findings) AskList(ctx context.Context, s Store, prefix, needed string) {
	var err error
	for _, err = range s.List(ctx, prefix) {
		break
	}
	switch {
	case err == nil:
		f.OK("list", "%s can be listed", prefix)
	case errors.Is(err, store.ErrReadOnly) || errors.Is(err, errors.ErrUnsupported):
		f.Skip("list", "this kind of store cannot be listed")
	case needed != "":
		f.Error("list", diag.Credentials, err, "allow s3:ListBucket for "+needed+", as docs/buckets.md says")
	case errors.Is(err, store.ErrForbidden):
		f.OK("list", "%s cannot be listed, and this host does not need that", prefix)
	default:
		f.Skip("list", "%s: %v", prefix, err)
	}
}
