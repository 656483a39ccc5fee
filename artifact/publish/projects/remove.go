package projects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Removed is the result of Remove.
type Removed struct {
	Project string `json:"project"`
	Objects int    `json:"objects"` // removed artifacts and sidecars
	Bytes   int64  `json:"bytes"`
}

// Remove removes a project from the store: no key may sign it, no channel requires proof of it, and its hosts stay on
// their present releases. It needs the targets key.
//
// With objects it also removes the project's artifacts, which needs the right to delete, and makes its content void, so
// that none of it becomes valid again if the project is added again. The same command with objects removes the
// artifacts later, and after an interruption.
func Remove(ctx context.Context, p *publish.Publisher, name string, objects bool) (Removed, error) {
	result := Removed{Project: name}
	if err := trust.CheckProject(name); err != nil {
		return result, err
	}
	err := p.Change(ctx, func(n *publish.Next) error {
		if !n.Delegates(name) {
			return endRemoved(n, name, objects)
		}
		// no version can follow a spent one, so the role cannot come back anyway
		if objects && !publish.Spent(n.Client.Last(name)) {
			if err := end(n, name); err != nil {
				return err
			}
		}
		targets := n.Targets()
		targets.Signed.Delegations.Roles = slices.DeleteFunc(targets.Signed.Delegations.Roles,
			func(d tuf.DelegatedRole) bool { return d.Name == name })
		required, err := trust.Requirements(targets)
		if err != nil {
			return err
		}
		for ref := range required {
			if strings.HasPrefix(ref, name+"/") {
				delete(required, ref)
			}
		}
		if err := trust.SetRequirements(targets, required); err != nil {
			return err
		}
		n.Allowed = map[string]bool{name: true} // hosts should refuse it
		return dropPlans(targets, name)
	})
	gone := objects && errors.Is(err, trust.ErrNoProject) // it was removed before without its artifacts
	if err != nil && !gone || !objects || p.Hand != nil {
		return result, err
	}
	for _, prefix := range []string{"deploy/" + name + "/", trust.PagePrefix(name)} {
		for info, listed := range p.Store.List(ctx, prefix) {
			if listed != nil {
				return result, fmt.Errorf("listing the objects of %s: %w", name, listed)
			}
			if err := p.Store.Delete(ctx, info.Key); err != nil {
				return result, fmt.Errorf("removing the objects of %s: %w", name, err)
			}
			result.Objects, result.Bytes = result.Objects+1, result.Bytes+info.Size
		}
	}
	if gone && result.Objects == 0 {
		return result, err
	}
	return result, nil
}

// endRemoved makes the content of a project void that was removed earlier without its artifacts. It returns
// ErrNoProject if there is nothing to sign.
func endRemoved(n *publish.Next, name string, objects bool) error {
	over, err := n.Client.Over(name)
	if err != nil {
		return err
	}
	if last := n.Client.Last(name); !objects || over || last == 0 || publish.Spent(last) {
		return publish.NoProject(name)
	}
	return end(n, name)
}

// dropPlans removes the rollout plans of a project's channels.
func dropPlans(targets *trust.Role, project string) error {
	plans, err := trust.Rollouts(targets)
	if err != nil || len(plans) == 0 {
		return err
	}
	maps.DeleteFunc(plans, func(ref string, _ rollout.Plan) bool { return strings.HasPrefix(ref, project+"/") })
	return trust.SetRollouts(targets, plans)
}
