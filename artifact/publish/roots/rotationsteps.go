package roots

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// rotation is the replacement of a role's keys. If one command cannot do all of it, the remaining steps are derived
// from it.
type rotation struct {
	*publish.Publisher // with the new keys waiting
	role               string
	old, fresh         []string         // IDs
	next               string           // directory of the new keys
	may                trust.Delegation // who may sign the role now
}

// inForce reports whether the new keys may sign and the old ones no longer may.
func (r rotation) inForce() bool {
	may := func(id string) bool { return slices.Contains(r.may.Keys, id) }
	return !slices.ContainsFunc(r.old, may) && r.letIn()
}

// letIn reports whether the new keys may sign.
func (r rotation) letIn() bool {
	return !slices.ContainsFunc(r.fresh, func(id string) bool { return !slices.Contains(r.may.Keys, id) })
}

// explain adds the steps that complete a rotation to the error of one that needs keys of others.
func (r rotation) explain(ctx context.Context, n *publish.Next, err error) error {
	var short *publish.Short
	var unaccepted *publish.Unaccepted
	if !errors.As(err, &short) && !errors.As(err, &unaccepted) || r.role == trust.AttestationRole {
		return err
	}
	steps, stepsErr := r.steps(ctx, n)
	if stepsErr != nil {
		return errors.Join(err, stepsErr)
	}
	for i := range steps {
		steps[i] = fmt.Sprintf("(%d) %s", i+1, steps[i])
	}
	hint := "hosts follow these steps: " + strings.Join(steps, "; ")
	if unaccepted != nil {
		unaccepted.Advice = hint
		return err
	}
	return diag.Keys.Hint(err, "%s", hint)
}

// steps returns the remaining steps in their order.
func (r rotation) steps(ctx context.Context, n *publish.Next) ([]string, error) {
	add, err := r.pairs(filepath.Join(r.next, r.role), r.fresh)
	if err != nil {
		return nil, err
	}
	remove, err := r.pairs(filepath.Join(r.Keys.Dir, r.role), r.old)
	if err != nil {
		return nil, err
	}
	above, short, err := r.above(n)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(tuf.TopRoles(), r.role) {
		if _, err := n.Client.Project(ctx, r.role); err != nil && !errors.Is(err, trust.ErrNoProject) {
			return nil, err
		}
	}
	signs, alone, err := r.signs()
	if err != nil {
		return nil, err
	}
	if r.letIn() && r.signedBy(n) {
		signs = nil
	}
	again := fmt.Sprintf("run `corpus keys rotate %s` again", r.role)
	top := slices.Contains(tuf.TopRoles(), r.role)
	switch {
	case top && alone && !r.letIn():
		return append(drafted("corpus root change"+flags(" --add-key ", r.role+"=", add)+
			flags(" --remove-key ", r.role+"=", remove), above, short), again), nil
	case top && !r.letIn():
		return append(drafted("corpus root change"+flags(" --add-key ", r.role+"=", add), above, short),
			append(signs, again)...), nil
	case top:
		return append(signs, append(drafted("corpus root change"+flags(" --remove-key ", r.role+"=", remove), above, short),
			again)...), nil
	case !r.letIn():
		return append(drafted("corpus project add "+r.role+flags(" --key ", "", add), above, short), append(signs, again)...),
			nil
	}
	return append(signs, append(drafted("corpus project revoke "+r.role+flags(" --key ", "", remove), above, short),
		again)...), nil
}

// pairs returns the public key files of some keys of the role.
func (r rotation) pairs(first string, ids []string) (files []string, err error) {
	ring := keyring.Ring{Dir: filepath.Dir(first)}
	for _, id := range ids {
		file, err := ring.PublicFile(r.role, id)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// above returns the role that delegates this one, and the number of its signatures that cannot be made with the
// available keys.
func (r rotation) above(n *publish.Next) (role string, short int, err error) {
	role = tuf.RoleTargets
	if slices.Contains(tuf.TopRoles(), r.role) {
		role = tuf.RoleRoot
	}
	may := n.Client.Delegation(role)
	good, _, err := r.AtHand(role, may)
	return role, max(0, may.Threshold-len(good)), err
}

// signs returns the steps that sign the role with the new keys, and with keys of others if it needs more. alone reports
// whether the available keys sign the role while the keys change.
func (r rotation) signs() (steps []string, alone bool, err error) {
	held, err := r.Held(r.role)
	if err != nil {
		return nil, false, err
	}
	old := slices.DeleteFunc(slices.Clone(held), func(id string) bool { return !slices.Contains(r.may.Keys, id) })
	missing := r.may.Threshold - len(r.fresh)
	switch {
	case r.role == tuf.RoleRoot:
		return nil, true, nil
	case r.role == tuf.RoleSnapshot || r.role == tuf.RoleTimestamp:
		if len(old) >= r.may.Threshold && missing <= 0 {
			return []string{"`corpus refresh`"}, true, nil
		}
		return []string{"have the holder of the keys of snapshot and timestamp take " + filepath.Join(r.next, r.role) +
			".key among theirs (as " + r.role + "-2.key) and run `corpus refresh`"}, false, nil
	}
	draft := r.role + ".draft"
	steps = []string{"`corpus export " + r.role + " -o " + draft + "`"}
	for i := range r.fresh {
		steps = append(steps, "`corpus sign "+draft+" --key "+filepath.Join(r.next, keyring.FileOf(r.role, i+1))+"`")
	}
	if missing > 0 {
		steps = append(steps, others(missing, r.role, draft))
	}
	steps = append(steps, "have the holder of the keys of snapshot and timestamp run `corpus import "+draft+"`")
	return steps, missing <= 0 && len(old) >= r.may.Threshold, nil
}

// signedBy reports whether new keys, and keys that stay, have made enough signatures of the role.
func (r rotation) signedBy(n *publish.Next) bool {
	var signatures []tuf.Signature
	set := n.Client.Trusted()
	switch role := set.Targets[r.role]; {
	case r.role == tuf.RoleSnapshot && set.Snapshot != nil:
		signatures = set.Snapshot.Signatures
	case r.role == tuf.RoleTimestamp && set.Timestamp != nil:
		signatures = set.Timestamp.Signatures
	case role != nil:
		signatures = role.Signatures
	}
	stay := 0
	for _, s := range signatures {
		if slices.Contains(r.may.Keys, s.KeyID) && !slices.Contains(r.old, s.KeyID) {
			stay++
		}
	}
	return stay >= r.may.Threshold
}

// drafted returns the steps of a command whose result a role has to sign: only the command, or the command with a draft
// if others have to sign too.
func drafted(command, role string, short int) []string {
	if short == 0 {
		return []string{"`" + command + "`"}
	}
	draft := role + ".draft"
	return []string{"`" + command + " --draft " + draft + "`", others(short, role, draft), "`corpus import " + draft + "`"}
}

// others returns the step in which others sign a draft.
func others(n int, role, draft string) string {
	who := "the owner of another key"
	if n > 1 {
		who = "the owners of " + diag.Count(n, "other key")
	}
	return fmt.Sprintf("let %s of %s run `corpus sign %s`", who, role, draft)
}

// flags returns the flag repeated for each value.
func flags(flag, before string, values []string) string {
	text := ""
	for _, v := range values {
		text += flag + before + v
	}
	return text
}
