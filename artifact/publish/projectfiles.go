package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// signatureRoom is the maximum number of bytes that a signature adds to a file.
const signatureRoom = 1 << 10

// Split makes the unsigned files of the next version of a project.
func (n *Next) Split(ctx context.Context, name string) (trust.Forms, error) {
	all, err := n.Client.Complete(ctx, name, n.Roles[name])
	if err != nil {
		return trust.Forms{}, err
	}
	all.Signed.Expires = n.Publisher.Expires(n.Publisher.Expiry.WithDefaults().Snapshot)
	forms, err := trust.Split(name, all, !n.upgraded())
	if err != nil {
		return trust.Forms{}, err
	}
	errs := []error{fits(forms.Head, len(n.Client.Delegation(name).Keys))}
	for _, page := range forms.Pages {
		errs = append(errs, trust.CheckSize("a page of "+name, len(page)))
	}
	return forms, errors.Join(errs...)
}

// upgraded reports whether the store has no whole lists after the change.
func (n *Next) upgraded() bool {
	targets := n.Client.Trusted().Targets[tuf.RoleTargets]
	if role, ok := n.Roles[tuf.RoleTargets]; ok {
		targets = role
	}
	return trust.Upgraded(targets)
}

// fits returns an error if a role with so many signatures is too large for readers.
func fits[T tuf.Roles](role *tuf.Metadata[T], signatures int) error {
	data, err := role.ToBytes()
	if err != nil {
		return err
	}
	kind := tuf.RoleTargets
	if _, ok := any(role.Signed).(tuf.TimestampType); ok {
		kind = tuf.RoleTimestamp
	}
	return trust.CheckSize(kind, len(data)+signatureRoom*signatures)
}

// stageProject signs the next version of a project: the pages that the store does not have, the head, and the whole
// list.
func (n *Next) stageProject(ctx context.Context, name string, keys []keyring.Key) ([]Object, map[string]*tuf.MetaFiles,
	error) {
	forms, err := n.Split(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("signing %s: %w", name, err)
	}
	version, err := n.Publisher.freeForms(ctx, name, forms.Head.Signed.Version)
	if err != nil {
		return nil, nil, err
	}
	head, whole, err := signForms(forms, version, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("signing %s: %w", name, err)
	}
	objects, described := describeForms(name, version, head, whole)
	return append(pageObjects(name, forms.Pages, n.lyingPages(name)), objects...), described, nil
}

// describeForms returns the files of a project, and their entries in the snapshot.
func describeForms(name string, version int64, head, whole []byte) ([]Object, map[string]*tuf.MetaFiles) {
	var objects []Object
	described := map[string]*tuf.MetaFiles{}
	for _, f := range []struct {
		role string
		data []byte
	}{{trust.HeadRole(name), head}, {name, whole}} {
		objects = append(objects, Object{Key: trust.RoleKey(f.role, version), Data: f.data,
			cond: store.Condition{IfAbsent: true}})
		described[trust.MetaName(f.role)] = MetaFile(version, f.data)
	}
	return objects, described
}

// signForms signs the head and the whole list. Without a list, the head is written in its place.
func signForms(forms trust.Forms, version int64, keys []keyring.Key) (head, whole []byte, err error) {
	before := forms.Head.Signed.Version
	if err := trust.SetFollows(forms.Head, version, before); err != nil {
		return nil, nil, err
	}
	if head, err = Sign(forms.Head, keys); err != nil || forms.Whole == nil {
		return head, head, err
	}
	if err := trust.SetFollows(forms.Whole, version, before); err != nil {
		return nil, nil, err
	}
	whole, err = Sign(forms.Whole, keys)
	return head, whole, err
}

// lyingPages returns the digests of the pages that the current head names. The store has them, and garbage collection
// keeps them.
func (n *Next) lyingPages(name string) []artifact.Digest {
	role := n.Client.Trusted().Targets[name]
	if role == nil {
		return nil
	}
	pages, err := trust.Pages(role)
	if err != nil {
		return nil // they are written again
	}
	return pages
}

// pageObjects returns the pages to write. A page that is in the store but not in the current head is written again,
// since garbage collection may remove it at any moment.
func pageObjects(project string, pages map[artifact.Digest][]byte, lying []artifact.Digest) []Object {
	var objects []Object
	for _, digest := range slices.Sorted(maps.Keys(pages)) {
		if !slices.Contains(lying, digest) {
			objects = append(objects, Object{Key: trust.PageKey(project, digest), Data: pages[digest], Page: true})
		}
	}
	return objects
}

// stageReadyFiles prepares the files of a role that others have signed for writing.
func (p *Publisher) stageReadyFiles(ctx context.Context, name string, r ReadyFiles) ([]Object,
	map[string]*tuf.MetaFiles, error) {
	objects, described := pageObjects(name, r.Pages, nil), map[string]*tuf.MetaFiles{}
	for _, f := range []struct {
		role string
		data []byte
	}{{trust.HeadRole(name), r.Head}, {name, r.Whole}} {
		if f.data == nil {
			continue
		}
		o, meta, err := p.StageReady(ctx, f.role, f.data)
		if err != nil {
			return nil, nil, err
		}
		objects, described[trust.MetaName(f.role)] = append(objects, o), meta
	}
	return objects, described, nil
}
