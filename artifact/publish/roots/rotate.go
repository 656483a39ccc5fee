package roots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Rotated is the result of replacing keys.
type Rotated struct {
	Role string   `json:"role"`
	Old  []string `json:"old"` // IDs that may no longer sign
	New  []string `json:"new"`
	Root int64    `json:"root,omitempty"` // version of the root with the new keys; 0 if they are in targets
}

// Rotate replaces the keys of a role that are in the keyring's directory with new ones, and leaves other people's keys.
// next is the keyring in which the new keys are made and stay until they are in force; after an interruption, Rotate
// continues from there.
//
// Hosts accept the store at any moment: the new key is added and signs beside the old one before the old one is
// removed. Rotations with one keyring wait for each other. Other commands may run at the same time.
func Rotate(ctx context.Context, p *publish.Publisher, role string, next keyring.Ring) (Rotated, error) {
	unlock, err := next.Lock(ctx)
	if err != nil {
		return Rotated{}, err
	}
	defer unlock()
	if moving, err := next.Moving(role); err != nil {
		return Rotated{}, err
	} else if moving { // the new keys are in force and have to be moved into place
		return finishRotation(p, role, next)
	}
	n, err := Read(ctx, p) // before keys are made, since the store may be the wrong one
	if err != nil {
		return Rotated{}, err
	}
	old, err := ownKeysOf(p, role)
	if err != nil {
		return Rotated{}, err
	}
	if err := trusted(n, p, role, old, next); err != nil {
		return Rotated{}, err
	}
	if err := next.NewLike(role, len(old), p.Keys); err != nil {
		return Rotated{}, err
	}
	fresh, err := next.Public(role)
	if err != nil {
		return Rotated{}, err
	}
	result := Rotated{Role: role, Old: old}
	if result.New, err = publish.IDs(fresh); err != nil {
		return Rotated{}, err
	}
	both := *p
	both.Waiting = []keyring.Ring{next}
	r := rotation{Publisher: &both, role: role, old: old, fresh: result.New, next: next.Dir,
		may: n.Client.Delegation(role)}
	if r.inForce() { // others have signed the roles that this command could not sign
		return result, p.Keys.Retire(role, next)
	}
	switch {
	case slices.Contains(tuf.TopRoles(), role):
		result.Root, err = rotateTop(ctx, &both, role, fresh, result.Old)
	case role == trust.AttestationRole:
		err = rotateAttestation(ctx, &both, fresh, result.Old)
	default:
		err = rotateProject(ctx, &both, role, fresh, result.Old)
	}
	if err != nil {
		return Rotated{}, r.explain(ctx, n, err)
	}
	return result, p.Keys.Retire(role, next)
}

// trusted returns an error if the keys of a role in the keyring's directory are others than the store trusts: new ones
// would be added, and the trusted ones would stay in force. After an interruption the old keys may be out of force.
func trusted(n *publish.Next, p *publish.Publisher, role string, old []string, next keyring.Ring) error {
	may := n.Client.Delegation(role).Keys
	if len(may) == 0 || slices.ContainsFunc(old, func(id string) bool { return slices.Contains(may, id) }) {
		return nil
	}
	if begun, err := next.Held(role); err != nil || len(begun) > 0 {
		return err
	}
	return diag.Keys.Hint(fmt.Errorf("no key of %s in %s is one that the store trusts, which are %s", role, p.Keys.Dir,
		strings.Join(may, ", ")), "name the directory with such a key; how to replace a lost one is in trust.md, "+
		"\"A key is lost, stolen, or added\": corpus root change, or corpus project add")
}

// finishRotation moves new keys that are in force into place.
func finishRotation(p *publish.Publisher, role string, next keyring.Ring) (Rotated, error) {
	if err := p.Keys.Retire(role, next); err != nil {
		return Rotated{}, err
	}
	result := Rotated{Role: role, Old: []string{}}
	keys, err := p.Keys.Public(role)
	if err == nil {
		result.New, err = publish.IDs(keys)
	}
	return result, err
}

// ownKeysOf returns the IDs of the role's keys whose private parts are in the directory, or of all its keys if there
// are none: the holder of the root may replace keys of others.
func ownKeysOf(p *publish.Publisher, role string) ([]string, error) {
	files := keyring.Ring{Dir: p.Keys.Dir}
	held, err := files.Held(role)
	if err != nil || len(held) > 0 {
		return held, err
	}
	keys, err := files.Public(role)
	if err != nil {
		return nil, err
	}
	return publish.IDs(keys)
}

// rotateTop rotates a key that the root names.
func rotateTop(ctx context.Context, p *publish.Publisher, role string, fresh []*tuf.Key, old []string) (int64, error) {
	n, err := Read(ctx, p)
	if err != nil {
		return 0, err
	}
	may := n.Client.Delegation(role)
	old = slices.DeleteFunc(slices.Clone(old), func(id string) bool { return !slices.Contains(may.Keys, id) })
	add, remove := map[string][]*tuf.Key{role: fresh}, map[string][]string{role: old}
	r, err := Apply(ctx, p, Change{Add: add, Remove: remove})
	return r.Version, err
}

// rotateProject rotates a project's key. Targets and the project change in one commit.
func rotateProject(ctx context.Context, p *publish.Publisher, project string, fresh []*tuf.Key, old []string) error {
	return p.Change(ctx, func(n *publish.Next) error {
		role, err := n.Client.Project(ctx, project)
		if err != nil && !errors.Is(err, trust.ErrNoProject) {
			return err
		}
		if !n.Delegates(project) {
			return err
		}
		if err := swapKeys(n, project, fresh, old); err != nil {
			return err
		}
		if role == nil {
			return nil
		}
		// If the signatures with the remaining keys suffice, the project need not be signed again.
		var short *publish.Short
		_, err = p.KeysFor(project, n.Client.Delegation(project))
		if errors.As(err, &short) && n.Targets().VerifyDelegate(project, role) == nil {
			return nil
		}
		n.Roles[project] = role
		return nil
	})
}

// swapKeys adds keys to a role that targets delegates, and removes others.
func swapKeys(n *publish.Next, role string, fresh []*tuf.Key, old []string) error {
	may := slices.Clone(n.Client.Delegation(role).Keys)
	if err := n.Delegate(role, fresh); err != nil {
		return err
	}
	for _, id := range old {
		if slices.Contains(may, id) {
			if err := n.Targets().Signed.RevokeKey(id, role); err != nil {
				return err
			}
		}
	}
	return nil
}
