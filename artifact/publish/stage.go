package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// object is a metadata file that is signed and not yet written.
type object struct {
	key  string
	data []byte
	cond store.Condition
	page bool // nothing names it yet; it may be written beside others
}

// seenByHosts reports whether hosts act on the object once it is there. They find every other one only
// through a timestamp.
func (o object) seenByHosts() bool {
	return o.key == trust.TimestampKey || o.isRoot()
}

func (o object) isRoot() bool { return strings.HasSuffix(o.key, "."+trust.MetaName(tuf.RoleRoot)) }

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

// write writes objects in their order.
func (p *Publisher) write(ctx context.Context, objects []object) error {
	for _, o := range objects {
		if err := trust.CheckSize(o.role(), len(o.data)); err != nil {
			return err
		}
	}
	if err := p.writePages(ctx, objects); err != nil {
		return err
	}
	for _, o := range objects {
		if o.page {
			continue
		}
		_, err := p.Store.Put(ctx, o.key, bytes.NewReader(o.data), int64(len(o.data)), o.cond)
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrPrecondition) {
			return lostAnswer(o, err)
		}
		// A draft's version is signed, so an earlier attempt that was cut short wrote it under this name.
		there, readErr := trust.ReadMetadata(ctx, p.Store, o.key)
		if !o.cond.IfAbsent || readErr != nil || !bytes.Equal(there, o.data) {
			return err
		}
	}
	return nil
}

// role is what an object is of, for a person.
func (o object) role() string {
	if o.key == trust.TimestampKey {
		return tuf.RoleTimestamp
	}
	return o.key
}

// pageWriters is how many pages are written at once.
const pageWriters = 8

// writePages writes the pages among objects, before any file that names them.
func (p *Publisher) writePages(ctx context.Context, objects []object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(pageWriters)
	for _, o := range objects {
		if o.page {
			group.Go(func() error {
				_, err := p.Store.Put(ctx, o.key, bytes.NewReader(o.data), int64(len(o.data)), o.cond)
				return err
			})
		}
	}
	return group.Wait()
}

// keepPages writes the pages among objects again that a garbage collection removed while nothing named them: pages
// have the names of their content, and an earlier attempt may have left one.
func (p *Publisher) keepPages(ctx context.Context, objects []object) error {
	var keys []string
	for _, o := range objects {
		if o.page {
			keys = append(keys, o.key)
		}
	}
	missing, err := p.missing(ctx, keys)
	if err != nil {
		return err
	}
	return p.writePages(ctx, slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return !slices.Contains(missing, o.key) }))
}

// whole names the store itself among what hosts accept or refuse; the other names are those of
// projects and of channels, project/channel.
const whole = "the store"

// refusals is what a host that knows the store as n read it refuses of the store as it is in s.
func (n *next) refusals(ctx context.Context, s store.Store, projects []string) (map[string]error, error) {
	host, err := n.client.Rehearse(s, n.publisher.now)
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

// notAnswered passes on an error of the way to the store, which says nothing about the store's content.
func notAnswered(err error) error {
	if err == nil || trust.OfOne(err) {
		return nil
	}
	return err
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
func (n *next) rehearse(ctx context.Context, objects []object, endOnly bool) error {
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
func (n *next) passes(of string, before map[string]error, last bool) bool {
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
	return !n.strict || !last || of != whole && n.roles[of] == nil
}

// affected lists the projects that the change may take from hosts: all of them where it changes who may
// sign, and otherwise those that it signs.
func (n *next) affected() []string {
	if _, handed := n.ready[tuf.RoleTargets]; handed || n.roles[tuf.RoleTargets] != nil {
		return n.client.Projects()
	}
	names := append(slices.Collect(maps.Keys(n.roles)), slices.Collect(maps.Keys(n.ready))...)
	slices.Sort(names)
	return names
}

// steps says how to do a change that hosts would refuse in one step.
func (n *next) steps(of string, err error) string {
	if n.advice != nil {
		return n.advice(of)
	}
	return diag.HintOf(err)
}

// lostAnswer says that the step which commits a change may have been made, where its answer was lost.
func lostAnswer(o object, err error) error {
	lost := errors.Is(err, store.ErrUnreachable) || errors.Is(err, context.Canceled)
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) // so it was not written
	if o.key != trust.TimestampKey || !lost || full || errors.Is(err, store.ErrCredentials) || errors.Is(err, store.ErrNoStore) {
		return err
	}
	return diag.WithHint(fmt.Errorf("the answer to the last step was lost, so the change may have been made: %w", err),
		"it may have been published: run the command again, which changes nothing where it was")
}
