package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// SummaryAge is the maximum age of a summary that hosts use.
const SummaryAge = 30 * time.Minute

const maxSummary = 64 << 20

// SummaryKey returns the key of the summary of a rollout.
func SummaryKey(ref artifact.Ref, id string) string { return plans.Prefix(ref, id) + "summary.json" }

// summary has the content of a listing of a rollout, for stores that cannot be listed. It is not signed: the names in
// it are signed by hosts, and its times are as trustworthy as those of a listing.
type summary struct {
	At    time.Time     `json:"at"`
	Names []summaryName `json:"names"`
}

type summaryName struct {
	Name string    `json:"name"` // below the prefix
	At   time.Time `json:"at"`   // when the store received it
}

// WriteSummary writes the results and halts of the evidence into the store. now is the store's time.
func (r Rollout) WriteSummary(ctx context.Context, s store.Store, e Evidence, now time.Time) error {
	sum := summary{At: now.UTC(), Names: []summaryName{}}
	for _, list := range [][]Entry{e.Results, e.Halts} {
		for _, said := range list {
			sum.Names = append(sum.Names, summaryName{said.String(), said.At})
		}
	}
	data, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	key := SummaryKey(r.Ref, r.Start.ID)
	if _, err := s.Put(ctx, key, bytes.NewReader(append(data, '\n')), int64(len(data)+1), store.Condition{}); err != nil {
		return fmt.Errorf("writing the summary of the rollout: %w", err)
	}
	return nil
}

// readSummary reads evidence from the summary. unlisted is the reason why the store could not be listed.
func (r Rollout) readSummary(ctx context.Context, s store.Store, now time.Time, unlisted error) (Evidence, error) {
	none := func(why error) error {
		rights := ""
		if errors.Is(unlisted, store.ErrForbidden) {
			rights = fmt.Sprintf("let this host list and read below rollouts/%s/ (docs/buckets.md); otherwise ", r.Ref.Project)
		}
		return diag.Evidence.Hint(fmt.Errorf("%w: %w; and its summary: %w", ErrNoEvidence, unlisted, why),
			rights+"let `corpus rollout watch` run where the store can be listed, at least every %s",
			plans.Duration(SummaryAge/2))
	}
	data, info, err := fetch(ctx, s, SummaryKey(r.Ref, r.Start.ID), maxSummary)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrForbidden):
		return Evidence{}, none(err)
	case err != nil:
		return Evidence{}, fmt.Errorf("reading the results of hosts: %w", err)
	}
	var sum summary
	if err := json.Unmarshal(data, &sum); err != nil {
		return Evidence{}, none(err)
	}
	if !info.Now.IsZero() {
		now = info.Now
	}
	if age := now.Sub(sum.At); age > SummaryAge || age < -SummaryAge {
		return Evidence{}, none(fmt.Errorf("it was made at %s, and it is %s now", sum.At.UTC().Format(time.RFC3339),
			now.UTC().Format(time.RFC3339)))
	}
	found := r.gathering(now)
	for _, n := range sum.Names {
		if err := found.add(n.Name, 0, n.At); err != nil {
			return Evidence{}, err
		}
	}
	e := found.evidence()
	e.Summary = sum.At
	return e, nil
}
