package roots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// plan is the list of objects to write, in this order, to replace a root.
type plan struct {
	objects []publish.Object
	endOnly bool // hosts refuse the store between the writes
}

// moveTo replaces the root. It uses the first plan with which hosts accept the store at any moment, or else a plan with
// which they accept it in the end. It sets placed when a root is written.
func moveTo(ctx context.Context, n *publish.Next, before, final *publish.RootRole, c Change, placed *bool) (Result,
	error) {
	signed, err := signRoots(n, before, final, c)
	if err != nil {
		return Result{}, err
	}
	return carryOut(ctx, n, before, signed, placed)
}

// signedRoots are the roots of a move, signed.
type signedRoots struct {
	final  *publish.RootRole
	direct []publish.Object  // the final root, directly after the root before; none if it is in force already
	middle *publish.RootRole // the previous root with the added keys; nil if there is no such step
	first  []publish.Object  // middle, signed
	second []publish.Object  // the final root after middle
}

// signRoots signs the final root and, if keys are both added and removed, an intermediate root.
func signRoots(n *publish.Next, before, final *publish.RootRole, c Change) (signedRoots, error) {
	r := signedRoots{final: final}
	if final == before {
		return r, nil
	}
	p := n.Publisher
	var err error
	if r.direct, err = signRoot(p, final, before); err != nil {
		return r, err
	}
	below := maps.Clone(c.Add)
	delete(below, tuf.RoleRoot) // the root's own keys change in one step, signed by old and new ones together
	middle, err := Change{Add: below}.apply(before)
	if err != nil || publish.SameRoles(middle, before) || publish.SameRoles(middle, final) {
		return r, err
	}
	middle.Signed.Expires = final.Signed.Expires
	if r.first, err = signRoot(p, middle, before); err != nil {
		return r, err
	}
	later, err := publish.Clone(final)
	if err != nil {
		return r, err
	}
	later.Signed.Version = middle.Signed.Version + 1
	r.middle = middle
	r.second, err = signRoot(p, later, middle)
	return r, err
}

// signRoot signs a root with the keys of the root before it and with its own.
func signRoot(p *publish.Publisher, root, before *publish.RootRole) ([]publish.Object, error) {
	var keys []keyring.Key
	for _, by := range []*publish.RootRole{before, root} {
		some, err := p.KeysFor(tuf.RoleRoot, trust.RootDelegation(by, tuf.RoleRoot))
		if err != nil {
			return nil, err
		}
		keys = append(keys, some...)
	}
	data, err := publish.Sign(root, keys)
	if err != nil {
		return nil, fmt.Errorf("signing root: %w", err)
	}
	return publish.RootObject(root.Signed.Version, data), nil
}

// Place puts a root into force that others have signed, and sets placed if the root was written.
func Place(ctx context.Context, n *publish.Next, before, root *publish.RootRole, data []byte) (result Result,
	placed bool, err error) {
	r := signedRoots{final: root, direct: publish.RootObject(root.Signed.Version, data)}
	result, err = carryOut(ctx, n, before, r, &placed)
	return result, placed, err
}

// carryOut chooses a plan and writes its objects.
func carryOut(ctx context.Context, n *publish.Next, before *publish.RootRole, r signedRoots, placed *bool) (Result,
	error) {
	chosen, err := choose(ctx, n, before, r)
	if err != nil {
		return Result{}, err
	}
	root := before
	for i, o := range chosen.objects {
		err := n.Publisher.Write(ctx, chosen.objects[i:i+1])
		if err != nil {
			return Result{}, err
		}
		if o.IsRoot() {
			*placed = true
			if root, err = trust.Decode[tuf.RootType](o.Data); err != nil {
				return Result{}, err
			}
		}
	}
	result := Result{Version: root.Signed.Version, Expires: root.Signed.Expires, Unsigned: unsigned(n, chosen, root)}
	return result, n.Publisher.Keep(ctx, n.Client, chosen.objects)
}

