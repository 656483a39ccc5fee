package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// draftProject makes a draft of a project, signed with the available keys. It has the head, the pages and, unless the
// store was upgraded, the whole list.
func (n *Next) draftProject(ctx context.Context, name string, role *trust.Role) (*Draft, error) {
	from := role.Signed.Version
	version, err := n.Publisher.freeForms(ctx, name, from)
	if err != nil {
		return nil, err
	}
	may := n.Client.Delegation(name)
	keys, _, err := n.Publisher.AtHand(name, may)
	if err != nil {
		return nil, err
	}
	forms, err := n.Split(ctx, name)
	if err != nil {
		return nil, err
	}
	head, whole, err := signForms(forms, version, keys)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", name, err)
	}
	d := &Draft{Form: projectForm, Role: name, From: from, Needs: []trust.Delegation{may}, Metadata: head,
		Pages: map[string]json.RawMessage{}}
	if forms.Whole != nil {
		d.Whole = whole
	}
	for digest, data := range forms.Pages {
		d.Pages[digest.Hex()] = data
	}
	return d, nil
}

// Page returns a page of the draft.
func (d *Draft) Page(digest artifact.Digest) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, d.Pages[digest.Hex()]); err != nil {
		return nil, fmt.Errorf("the draft lacks the page %s: %w", digest.Short(), err)
	}
	if got := artifact.NewDigest(sha256.Sum256(b.Bytes())); got != digest {
		return nil, fmt.Errorf("a page of the draft has digest %s, and %s is to be signed", got, digest)
	}
	return b.Bytes(), nil
}

// All returns the role of a draft of targets or of a project with all versions. It is an error if the two forms of a
// project differ, since a person is shown only one of them.
func (d *Draft) All() (*trust.Role, error) {
	role, err := trust.Decode[tuf.TargetsType](d.Metadata)
	if err != nil || d.Form == DraftForm {
		return role, err
	}
	all, err := trust.Join(d.Role, role, d.Page)
	if err != nil || len(d.Whole) == 0 {
		return all, err
	}
	whole, err := trust.Decode[tuf.TargetsType](d.Whole)
	if err != nil {
		return nil, err
	}
	return all, agree(all, whole)
}

// agree returns an error if a whole list has entries that differ from those of the project. The list may lack versions.
func agree(all, whole *trust.Role) error {
	if whole.Signed.Version != all.Signed.Version || !whole.Signed.Expires.Equal(all.Signed.Expires) ||
		whole.Signed.Delegations != nil || all.Signed.Delegations != nil {
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

// content returns the signed content of all files of the draft.
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
