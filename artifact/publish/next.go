package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Next is the next version of a store, which is being edited.
type Next struct {
	Publisher *Publisher
	Client    *trust.Client
	ETag      string
	Roles     map[string]*trust.Role // targets and projects that change
	Ready     map[string]ReadyFiles  // roles that others have signed
	Brief     bool                   // only the timestamp is signed again

	Ahead []func(context.Context) error // functions that write the objects of the change before it is signed

	NewName bool                   // allow a channel name that looks mistyped
	Strict  bool                   // hosts must accept the store in the end, even if they refused it before
	Allowed map[string]bool        // names that hosts may refuse afterwards at the request of the caller
	Advice  func(of string) string // returns the steps to propose if hosts would refuse the change
}

// Targets returns the top targets role, to be changed.
func (n *Next) Targets() *trust.Role {
	if role, ok := n.Roles[tuf.RoleTargets]; ok {
		return role
	}
	role := n.Client.Trusted().Targets[tuf.RoleTargets]
	n.Roles[tuf.RoleTargets] = role
	return role
}

// Project returns a project's role, to be changed. If the project never published, its role is empty.
func (n *Next) Project(ctx context.Context, name string) (*trust.Role, error) {
	if role, ok := n.Roles[name]; ok {
		return role, nil
	}
	role, err := n.Client.Whole(ctx, name)
	if errors.Is(err, trust.ErrNoProject) {
		role = tuf.NewTargets(time.Now().UTC())
		role.Signed.Version = n.Client.Last(name) // 0, unless the project was removed and begins again
	} else if err != nil {
		return nil, err
	}
	n.Roles[name] = role
	return role, nil
}

// Delegates reports whether targets names keys for the project.
func (n *Next) Delegates(project string) bool { return n.Client.Delegation(project).Threshold > 0 }

// Release finds a version of a project, or the release that the channel names if version is "".
func (n *Next) Release(ctx context.Context, ref artifact.Ref, version string) (artifact.Release, error) {
	if version == "" {
		release, _, err := n.Client.Named(ctx, ref)
		return release, err
	}
	role, err := n.Client.Whole(ctx, ref.Project)
	if err != nil {
		return artifact.Release{}, err
	}
	for _, r := range trust.Releases(ref.Project, role) {
		if r.Version == version {
			return r, nil
		}
	}
	return artifact.Release{}, NewMistake(diag.Unpublished, "`corpus ls` shows the versions there are",
		"the project has no such version: %s %s", ref.Project, version)
}

// NoProject returns the error for a project that the store does not have.
func NoProject(name string) error {
	return diag.Unpublished.Hint(fmt.Errorf("%w: %s", trust.ErrNoProject, name), "`corpus ls` shows what there is")
}

// Delegate allows keys to sign a project, in addition to the keys that may sign it already.
func (n *Next) Delegate(name string, keys []*tuf.Key) error {
	role := n.Targets()
	if role.Signed.Delegations == nil {
		role.Signed.Delegations = &tuf.Delegations{Keys: map[string]*tuf.Key{}}
	}
	if !n.Delegates(name) {
		role.Signed.Delegations.Roles = append(role.Signed.Delegations.Roles, tuf.DelegatedRole{
			Name: name, Threshold: 1, Terminating: true, Paths: []string{trust.ProjectPaths(name)}, KeyIDs: []string{},
		})
	}
	for _, key := range keys {
		if err := role.Signed.AddKey(key, name); err != nil {
			return fmt.Errorf("delegating %s: %w", name, err)
		}
	}
	return nil
}

// SignedProject returns a project's role. It is nil if the role is lost or has no valid signatures, and if the project
// has published nothing, which unpublished reports.
func (n *Next) SignedProject(ctx context.Context, name string) (role *trust.Role, unpublished bool, err error) {
	if name == trust.AttestationRole { // it signs proofs, and has no file of its own
		return nil, true, nil
	}
	role, err = n.Client.Project(ctx, name)
	unpublished = errors.Is(err, trust.ErrNoProject)
	if unpublished || RefusedFor(err, trust.CheckSignature) || errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return role, unpublished, err
}

// SignAgain adds a project to the change if its keys have changed so that its signatures are no longer valid, and if
// the available keys suffice. It reports whether the project will be signed.
func (n *Next) SignAgain(name string, role *trust.Role) (bool, error) {
	if role == nil {
		return false, nil
	}
	if n.Targets().VerifyDelegate(name, role) == nil {
		return true, nil
	}
	var short *Short
	if _, err := n.Publisher.KeysFor(name, n.Client.Delegation(name)); errors.As(err, &short) || n.Publisher.Hand != nil {
		return false, nil
	} else if err != nil {
		return false, err
	}
	n.Roles[name] = role
	return true, nil
}

// RefusedFor reports whether an error is a *trust.Refused of the given check.
func RefusedFor(err error, check trust.Check) bool {
	var r *trust.Refused
	return errors.As(err, &r) && r.Check == check
}