// unsigned returns the roles directly below the root that hosts will refuse.
func unsigned(n *publish.Next, p plan, root *publish.RootRole) []string {
	set := n.Client.Trusted()
	left := []string{}
	if slices.ContainsFunc(p.objects, func(o publish.Object) bool { return o.Key == trust.TimestampKey }) {
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

// choose returns a plan that hosts accept.
func choose(ctx context.Context, n *publish.Next, before *publish.RootRole, r signedRoots) (plan, error) {
	if n.Client.Trusted().Targets[tuf.RoleTargets] == nil {
		return chooseBroken(ctx, n, r)
	}
	n.Advice = func(string) string { return moveSteps }
	var first error
	for _, try := range plans(ctx, n, before, r) {
		p, err := try()
		if err == nil {
			err = n.Rehearse(ctx, p.objects, p.endOnly)
		}
		if err == nil {
			return p, nil
		}
		if first = moreSpecific(first, err); !mayTryOn(err) {
			return plan{}, err
		}
	}
	if n.Publisher.AtOnce {
		return plan{objects: r.direct}, nil
	}
	var short *publish.Short
	if errors.As(first, &short) {
		first = &publish.Unaccepted{Of: publish.WholeStore, Err: short, Advice: moveSteps}
	}
	return plan{}, first
}

// plans returns the possible plans, the best first.
func plans(ctx context.Context, n *publish.Next, before *publish.RootRole, r signedRoots) []func() (plan, error) {
	return []func() (plan, error){
		func() (plan, error) { // the root, then the roles below it
			below, err := stageMoved(ctx, n, before, r.final, r.final)
			return plan{objects: slices.Concat(r.direct, below)}, err
		},
		func() (plan, error) { // the roles below, signed with the keys of both roots, then the root
			below, err := stageMoved(ctx, n, before, r.final, before, r.final)
			return plan{objects: slices.Concat(below, r.direct)}, err
		},
		func() (plan, error) { // a root that allows both keys, the roles below, then the final root
			if r.middle == nil {
				return plan{}, errNoPlan
			}
			below, err := stageMoved(ctx, n, before, r.final, r.middle, r.final)
			return plan{objects: slices.Concat(r.first, below, r.second)}, err
		},
		func() (plan, error) { // the root, then new snapshot and timestamp: no version can follow the old ones
			objects, err := stageAgain(ctx, n, r.final)
			return plan{objects: slices.Concat(r.direct, objects), endOnly: true}, err
		},
	}
}

// chooseBroken replaces the root of a store that hosts refuse. The same step signs a new snapshot and timestamp if
// their keys are available.
func chooseBroken(ctx context.Context, n *publish.Next, r signedRoots) (plan, error) {
	objects, err := stageAgain(ctx, n, r.final)
	p := plan{objects: slices.Concat(r.direct, objects), endOnly: true}
	if err == nil {
		n.Strict = true
		err = n.Rehearse(ctx, p.objects, true)
	}
	if err == nil || len(r.direct) == 0 {
		return p, err
	}
	return plan{objects: r.direct}, nil
}

// stageMoved signs roles below the root whose keys change, with keys that all roots of may allow: the roles that hosts
// would refuse under the final root, and others if the available keys suffice.
func stageMoved(ctx context.Context, n *publish.Next, before, final *publish.RootRole,
	may ...*publish.RootRole) ([]publish.Object, error) {
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
	if role := publish.SpentRole(set.Snapshot); role != "" && wanted[tuf.RoleSnapshot] {
		// signing again would keep the used-up version; stageAgain returns to the file before it
		return nil, publish.NewExhausted(role)
	}
	objects, err := stageRoles(ctx, n, wanted, by)
	var short *publish.Short
	if errors.As(err, &short) && !maps.Equal(wanted, refused) {
		return stageRoles(ctx, n, refused, by)
	}
	return objects, err
}

func stageRoles(ctx context.Context, n *publish.Next, wanted map[string]bool,
	may []func(string) trust.Delegation) ([]publish.Object, error) {
	if !wanted[tuf.RoleTargets] && !wanted[tuf.RoleSnapshot] && !wanted[tuf.RoleTimestamp] {
		return nil, nil
	}
	delete(n.Roles, tuf.RoleTargets)
	if wanted[tuf.RoleTargets] {
		n.Targets()
	}
	n.Brief = !wanted[tuf.RoleTargets] && !wanted[tuf.RoleSnapshot]
	return n.Stage(ctx, may...)
}

// stageAgain signs a new snapshot and timestamp for a root that is not in force yet.
func stageAgain(ctx context.Context, n *publish.Next, root *publish.RootRole) ([]publish.Object, error) {
	set := n.Client.Trusted()
	before, targets := set.Root, set.Targets[tuf.RoleTargets]
	defer func() {
		set.Root = before
		if set.Targets[tuf.RoleTargets] = targets; targets == nil {
			delete(set.Targets, tuf.RoleTargets)
		}
	}()
	set.Root = root
	_, objects, err := recovery.StageRebuild(ctx, n, nil)
	return objects, err
}

// moveSteps describes how several people replace keys of the root together.
const moveSteps = "do it step by step, which hosts follow: (1) add the new key: `corpus root change --add-key " +
	"ROLE=PUB`; " +
	"(2) let the new key sign: snapshot and timestamp with `corpus refresh`, targets with `corpus export targets`, " +
	"`corpus sign` and `corpus import`; " +
	"(3) take the old key away: `corpus root change --remove-key ROLE=ID`, or raise the threshold. " +
	"With --at-once it is done now, and hosts stay on what they run until (2) is done"

var errNoPlan = errors.New("there is no step in between")

// mayTryOn reports whether another plan may succeed after this error.
func mayTryOn(err error) bool {
	var short *publish.Short
	var unaccepted *publish.Unaccepted
	var spent *publish.Exhausted
	var missing *recovery.Missing
	return errors.Is(err, errNoPlan) || errors.As(err, &short) || errors.As(err, &unaccepted) || errors.As(err, &spent) ||
		errors.As(err, &missing)
}

// moreSpecific returns the more useful error: the reason of a refusal is more useful than a missing key.
func moreSpecific(first, err error) error {
	var short *publish.Short
	if first == nil || errors.Is(first, errNoPlan) || errors.As(err, &short) && !errors.As(first, &short) {
		return err
	}
	return first
}
