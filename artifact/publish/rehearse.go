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

// ahead is a store as it will be after some objects are written.
type ahead struct {
	store.Store
	objects []Object
}

// Get returns an object that is to be written, or else the object in the store.
func (a ahead) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	for _, o := range slices.Backward(a.objects) {
		if o.Key == key {
			data := o.Data[min(from, int64(len(o.Data))):]
			return io.NopCloser(bytes.NewReader(data)), store.Info{Key: key, Size: int64(len(o.Data))}, nil
		}
	}
	return a.Store.Get(ctx, key, from)
}

// WholeStore is the name of the store itself among the names that refusals returns. The other names are projects, and
// channels as project/channel.
const WholeStore = "the store"

// refusals returns, by name, the errors with which a host refuses the store s, its projects and its channels. The host
// has already seen the metadata that n has read.
func (n *Next) refusals(ctx context.Context, s store.Store, projects []string) (map[string]error, error) {
	host, err := n.Client.Rehearse(s, n.Publisher.Time)
	if err != nil {
		return nil, err
	}
	refused := map[string]error{}
	if err := host.Refresh(ctx); err != nil {
		return map[string]error{WholeStore: err}, Unanswered(err)
	}
	for _, project := range projects {
		role, err := host.Project(ctx, project)
		if errors.Is(err, trust.ErrNoProject) {
			continue
		}
		if err != nil {
			refused[project] = err
			if err := Unanswered(err); err != nil {
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

// Unaccepted is the error for a change that was not written because hosts would refuse the result.
type Unaccepted struct {
	Of  string // the store, a project, or a channel
	Err error  // the error with which hosts would refuse it

	Advice string
}

func (u *Unaccepted) Error() string {
	return fmt.Sprintf("nothing was written, since hosts would refuse %s: %v", u.Of, u.Err)
}

// Hint returns steps that hosts accept.
func (u *Unaccepted) Hint() string { return diag.Metadata.Coded(u.Advice) }

// Rehearse checks like a host, before the first of the objects is written, that hosts lose nothing by the change: after
// each object that affects hosts, they must accept everything that they accepted before, and in the end also the new
// metadata. With endOnly only the end is checked.
func (n *Next) Rehearse(ctx context.Context, objects []Object, endOnly bool) error {
	projects := n.affected()
	var before map[string]error
	for i, o := range objects {
		last := i == len(objects)-1
		if !o.seenByHosts() || endOnly && !last {
			continue
		}
		after, err := n.refusals(ctx, ahead{n.Publisher.Store, objects[:i+1]}, projects)
		if err != nil {
			return err
		}
		for _, of := range slices.Sorted(maps.Keys(after)) {
			if before == nil {
				if before, err = n.refusals(ctx, n.Publisher.Store, projects); err != nil {
					return err
				}
			}
			if n.passes(of, before, last) {
				continue
			}
			if _, refused := before[of]; refused { // hosts refused the store before the change, too
				return fmt.Errorf("nothing was written: %w", after[of])
			}
			return &Unaccepted{Of: of, Err: after[of], Advice: n.steps(of, after[of])}
		}
	}
	return nil
}

// passes reports whether a refusal after the change is allowed: hosts refused the same before, and the change was not
// made to end that.
func (n *Next) passes(of string, before map[string]error, last bool) bool {
	if n.Allowed[of] {
		return true
	}
	_, refused := before[of]
	if _, all := before[WholeStore]; all && of != WholeStore {
		refused = true
	}
	if !refused {
		return false
	}
	return !n.Strict || !last || of != WholeStore && n.Roles[of] == nil
}

// affected returns the projects that hosts could lose by the change: all if it changes delegations, otherwise those
// that it signs.
func (n *Next) affected() []string {
	if _, handed := n.Ready[tuf.RoleTargets]; handed || n.Roles[tuf.RoleTargets] != nil {
		return n.Client.Projects()
	}
	names := append(slices.Collect(maps.Keys(n.Roles)), slices.Collect(maps.Keys(n.Ready))...)
	slices.Sort(names)
	return names
}

// steps returns a hint with the commands that make a change in several steps, each of which hosts accept.
func (n *Next) steps(of string, err error) string {
	if n.Advice != nil {
		return n.Advice(of)
	}
	return diag.HintOf(err)
}

// ReadyFiles are the files of a role that others have signed. A project has a head, pages and a whole list. Any other
// role has one file, in Whole.
type ReadyFiles struct {
	Head, Whole []byte
	Pages       map[artifact.Digest][]byte
}

// TryOut does all of a change except writing it: it signs with the available keys, and checks like a host.
func (n *Next) TryOut(ctx context.Context) error {
	p := n.Publisher
	if p.Hand != nil {
		for name := range n.Roles {
			if _, _, err := p.AtHand(name, n.Client.Delegation(name)); err != nil {
				return err
			}
		}
		return nil
	}
	objects, err := n.Stage(ctx, n.Client.Delegation)
	if err != nil || p.AtOnce {
		return err
	}
	n.Strict = true
	return n.Rehearse(ctx, objects, false)
}
