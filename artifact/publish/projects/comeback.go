package projects

import (
	"context"
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// comeBack decides what a project begins with that nobody could sign before this change. Where the store has had it, and the
// keys that may sign it now have signed what it said last, it comes back as it was. With other keys it begins without its
// versions, which only New allows: the keys may be the wrong ones. One that was removed for good has nothing to come back with.
func comeBack(ctx context.Context, n *publish.Next, name string) error {
	if name == trust.AttestationRole || n.Client.Last(name) == 0 {
		return nil
	}
	_, err := n.Client.Project(ctx, name)
	switch {
	case err == nil, errors.Is(err, trust.ErrNoProject):
		return nil
	case !trust.OfOne(err):
		return err
	case n.NewName:
		return end(n, name)
	}
	const hint = "add the project with the key that signed it, and it comes back as it was; or give --new, and it begins without the versions that it had"
	var refused *trust.Refused
	if errors.As(err, &refused) && refused.Check == trust.CheckSignature {
		short := make([]string, len(refused.By))
		for i, id := range refused.By {
			short[i] = trust.ShortKey(id)
		}
		return publish.NewMistake(hint, "the store had a project %s before, signed by key %s: its versions do not come back with another key", name, strings.Join(short, ", "))
	}
	return publish.NewMistake(hint, "the store had a project %s before, which cannot be read: %v", name, err)
}

// end signs that what the store has of a project counts no longer. It does not where a thief ran the versions up: after the way
// back from that the project's versions are low again, and would all count no longer.
func end(n *publish.Next, name string) error {
	last := n.Client.Last(name)
	if publish.Spent(last) {
		return publish.NewExhausted(name)
	}
	return trust.End(n.Targets(), name, last)
}
