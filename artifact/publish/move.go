package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// A plan is a way from one root to another: what is written, in this order.
type plan struct {
	objects []object
	endOnly bool // between its writes hosts refuse the store
}

// moveTo replaces the root. It takes the first plan that hosts can follow at any moment, or else one that
// they accept in the end. placed is set once a root is written.
func (n *Next) moveTo(ctx context.Context, before, final *rootRole, c RootChange, placed *bool) (RootResult, error) {
	signed, err := n.signRoots(before, final, c)
	if err != nil {
		return RootResult{}, err
	}
	return n.carryOut(ctx, before, signed, placed)
}

// roots are the roots of a move.
type roots struct {
	final  *rootRole
	direct []object  // the final root, straight after the one of before; none where it is in force already
	middle *rootRole // what the one of before says, and the keys that are added; nil where that is no step
	first  []object  // the middle root
	second []object  // the final root, after it
}

// signRoots signs the final root, and where keys are both added and taken away the one in between.
func (n *Next) signRoots(before, final *rootRole, c RootChange) (roots, error) {
	r := roots{final: final}
	if final == before {
		return r, nil
	}
	p := n.publisher
	var err error
	if r.direct, err = p.signRoot(final, before); err != nil {
		return r, err
	}
	below := maps.Clone(c.Add)
	delete(below, tuf.RoleRoot) // the root's own keys change in one step: old and new ones sign it together
	middle, err := RootChange{Add: below}.apply(before)
	if err != nil || sameRoles(middle, before) || sameRoles(middle, final) {
		return r, err
	}
	middle.Signed.Expires = final.Signed.Expires
	if r.first, err = p.signRoot(middle, before); err != nil {
		return r, err
	}
	later, err := clone(final)
	if err != nil {
		return r, err
	}
	later.Signed.Version = middle.Signed.Version + 1
	r.middle = middle
	r.second, err = p.signRoot(later, middle)
	return r, err
}

// signRoot signs a root with the keys of the one before it and with its own.
func (p *Publisher) signRoot(root, before *rootRole) ([]object, error) {
	var keys []keyring.Key
	for _, by := range []*rootRole{before, root} {
		some, err := p.KeysFor(tuf.RoleRoot, trust.RootDelegation(by, tuf.RoleRoot))
		if err != nil {
			return nil, err
		}
		keys = append(keys, some...)
	}
	data, err := sign(root, keys)
	if err != nil {
		return nil, fmt.Errorf("signing root: %w", err)
	}
	return rootObject(root.Signed.Version, data), nil
}

// carryOut finds the plan and writes it.
func (n *Next) carryOut(ctx context.Context, before *rootRole, r roots, placed *bool) (RootResult, error) {
	chosen, err := n.choose(ctx, before, r)
	if err != nil {
		return RootResult{}, err
	}
	root := before
	for i, o := range chosen.objects {
		err := n.publisher.write(ctx, chosen.objects[i:i+1])
		if err != nil {
			return RootResult{}, err
		}
		if o.isRoot() {
			*placed = true
			if root, err = trust.Decode[tuf.RootType](o.data); err != nil {
				return RootResult{}, err
			}
		}
	}
	result := RootResult{Version: root.Signed.Version, Expires: root.Signed.Expires, Unsigned: n.unsigned(chosen, root)}
	return result, n.publisher.keep(ctx, n.Client, chosen.objects)
}

// unsigned lists the roles directly below the root that hosts will refuse.
func (n *Next) unsigned(p plan, root *rootRole) []string {
	set := n.Client.Trusted()
	left := []string{}
	if slices.ContainsFunc(p.objects, func(o object) bool { return o.key == trust.TimestampKey }) {
		return left
	}
	if targets := set.Targets[tuf.RoleTargets]; targets == nil || root.VerifyDelegate(tuf.RoleTargets, targets) != nil {
		left = append(left, tuf.RoleTargets)
	}
	if set.Snapshot == nil || root.VerifyDelegate(tuf.RoleSnapshot, set.Snapshot) != nil {
		left = append(left, tuf.RoleSnapshot)
	}
	if set.Timestamp == nil || root.VerifyDelegate(tuf.RoleTimestamp, set.Timestamp) != nil {
		left = append(left, tuf.RoleTimestamp)
	}
	return left
}

// choose finds a plan that hosts accept.
func (n *Next) choose(ctx context.Context, before *rootRole, r roots) (plan, error) {
	if n.Client.Trusted().Targets[tuf.RoleTargets] == nil {
		return n.chooseBroken(ctx, r)
	}
	n.advice = func(string) string { return moveSteps }
	var first error
	for _, try := range n.plans(ctx, before, r) {
		p, err := try()
		if err == nil {
			err = n.rehearse(ctx, p.objects, p.endOnly)
		}
		if err == nil {
			return p, nil
		}
		if first = tellingMore(first, err); !mayTryOn(err) {
			return plan{}, err
		}
	}
	if n.publisher.AtOnce {
		return plan{objects: r.direct}, nil
	}
	var short *Short
	if errors.As(first, &short) {
		first = &Unaccepted{Of: whole, Err: short, hint: moveSteps}
	}
	return plan{}, first
}

