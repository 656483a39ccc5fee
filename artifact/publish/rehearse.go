package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// ahead is a store as it will be once some objects are written.
type ahead struct {
	store.Store
	objects []object
}

// Get gives what is to be written, and what the store has otherwise.
func (a ahead) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	for _, o := range slices.Backward(a.objects) {
		if o.key == key {
			data := o.data[min(from, int64(len(o.data))):]
			return io.NopCloser(bytes.NewReader(data)), store.Info{Key: key, Size: int64(len(o.data))}, nil
		}
	}
	return a.Store.Get(ctx, key, from)
}

// whole names the store itself among what hosts accept or refuse; the other names are those of
// projects and of channels, project/channel.
const whole = "the store"

// refusals is what a host that knows the store as n read it refuses of the store as it is in s.
func (n *Next) refusals(ctx context.Context, s store.Store, projects []string) (map[string]error, error) {
	host, err := n.Client.Rehearse(s, n.publisher.Time)
	if err != nil {
		return nil, err
	}
	refused := map[string]error{}
	if err := host.Refresh(ctx); err != nil {
		return map[string]error{whole: err}, notAnswered(err)
	}
	for _, project := range projects {
		role, err := host.Project(ctx, project)
		if errors.Is(err, trust.ErrNoProject) {
			continue
		}
		if err != nil {
			refused[project] = err
			if err := notAnswered(err); err != nil {
				return nil, err
			}
			continue
		}
		channels, err := trust.Channels(role)
		if err != nil {
			return nil, err
		}
		for channel := range channels {
			ref := artifact.Ref{Project: project, Channel: channel}
			var r *trust.Refused
			if _, err := host.Resolve(ctx, ref); errors.As(err, &r) {
				refused[ref.String()] = err
			}
		}
	}
	return refused, nil
}

// Unaccepted says that hosts would refuse what a command was about to write, so that it wrote nothing.
type Unaccepted struct {
	Of  string // the store, a project, or a channel
	Err error  // why hosts would refuse it

	hint string
}

func (u *Unaccepted) Error() string {
	return fmt.Sprintf("nothing was written, since hosts would refuse %s: %v", u.Of, u.Err)
}

// Hint says which steps hosts accept.
func (u *Unaccepted) Hint() string { return u.hint }

// rehearse checks, as a host does and before the first of the objects is written, that the change takes
// nothing from hosts: after each object that hosts see they accept what they accepted before, and in the
// end what the change signs. endOnly checks the end alone.
func (n *Next) rehearse(ctx context.Context, objects []object, endOnly bool) error {
	projects := n.affected()
	var before map[string]error
	for i, o := range objects {
		last := i == len(objects)-1
		if !o.seenByHosts() || endOnly && !last {
			continue
		}
		after, err := n.refusals(ctx, ahead{n.publisher.Store, objects[:i+1]}, projects)
		if err != nil {
			return err
		}
		for _, of := range slices.Sorted(maps.Keys(after)) {
			if before == nil {
				if before, err = n.refusals(ctx, n.publisher.Store, projects); err != nil {
					return err
				}
			}
			if n.passes(of, before, last) {
				continue
			}
			if _, refused := before[of]; refused { // the command was about to write below what hosts refuse
				return fmt.Errorf("nothing was written: %w", after[of])
			}
			return &Unaccepted{Of: of, Err: after[of], hint: n.steps(of, after[of])}
		}
	}
	return nil
}

// passes reports whether a refusal after the change is one that the change does not answer for: hosts
// refused it before, and the change was not made to have it accepted.
func (n *Next) passes(of string, before map[string]error, last bool) bool {
	if n.allowed[of] {
		return true
	}
	_, refused := before[of]
	if _, all := before[whole]; all && of != whole {
		refused = true
	}
	if !refused {
		return false
	}
	return !n.strict || !last || of != whole && n.Roles[of] == nil
}

// affected lists the projects that the change may take from hosts: all of them where it changes who may
// sign, and otherwise those that it signs.
func (n *Next) affected() []string {
	if _, handed := n.ready[tuf.RoleTargets]; handed || n.Roles[tuf.RoleTargets] != nil {
		return n.Client.Projects()
	}
	names := append(slices.Collect(maps.Keys(n.Roles)), slices.Collect(maps.Keys(n.ready))...)
	slices.Sort(names)
	return names
}

// steps says how to do a change that hosts would refuse in one step.
func (n *Next) steps(of string, err error) string {
	if n.advice != nil {
		return n.advice(of)
	}
	return diag.HintOf(err)
}

// ready is a role that comes signed. A project has its head, its pages and its whole list; what else
// is a role has its file in whole.
type ready struct {
	head, whole []byte
	pages       map[artifact.Digest][]byte
}
