package collect

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Pruned lists the versions that were removed from a project's signed metadata.
type Pruned struct {
	Project  string   `json:"project"`
	Versions []string `json:"versions"`
	Reason   string   `json:"left,omitempty"` // reason why no version was removed
}

// Prune removes all but the newest versions of each project from its signed metadata, so that Garbage removes their
// objects. Versions that channels point at stay, and so do withdrawals, so that hosts with a withdrawn version still
// report it. A project is left unchanged if its key is not available. A dry run signs nothing.
func Prune(ctx context.Context, p *publish.Publisher, keep int, dry bool) ([]Pruned, error) {
	n, err := p.View(ctx)
	if err != nil {
		return nil, err
	}
	var all []Pruned
	for _, project := range n.Client.Projects() {
		one, err := prune(ctx, p, project, keep, dry)
		var short *publish.Short
		if errors.As(err, &short) || err != nil && trust.OfOne(err) {
			one.Versions, one.Reason, err = nil, err.Error(), nil
		}
		if err != nil {
			return all, err
		}
		if len(one.Versions) > 0 || one.Reason != "" {
			all = append(all, one)
		}
	}
	return all, nil
}

func prune(ctx context.Context, p *publish.Publisher, project string, keep int, dry bool) (Pruned, error) {
	result := Pruned{Project: project}
	edit := func(n *publish.Next) error {
		result.Versions = nil
		role, err := n.Client.Whole(ctx, project)
		if errors.Is(err, trust.ErrNoProject) {
			return errNothing
		}
		if err != nil {
			return err
		}
		old, err := superfluous(project, role, keep)
		if err != nil || len(old) == 0 {
			return errors.Join(err, errNothing)
		}
		for _, r := range old {
			result.Versions = append(result.Versions, r.Version)
		}
		if _, err := p.KeysFor(project, n.Client.Delegation(project)); err != nil || dry {
			return errors.Join(err, errNothing)
		}
		for _, r := range old {
			delete(role.Signed.Targets, trust.TargetPath(project, r.Version, r.Format))
			for _, kind := range trust.Kinds() {
				delete(role.Signed.Targets, trust.SidecarTarget(r, kind))
			}
		}
		n.Roles[project] = role
		return nil
	}
	err := p.Change(ctx, edit)
	var short *publish.Short
	if errors.Is(err, errNothing) && !errors.As(err, &short) {
		err = nil
	}
	return result, err
}

// errNothing stops a change that would sign the same content.
var errNothing = errors.New("there is nothing to change")

// superfluous returns the releases of a project that are neither among the newest nor named by a channel.
func superfluous(project string, role *trust.Role, keep int) ([]artifact.Release, error) {
	channels, err := trust.Channels(role)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for pointer := range maps.Values(channels) {
		used[pointer.Version] = true
	}
	releases := trust.Releases(project, role) // by version, the newest last
	if len(releases) <= keep {
		return nil, nil
	}
	old := slices.Clone(releases[:len(releases)-keep])
	return slices.DeleteFunc(old, func(r artifact.Release) bool { return used[r.Version] }), nil
}
