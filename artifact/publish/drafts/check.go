package drafts

import (
	"errors"
	"fmt"
	"maps"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// files returns the files of a draft of targets or of a project, ready to be written, after checking that each has
// enough signatures.
func files(n *publish.Next, d *publish.Draft) (publish.ReadyFiles, error) {
	first, err := signed(n, d, d.Metadata)
	if err != nil || d.Form == publish.DraftForm {
		return publish.ReadyFiles{Whole: first}, err
	}
	r := publish.ReadyFiles{Head: first, Whole: first, Pages: map[artifact.Digest][]byte{}}
	if len(d.Whole) > 0 {
		if r.Whole, err = signed(n, d, d.Whole); err != nil {
			return r, err
		}
	}
	if err := readPages(d, r.Pages); err != nil {
		return r, err
	}
	return r, fit(r, d.Role)
}

// readPages reads the pages that the head of a draft names.
func readPages(d *publish.Draft, to map[artifact.Digest][]byte) error {
	head, err := trust.Decode[tuf.TargetsType](d.Metadata)
	if err != nil {
		return err
	}
	digests, err := trust.Pages(head)
	if err != nil {
		return err
	}
	for _, digest := range digests {
		if to[digest], err = d.Page(digest); err != nil {
			return err
		}
	}
	return nil
}

// signed checks the signatures of a file of a draft, and returns the file, ready to be written.
func signed(n *publish.Next, d *publish.Draft, data []byte) ([]byte, error) {
	role, err := trust.Decode[tuf.TargetsType](data)
	if err != nil {
		return nil, fmt.Errorf("reading the draft of %s: %w", d.Role, err)
	}
	if err := verify(n, d.Role, role); err != nil {
		return nil, lacksSignatures(d, n.Client.Delegation(d.Role), err)
	}
	return role.ToBytes()
}

// fit returns an error for files that are too large for readers.
func fit(r publish.ReadyFiles, name string) error {
	errs := []error{trust.CheckSize(name, len(r.Head)), trust.CheckSize(name, len(r.Whole))}
	for page := range maps.Values(r.Pages) {
		errs = append(errs, trust.CheckSize("a page of "+name, len(page)))
	}
	return errors.Join(errs...)
}

// verify checks a role's signatures against the keys that may sign it.
func verify(n *publish.Next, name string, role *trust.Role) error {
	if name == tuf.RoleTargets {
		return n.Client.Trusted().Root.VerifyDelegate(name, role)
	}
	return n.Client.Trusted().Targets[tuf.RoleTargets].VerifyDelegate(name, role)
}

// lacksSignatures returns the error for a draft with too few signatures.
func lacksSignatures(d *publish.Draft, may trust.Delegation, err error) error {
	refused := &trust.Refused{Check: trust.CheckSignature, Of: "the draft of " + d.Role, By: trust.SignedBy(d.Metadata),
		May: may, Err: err}
	if !d.HasKeys(may) {
		return diag.Draft.Hint(refused, "the keys of %s were replaced after the draft was made, and a draft is signed by "+
			"those that it names: make it again, with `corpus export %[1]s -o FILE` or the command that wrote it, and let "+
			"these keys' owners run `corpus sign FILE`", d.Role)
	}
	return diag.Draft.Hint(refused, "let more of these keys' owners run `corpus sign FILE`")
}
