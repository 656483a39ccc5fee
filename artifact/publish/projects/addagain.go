package projects

import (
	"context"
	"errors"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// addAgain sets the initial content of a project that had no keys before this change. If the store has had the project,
// and the new keys have signed its last content, the project gets that content again. With other keys, which may be the
// wrong ones, it begins without its versions, and only if Publisher.New is set. A project that was removed with its
// artifacts has no content left.
func addAgain(ctx context.Context, n *publish.Next, name string) error {
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
	const hint = "add the project with the key that signed it, and it comes back as it was; or give --new, and it " +
		"begins without the versions that it had"
	var refused *trust.Refused
	if errors.As(err, &refused) && refused.Check == trust.CheckSignature {
		short := make([]string, len(refused.By))
		for i, id := range refused.By {
			short[i] = trust.ShortKey(id)
		}
		return publish.NewMistake(diag.Keys, hint,
			"the store had a project %s before, signed by key %s: its versions do not come back with another key", name,
			strings.Join(short, ", "))
	}
	return publish.NewMistake(diag.Keys, hint, "the store had a project %s before, which cannot be read: %v", name, err)
}

// end signs that the content of a project in the store is void. It returns an error if an attacker has used up the
// version numbers: after the repair, the versions of the project are low again, and would all be void.
func end(n *publish.Next, name string) error {
	last := n.Client.Last(name)
	if publish.Spent(last) {
		return publish.NewExhausted(name)
	}
	return trust.End(n.Targets(), name, last)
}