// plans are the ways from one root to another, the best first.
func (n *Next) plans(ctx context.Context, before *rootRole, r roots) []func() (plan, error) {
	return []func() (plan, error){
		func() (plan, error) { // the root, then what lies below it
			below, err := n.stageMoved(ctx, before, r.final, r.final)
			return plan{objects: slices.Concat(r.direct, below)}, err
		},
		func() (plan, error) { // what lies below, signed with the keys of both, then the root
			below, err := n.stageMoved(ctx, before, r.final, before, r.final)
			return plan{objects: slices.Concat(below, r.direct)}, err
		},
		func() (plan, error) { // a root that lets both sign, what lies below, then the root
			if r.middle == nil {
				return plan{}, errNoPlan
			}
			below, err := n.stageMoved(ctx, before, r.final, r.middle, r.final)
			return plan{objects: slices.Concat(r.first, below, r.second)}, err
		},
		func() (plan, error) { // the root, then snapshot and timestamp made again: nothing can follow the old ones
			objects, err := n.stageAgain(ctx, r.final)
			return plan{objects: slices.Concat(r.direct, objects), endOnly: true}, err
		},
	}
}

// chooseBroken replaces the root of a store that hosts refuse: what lies below is made again in the same
// step where the keys for it are at hand.
func (n *Next) chooseBroken(ctx context.Context, r roots) (plan, error) {
	objects, err := n.stageAgain(ctx, r.final)
	p := plan{objects: slices.Concat(r.direct, objects), endOnly: true}
	if err == nil {
		n.strict = true
		err = n.rehearse(ctx, p.objects, true)
	}
	if err == nil || len(r.direct) == 0 {
		return p, err
	}
	return plan{objects: r.direct}, nil
}

// stageMoved signs what lies below the root where its keys change, with keys that all of may let sign: what
// hosts would refuse under the final root, and besides what the keys at hand suffice for.
func (n *Next) stageMoved(ctx context.Context, before, final *rootRole, may ...*rootRole) ([]object, error) {
	set := n.Client.Trusted()
	var by []func(string) trust.Delegation
	for _, root := range may {
		by = append(by, func(role string) trust.Delegation { return trust.RootDelegation(root, role) })
	}
	refused := map[string]bool{
		tuf.RoleTargets:   final.VerifyDelegate(tuf.RoleTargets, set.Targets[tuf.RoleTargets]) != nil,
		tuf.RoleSnapshot:  final.VerifyDelegate(tuf.RoleSnapshot, set.Snapshot) != nil,
		tuf.RoleTimestamp: final.VerifyDelegate(tuf.RoleTimestamp, set.Timestamp) != nil,
	}
	wanted := maps.Clone(refused)
	for role := range wanted {
		was, is := trust.RootDelegation(before, role), trust.RootDelegation(final, role)
		wanted[role] = wanted[role] || !slices.Equal(was.Keys, is.Keys) || was.Threshold != is.Threshold
	}
	if role := spentRole(set.Snapshot); role != "" && wanted[tuf.RoleSnapshot] {
		return nil, exhausted(role) // signed again, it would go on; stageAgain goes back to what was before it
	}
	objects, err := n.stageRoles(ctx, wanted, by)
	var short *Short
	if errors.As(err, &short) && !maps.Equal(wanted, refused) {
		return n.stageRoles(ctx, refused, by)
	}
	return objects, err
}

func (n *Next) stageRoles(ctx context.Context, wanted map[string]bool, may []func(string) trust.Delegation) ([]object, error) {
	if !wanted[tuf.RoleTargets] && !wanted[tuf.RoleSnapshot] && !wanted[tuf.RoleTimestamp] {
		return nil, nil
	}
	delete(n.Roles, tuf.RoleTargets)
	if wanted[tuf.RoleTargets] {
		n.targets()
	}
	n.brief = !wanted[tuf.RoleTargets] && !wanted[tuf.RoleSnapshot]
	return n.stage(ctx, may...)
}

// stageAgain makes snapshot and timestamp again under a root that is not in force yet.
func (n *Next) stageAgain(ctx context.Context, root *rootRole) ([]object, error) {
	set := n.Client.Trusted()
	before, targets := set.Root, set.Targets[tuf.RoleTargets]
	defer func() {
		set.Root = before
		if set.Targets[tuf.RoleTargets] = targets; targets == nil {
			delete(set.Targets, tuf.RoleTargets)
		}
	}()
	set.Root = root
	_, objects, err := n.stageRebuild(ctx, nil)
	return objects, err
}

// moveSteps says how to replace keys of the root when they lie in several hands.
const moveSteps = "do it step by step, which hosts follow: (1) add the new key: `corpus root change --add-key ROLE=PUB`; " +
	"(2) let the new key sign: snapshot and timestamp with `corpus refresh`, targets with `corpus export targets`, `corpus sign` and `corpus import`; " +
	"(3) take the old key away: `corpus root change --remove-key ROLE=ID`, or raise the threshold. " +
	"With --at-once it is done now, and hosts stay on what they run until (2) is done"

var errNoPlan = errors.New("there is no step in between")

// mayTryOn reports whether another plan may succeed where one failed.
func mayTryOn(err error) bool {
	var short *Short
	var unaccepted *Unaccepted
	var spent *Exhausted
	var missing *Missing
	return errors.Is(err, errNoPlan) || errors.As(err, &short) || errors.As(err, &unaccepted) || errors.As(err, &spent) || errors.As(err, &missing)
}

// tellingMore keeps the error that says most: what hosts would refuse, before which key is not at hand.
func tellingMore(first, err error) error {
	var short *Short
	if first == nil || errors.Is(first, errNoPlan) || errors.As(err, &short) && !errors.As(first, &short) {
		return err
	}
	return first
}

// sameRoles reports whether two roots say the same of every role.
func sameRoles(a, b *rootRole) bool {
	return maps.EqualFunc(a.Signed.Roles, b.Signed.Roles, func(x, y *tuf.Role) bool {
		return x.Threshold == y.Threshold && slices.Equal(x.KeyIDs, y.KeyIDs)
	})
}
