package publish

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/cjson"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The versions of the format of draft files. A draft of a project has both forms of its metadata, and a program that
// knows only the first version would sign one of them.
const (
	DraftForm   = 1
	projectForm = 2
)

// Draft is the next version of a role while several people sign it: one person makes it, others sign it without access
// to the store, and one who has the online keys commits it.
type Draft struct {
	Form     int                `json:"corpus_draft"`
	Role     string             `json:"role"`
	From     int64              `json:"from"`  // version that it follows; 0 for none
	Needs    []trust.Delegation `json:"needs"` // as in the store when the draft was made; Import reads them again
	Metadata json.RawMessage    `json:"metadata"`

	// For a project, in format 2: Metadata is its head, Whole is the list of all versions in one file, which is empty
	// after the store was upgraded, and Pages has the pages that the head names by their digests.
	Whole json.RawMessage            `json:"whole,omitempty"`
	Pages map[string]json.RawMessage `json:"pages,omitempty"`
}

// ReadDraft reads a draft file.
func ReadDraft(file string) (*Draft, error) {
	data, err := walk.ReadGiven(file)
	if err != nil {
		return nil, diag.Draft.Hint(fmt.Errorf("reading a draft: %w", err), "`corpus export ROLE -o FILE` writes one")
	}
	d, err := ParseDraft(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// ParseDraft parses the content of a draft file.
func ParseDraft(data []byte) (*Draft, error) {
	var d Draft
	if err := json.Unmarshal(data, &d); err != nil || d.Form == 0 {
		return nil, diag.Draft.Hint(errors.New("it is not a draft"), "give a file that `corpus export`, or --draft, wrote")
	}
	if d.Form > projectForm {
		return nil, diag.Draft.Hint(fmt.Errorf("it is a draft of form %d, and this corpus knows %d", d.Form, projectForm),
			"take the version of corpus that wrote it")
	}
	if err := errors.Join(artifact.CheckJSON(data), d.check()); err != nil {
		return nil, diag.Draft.Hint(fmt.Errorf("reading the draft: %w", err),
			"ask for it again: it was damaged, or is not a draft")
	}
	return &d, nil
}

// check returns an error for a draft with a role or content that drafts cannot have.
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

// HasKeys reports whether the draft names enough of the keys that may sign it now to be signed.
func (d *Draft) HasKeys(may trust.Delegation) bool {
	known := 0
	for _, key := range may.Keys {
		if slices.ContainsFunc(d.Needs, func(old trust.Delegation) bool { return slices.Contains(old.Keys, key) }) {
			known++
		}
	}
	return known >= may.Threshold
}

// Sign adds the signatures of keys. A key that may not sign the draft is an error, so that its owner does not believe
// that the draft is signed.
func (d *Draft) Sign(keys []keyring.Key) error {
	for _, k := range keys {
		if !slices.ContainsFunc(d.Needs, func(may trust.Delegation) bool { return slices.Contains(may.Keys, k.ID) }) {
			return diag.Draft.Hint(fmt.Errorf("key %s (%s) is none that may sign %s", trust.ShortKey(k.ID), k.From, d.Role),
				"`corpus sign --show FILE` lists who may")
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

// Summary describes a draft to a person before signing. It is made from the bytes that are signed.
type Summary struct {
	Role     string             `json:"role"`
	Version  int64              `json:"version"`
	Expires  time.Time          `json:"expires"`
	Content  artifact.Digest    `json:"content"` // digest of the signed content, which is the same for all signers
	Says     []string           `json:"says"`
	SignedBy []string           `json:"signed_by"` // IDs of keys
	Needs    []trust.Delegation `json:"needs"`
	Missing  int                `json:"missing"` // signatures that are still needed
}

// Summary returns a summary of the draft.
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

// longID returns the beginning of a key ID, long enough that no other key can be made with the same one.
func longID(id string) string { return id[:min(len(id), 32)] }

// roleSays describes the content of targets or of a project's role in sentences.
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
		says = append(says, fmt.Sprintf("what %s said up to version %d of its metadata counts no longer", project,
			ended[project]))
	}
	required, err := trust.Requirements(role)
	if err != nil {
		return nil, err
	}
	for _, ref := range slices.Sorted(maps.Keys(required)) {
		says = append(says, fmt.Sprintf("%s requires %s", ref, required[ref]))
	}
	plans, err := trust.Rollouts(role)
	if err != nil {
		return nil, err
	}
	for _, ref := range slices.Sorted(maps.Keys(plans)) {
		says = append(says, fmt.Sprintf("%s rolls out in %s", ref, plans[ref]))
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return nil, err
	}
	for _, channel := range slices.Sorted(maps.Keys(channels)) {
		p := channels[channel]
		says = append(says, fmt.Sprintf("%s/%s is %s, %s", name, channel, p.Version, p.Digest))
		if p.Moved != nil {
			says = append(says, fmt.Sprintf("%s/%s: %s", name, channel, p.Moved))
		}
		if p.Rollout != nil {
			says = append(says, fmt.Sprintf("%s/%s: %s", name, channel, p.Rollout))
		}
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
