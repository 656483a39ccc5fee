package publish

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Exhausted is the error for a role with the highest possible version number: an attacker with its key has used them
// up.
type Exhausted struct{ Role string }

func (e *Exhausted) Error() string {
	return e.Role + " has the highest version there can be, so nothing can follow it"
}

// Hint returns a hint with the steps of the repair.
func (e *Exhausted) Hint() string {
	return diag.Metadata.Coded("`corpus keys rotate timestamp`, then `corpus keys rotate snapshot`, bring back what " +
		"was in force before; then replace this role's key: see \"Versions that are run up\" in docs/trust.md")
}

// NewExhausted returns the error for a role, or for a project's head.
func NewExhausted(role string) error {
	return &Exhausted{Role: strings.TrimSuffix(role, trust.HeadRole(""))}
}

// freeForms returns the first version after version under which no file of a project was written.
func (p *Publisher) freeForms(ctx context.Context, name string, version int64) (int64, error) {
	for {
		free, err := p.free(ctx, trust.HeadRole(name), version)
		if err != nil {
			return 0, err
		}
		both, err := p.free(ctx, name, free-1)
		if err != nil || both == free {
			return free, err
		}
		version = both - 1
	}
}

// free returns the first version after version under which a role was not written.
func (p *Publisher) free(ctx context.Context, name string, version int64) (int64, error) {
	for {
		if version == math.MaxInt64 {
			return 0, NewExhausted(name)
		}
		version++
		body, _, err := p.Store.Get(ctx, trust.RoleKey(name, version), 0)
		// S3 says "forbidden" for an absent object if the bucket may not be listed.
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
			return version, nil
		}
		if err != nil {
			return 0, err
		}
		_ = body.Close() // only its presence matters
	}
}

// Spent reports whether a version is higher than any that honest publishers reach.
func Spent(version int64) bool { return version > math.MaxInt64-LostVersions }

// SpentRole returns a role for which the current snapshot has a used-up version number, or "".
func SpentRole(snapshot *tuf.Metadata[tuf.SnapshotType]) string {
	for file, meta := range snapshot.Signed.Meta {
		if Spent(meta.Version) {
			return strings.TrimSuffix(file, ".json")
		}
	}
	return ""
}

// LostVersions is the distance from the highest version found to the version that a rebuild signs if the timestamp is
// lost. Nothing else in the store counts the timestamps that `corpus refresh` has signed, and hosts accept none that is
// older than one that they have seen. Hourly refreshes need a century for so many.
const LostVersions = 1_000_000

// Versions returns the versions of each role in the store, newest first.
func (p *Publisher) Versions(ctx context.Context) (map[string][]int64, error) {
	versions := map[string][]int64{}
	for info, err := range p.Store.List(ctx, "metadata/") {
		if err != nil {
			return nil, fmt.Errorf("listing the store's metadata: %w", err)
		}
		number, rest, _ := strings.Cut(strings.TrimPrefix(info.Key, "metadata/"), ".")
		version, err := strconv.ParseInt(number, 10, 64)
		role, ok := strings.CutSuffix(rest, ".json")
		if err == nil && ok {
			versions[role] = append(versions[role], version)
		}
	}
	for _, v := range versions {
		slices.Sort(v)
		slices.Reverse(v)
	}
	return versions, nil
}
