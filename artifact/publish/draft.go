package publish

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/cjson"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The versions of the draft file's own form. A draft of a project has both forms of its metadata, and
// what knows only the first would sign one of them.
const (
	DraftForm   = 1
	projectForm = 2
)

// Draft is the next version of a role on its way from hand to hand: written by one, signed by
// several who need no store for it, and committed by who has the online keys.
type Draft struct {
	Form     int                `json:"corpus_draft"`
	Role     string             `json:"role"`
	From     int64              `json:"from"`  // version that it follows; 0 for none
	Needs    []trust.Delegation `json:"needs"` // as the store said; Import asks the store again
	Metadata json.RawMessage    `json:"metadata"`

	// Of a project, in form 2: Metadata is its head, and these are the list of all versions in one
	// file, empty after the store was upgraded, and the pages that the head names, by their digest.
	Whole json.RawMessage            `json:"whole,omitempty"`
	Pages map[string]json.RawMessage `json:"pages,omitempty"`
}

// ReadDraft reads a draft file.
func ReadDraft(file string) (*Draft, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, diag.WithHint(fmt.Errorf("reading a draft: %w", err), "`corpus export ROLE -o FILE` writes one")
	}
	d, err := ParseDraft(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// ParseDraft reads a draft to its end, as somebody handed it over.
func ParseDraft(data []byte) (*Draft, error) {
	var d Draft
	if err := json.Unmarshal(data, &d); err != nil || d.Form == 0 {
		return nil, diag.WithHint(errors.New("it is not a draft"), "give a file that `corpus export`, or --draft, wrote")
	}
	if d.Form > projectForm {
		return nil, diag.WithHint(fmt.Errorf("it is a draft of form %d, and this corpus knows %d", d.Form, projectForm), "take the version of corpus that wrote it")
	}
	if err := errors.Join(artifact.CheckJSON(data), d.check()); err != nil {
		return nil, diag.WithHint(fmt.Errorf("reading the draft: %w", err), "ask for it again: it was damaged, or is no draft")
	}
	return &d, nil
}

// check holds a draft to what one can say.
func (d *Draft) check() error {
	if d.Role != tuf.RoleRoot && d.Role != tuf.RoleTargets {
		if err := trust.CheckProject(d.Role); err != nil {
			return err
		}
	}
	return trust.Guard(func() error {
		_, err := d.Summary()
		return err
	})
}

// Write writes a draft file.
func (d *Draft) Write(file string) error {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(file, append(data, '\n'), 0o644)
}

// Sign adds the signatures of keys that may sign the draft. One key that may not is an error, so
// that nobody believes to have signed who has not.
func (d *Draft) Sign(keys []keyring.Key) error {
	for _, k := range keys {
		if !slices.ContainsFunc(d.Needs, func(may trust.Delegation) bool { return slices.Contains(may.Keys, k.ID) }) {
			return diag.WithHint(fmt.Errorf("key %s (%s) is none that may sign %s", trust.ShortKey(k.ID), k.From, d.Role), "`corpus sign --show FILE` lists who may")
		}
	}
	var err error
	if d.Role == tuf.RoleRoot {
		d.Metadata, err = signAgain[tuf.RootType](d.Metadata, keys)
	} else {
		d.Metadata, err = signAgain[tuf.TargetsType](d.Metadata, keys)
		if err == nil && len(d.Whole) > 0 {
			d.Whole, err = signAgain[tuf.TargetsType](d.Whole, keys)
		}
	}
	if err != nil {
		return fmt.Errorf("signing the draft of %s: %w", d.Role, err)
	}
	return nil
}

func signAgain[T tuf.Roles](data []byte, keys []keyring.Key) ([]byte, error) {
	role, err := trust.Decode[T](data)
	if err != nil {
		return nil, err
	}
	if err := AddSignatures(role, keys); err != nil {
		return nil, err
	}
	return role.ToBytes()
}

// Summary is what a person reads before signing, worked out of the very bytes that are signed.
type Summary struct {
	Role     string             `json:"role"`
	Version  int64              `json:"version"`
	Expires  time.Time          `json:"expires"`
	Content  artifact.Digest    `json:"content"` // of what is signed: the same for everybody who signs
	Says     []string           `json:"says"`
	SignedBy []string           `json:"signed_by"` // IDs of keys
	Needs    []trust.Delegation `json:"needs"`
	Missing  int                `json:"missing"` // signatures that are still needed
}

// Summary reads a draft for a person.
func (d *Draft) Summary() (Summary, error) {
	s := Summary{Role: d.Role, SignedBy: trust.SignedBy(d.Metadata), Needs: d.Needs, Says: []string{}}
	for _, may := range d.Needs {
		have := 0
		for _, id := range may.Keys {
			if slices.Contains(s.SignedBy, id) {
				have++
			}
		}
		s.Missing = max(s.Missing, may.Threshold-have)
	}
	var content any
	var err error
	if d.Role == tuf.RoleRoot {
		var root *RootRole
		if root, err = trust.Decode[tuf.RootType](d.Metadata); err == nil {
			content, s.Version, s.Expires, s.Says = root.Signed, root.Signed.Version, root.Signed.Expires, rootSays(root)
		}
	} else {
		var role *trust.Role
		if role, err = d.All(); err == nil {
			s.Version, s.Expires = role.Signed.Version, role.Signed.Expires
			s.Says, err = roleSays(d.Role, role)
		}
		if err == nil {
			content, err = d.content()
		}
	}
	if err != nil {
		return s, err
	}
	payload, err := cjson.EncodeCanonical(content)
	s.Content = artifact.NewDigest(sha256.Sum256(payload))
	return s, err
}

func rootSays(root *RootRole) []string {
	var says []string
	for _, name := range slices.Sorted(maps.Keys(root.Signed.Roles)) {
		says = append(says, mayText(name, trust.RootDelegation(root, name)))
	}
	return says
}

func mayText(role string, may trust.Delegation) string {
	text := fmt.Sprintf("%s is signed by %d of", role, may.Threshold)
	for _, id := range may.Keys {
		text += " " + longID(id)
	}
	return text
}

// longID is enough of an ID that nobody makes a key that looks alike.
func longID(id string) string { return id[:min(len(id), 32)] }

// roleSays tells what targets or a project's role says.
func roleSays(name string, role *trust.Role) ([]string, error) {
	says := []string{}
	if delegations := role.Signed.Delegations; delegations != nil {
		for _, r := range delegations.Roles {
			says = append(says, mayText(r.Name, trust.Delegation{Keys: r.KeyIDs, Threshold: r.Threshold}))
		}
	}
	if trust.Upgraded(role) {
		says = append(says, "the lists of all versions of a project in one file end (`corpus store upgrade`)")
	}
	ended, err := trust.Ended(role)
	if err != nil {
		return nil, err
	}
	for _, project := range slices.Sorted(maps.Keys(ended)) {
		says = append(says, fmt.Sprintf("what %s said up to version %d of its metadata counts no longer", project, ended[project]))
	}
	required, err := trust.Requirements(role)
	if err != nil {
		return nil, err
	}
	for _, ref := range slices.Sorted(maps.Keys(required)) {
		says = append(says, fmt.Sprintf("%s requires %s", ref, required[ref]))
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return nil, err
	}
	for _, channel := range slices.Sorted(maps.Keys(channels)) {
		p := channels[channel]
		says = append(says, fmt.Sprintf("%s/%s is %s, %s", name, channel, p.Version, p.Digest))
	}
	yanks, err := trust.Yanks(role)
	if err != nil {
		return nil, err
	}
	for _, r := range trust.Releases(name, role) {
		text := fmt.Sprintf("%s %s is %s", name, r.Version, r.Digest)
		if yank, ok := yanks[r.Version]; ok {
			text += ", withdrawn: " + yank.Reason
		}
		says = append(says, text)
	}
	return says, nil
}
