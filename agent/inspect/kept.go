package inspect

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// ReleasesOf returns the releases that a ledger names.
func ReleasesOf(book *ledger.Ledger) (list []artifact.Release) {
	for _, pair := range book.Pairs() {
		list = append(list, pair.Releases()...)
	}
	return list
}

// LastKeptOf returns the pair to roll back to: the one that was deployed before, or else the newest good one before
// that whose releases are on the disk and not withdrawn. A pair in quarantine is skipped. It returns nil if there is
// none.
func (h *Host) LastKeptOf(book *ledger.Ledger) *ledger.Pair {
	good := book.Good
	if good == nil {
		return nil
	}
	if p := book.Previous; p != nil && !p.Same(*good) && h.Held().Has(p.Releases()...) {
		if _, bad := book.IsBad(*p); !bad {
			return p
		}
	}
	for _, pair := range slices.Backward(book.Before()) {
		_, bad := book.IsBad(pair)
		_, withdrawn := book.IsWithdrawn(pair)
		if !bad && !withdrawn && !pair.Same(*good) && !pair.Service.Is(good.Service) &&
			h.Held().Has(pair.Releases()...) {
			return &pair
		}
	}
	return nil
}

// PreviousDir returns the name of the directory of the previous release of a release's project, to which the link
// previous leads; before is the previous pair. It returns "" if the directory is not on the disk, or the same one.
func (h *Host) PreviousDir(before *ledger.Pair, release artifact.Release) string {
	if before == nil {
		return ""
	}
	for _, r := range before.Releases() {
		if r.Project == release.Project && r.Dir() != release.Dir() && h.Held().Has(r) {
			return r.Dir()
		}
	}
	return ""
}
