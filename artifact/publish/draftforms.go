package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// draftProject makes a draft of a project, signed by the keys at hand: its head, its pages, and its
// whole list where the store still has one.
func (n *Next) draftProject(ctx context.Context, name string, role *trust.Role) (*Draft, error) {
	from := role.Signed.Version
	version, err := n.publisher.freeForms(ctx, name, from)
	if err != nil {
		return nil, err
	}
	may := n.Client.Delegation(name)
	keys, _, err := n.publisher.atHand(name, may)
	if err != nil {
		return nil, err
	}
	forms, err := n.split(ctx, name)
	if err != nil {
		return nil, err
	}
	head, whole, err := signForms(forms, version, keys)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", name, err)
	}
	d := &Draft{Form: projectForm, Role: name, From: from, Needs: []trust.Delegation{may}, Metadata: head, Pages: map[string]json.RawMessage{}}
	if forms.Whole != nil {
		d.Whole = whole
	}
	for digest, data := range forms.Pages {
		d.Pages[digest.Hex()] = data
	}
	return d, nil
}

// freeForms is the first version after one under which neither form of a project was written.
func (p *Publisher) freeForms(ctx context.Context, name string, version int64) (int64, error) {
	for {
		free, err := p.free(ctx, trust.HeadRole(name), version)
		if err != nil {
			return 0, err
		}
		both, err := p.free(ctx, name, free-1)
		if err != nil || both == free {
			return free, err
		}
		version = both - 1
	}
}

// page is a page that the draft has.
func (d *Draft) page(digest artifact.Digest) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, d.Pages[digest.Hex()]); err != nil {
		return nil, fmt.Errorf("the draft lacks the page %s: %w", digest.Short(), err)
	}
	if got := artifact.NewDigest(sha256.Sum256(b.Bytes())); got != digest {
		return nil, fmt.Errorf("a page of the draft has digest %s, and %s is to be signed", got, digest)
	}
	return b.Bytes(), nil
}

// all is what a draft of targets or a project says, with every version. Two forms that say different
// things are an error, since only one of them would be shown.
func (d *Draft) all() (*trust.Role, error) {
	role, err := trust.Decode[tuf.TargetsType](d.Metadata)
	if err != nil || d.Form == draftForm {
		return role, err
	}
	all, err := trust.Join(d.Role, role, d.page)
	if err != nil || len(d.Whole) == 0 {
		return all, err
	}
	whole, err := trust.Decode[tuf.TargetsType](d.Whole)
	if err != nil {
		return nil, err
	}
	return all, agree(all, whole)
}

// agree checks that a whole list says nothing but what a project says; it may lack versions.
func agree(all, whole *trust.Role) error {
	if whole.Signed.Version != all.Signed.Version || !whole.Signed.Expires.Equal(all.Signed.Expires) || whole.Signed.Delegations != nil || all.Signed.Delegations != nil {
		return errDiffer
	}
	for target, file := range whole.Signed.Targets {
		a, err := json.Marshal(file) // without the spaces of the file that the draft is
		b, otherErr := json.Marshal(all.Signed.Targets[target])
		if err := errors.Join(err, otherErr); err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return errDiffer
		}
	}
	if !reflect.DeepEqual(whole.Signed.UnrecognizedFields, all.Signed.UnrecognizedFields) {
		return errDiffer
	}
	return nil
}

var errDiffer = errors.New("the two forms of the project's metadata in the draft say different things")

// content is what is signed, of every file that is.
func (d *Draft) content() (any, error) {
	role, err := trust.Decode[tuf.TargetsType](d.Metadata)
	if err != nil || len(d.Whole) == 0 {
		return role.Signed, err
	}
	whole, err := trust.Decode[tuf.TargetsType](d.Whole)
	if err != nil {
		return nil, err
	}
	return []any{role.Signed, whole.Signed}, nil
}

// files are the files of a draft of targets or a project as they are written, each of them signed by
// enough of the keys that may.
func (n *Next) files(d *Draft) (ready, error) {
	first, err := n.signed(d, d.Metadata)
	if err != nil || d.Form == draftForm {
		return ready{whole: first}, err
	}
	r := ready{head: first, whole: first, pages: map[artifact.Digest][]byte{}}
	if len(d.Whole) > 0 {
		if r.whole, err = n.signed(d, d.Whole); err != nil {
			return r, err
		}
	}
	head, err := trust.Decode[tuf.TargetsType](d.Metadata)
	if err != nil {
		return r, err
	}
	digests, err := trust.Pages(head)
	if err != nil {
		return r, err
	}
	for _, digest := range digests {
		if r.pages[digest], err = d.page(digest); err != nil {
			return r, err
		}
	}
	return r, r.fit(d.Role)
}

// signed holds a file of a draft against who may sign it, and gives it as it is written.
func (n *Next) signed(d *Draft, data []byte) ([]byte, error) {
	role, err := trust.Decode[tuf.TargetsType](data)
	if err != nil {
		return nil, fmt.Errorf("reading the draft of %s: %w", d.Role, err)
	}
	if err := n.verify(d.Role, role); err != nil {
		return nil, unsigned(d, n.Client.Delegation(d.Role), err)
	}
	return role.ToBytes()
}

// fit refuses files that readers would refuse for their size.
func (r ready) fit(name string) error {
	errs := []error{trust.CheckSize(name, len(r.head)), trust.CheckSize(name, len(r.whole))}
	for page := range maps.Values(r.pages) {
		errs = append(errs, trust.CheckSize("a page of "+name, len(page)))
	}
	return errors.Join(errs...)
}
