package trust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Kind is the kind of an object that a project signs beside an artifact. A host that does not know a kind
// ignores the object.
type Kind string

// The kinds.
const (
	KindBlocks Kind = "blocks" // digests of the artifact's blocks, see Blocks
	KindIndex  Kind = "index"  // the chunks of the unpacked tree, see artifact/chunk

	KindSPDX       Kind = "spdx.json"       // the artifact's components
	KindProvenance Kind = "provenance.json" // a description of the build of the artifact
)

// Statements returns the kinds that are meant for people and other programs; no host needs them.
func Statements() []Kind { return []Kind{KindSPDX, KindProvenance} }

// Kinds returns all kinds.
func Kinds() []Kind { return append(Statements(), KindBlocks, KindIndex) }

// Statement is a signed file beside an artifact for people and other programs.
type Statement struct {
	Kind   Kind            `json:"kind"`
	Key    string          `json:"key"` // of the object in the store
	Length int64           `json:"length"`
	Digest artifact.Digest `json:"digest"`
}

// Statements lists the statements beside a release. The caller must call Resolve or List first.
func (c *Client) Statements(r artifact.Release) []Statement {
	var list []Statement
	for _, kind := range Statements() {
		if length, digest, ok := c.Sidecar(r, kind); ok {
			list = append(list, Statement{Kind: kind, Key: SidecarKey(r, kind, digest), Length: length, Digest: digest})
		}
	}
	return list
}

// ErrNoSidecar is the error for an artifact that was published without an object of the kind.
var ErrNoSidecar = errors.New("nothing of the kind is signed beside the artifact")

// SidecarTarget returns the name of an object beside an artifact in the project's role.
func SidecarTarget(r artifact.Release, kind Kind) string {
	return TargetPath(r.Project, r.Version, r.Format) + "." + string(kind)
}

// SidecarKey returns the key of an object beside an artifact. It contains the object's own digest.
func SidecarKey(r artifact.Release, kind Kind, digest artifact.Digest) string {
	dir, name := path.Split(SidecarTarget(r, kind))
	return dir + digest.Hex() + "." + name
}

// Signed is a small object beside an artifact, with the bytes that the project's key signed. Like a Verified, only this
// package makes it.
type Signed struct {
	release artifact.Release
	kind    Kind
	data    []byte
}

// Release returns the release that the object belongs to.
func (s *Signed) Release() artifact.Release { return s.release }

// Kind returns the object's kind.
func (s *Signed) Kind() Kind { return s.kind }

// Data returns the object's content. The caller must not change it.
func (s *Signed) Data() []byte { return s.data }

// Malformed returns the refusal of a signed object that cannot be parsed.
func (s *Signed) Malformed(err error) error {
	return &Refused{Check: CheckForm, Of: SidecarTarget(s.release, s.kind), Err: err}
}

// Sidecar returns length and digest of an object beside a release, without fetching it. The caller must call Resolve
// for the project first.
func (c *Client) Sidecar(r artifact.Release, kind Kind) (length int64, digest artifact.Digest, ok bool) {
	if !c.signs(r) {
		return 0, "", false
	}
	file := c.file(r.Project, SidecarTarget(r, kind))
	if file == nil || len(file.Hashes["sha256"]) != 32 || file.Length <= 0 || file.Length > maxSidecar {
		return 0, "", false
	}
	return file.Length, artifact.NewDigest([32]byte(file.Hashes["sha256"])), true
}

// maxSidecar is the maximum size, in bytes, of an object that is read into memory: the index of a tree of about 64 GiB.
const maxSidecar = 128 << 20

// signs reports whether a project signs exactly this release.
func (c *Client) signs(r artifact.Release) bool {
	file := c.file(r.Project, TargetPath(r.Project, r.Version, r.Format))
	return file != nil && file.Length == r.Length && len(file.Hashes["sha256"]) == 32 &&
		artifact.NewDigest([32]byte(file.Hashes["sha256"])) == r.Digest
}

// FetchSidecar fetches and verifies an object beside a release. If the store in use sends wrong bytes, it tries
// mirrors. It is safe for concurrent use.
func (c *Client) FetchSidecar(ctx context.Context, r artifact.Release, kind Kind) (*Signed, error) {
	length, digest, ok := c.Sidecar(r, kind)
	if !ok {
		return nil, fmt.Errorf("%w: %s of %s", ErrNoSidecar, kind, r)
	}
	key := SidecarKey(r, kind, digest)
	data, err := c.sidecar(ctx, c.store, r, key, length, digest)
	turns := store.NewTurns(c.store, key)
	for i := 0; i < turns.Stores() && turns.Stores() > 1 && as[*Refused](err) && ctx.Err() == nil; i++ {
		var other error
		if data, other = c.sidecar(ctx, turns.At(i), r, key, length, digest); other == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &Signed{release: r, kind: kind, data: data}, nil
}

// sidecar fetches and verifies an object from one store.
func (c *Client) sidecar(ctx context.Context, s store.Store, r artifact.Release, key string, length int64,
	digest artifact.Digest) ([]byte, error) {
	data, err := read(ctx, s, key, length)
	if err != nil {
		return nil, c.AddSigners(r.Project, err)
	}
	if int64(len(data)) != length {
		return nil, c.AddSigners(r.Project, &Refused{Check: CheckLength, Of: key,
			Err: fmt.Errorf("it has %d bytes, and %d were signed", len(data), length)})
	}
	if got := digestOf(data); got != digest {
		return nil, c.AddSigners(r.Project, &Refused{Check: CheckDigest, Of: key,
			Err: fmt.Errorf("its digest is %s, and %s was signed", got, digest)})
	}
	return data, nil
}

// custom has the data of an artifact in a project's role besides its length and digest.
type custom struct {
	Tree artifact.Digest `json:"tree,omitempty"` // digest of the unpacked tree's manifest
}

// Tree returns the signed digest of the manifest of a release's tree; false if none was signed.
func (c *Client) Tree(r artifact.Release) (artifact.Digest, bool) {
	if !c.signs(r) {
		return "", false
	}
	raw := c.file(r.Project, TargetPath(r.Project, r.Version, r.Format)).Custom
	if raw == nil {
		return "", false
	}
	var says custom
	if err := json.Unmarshal(*raw, &says); err != nil {
		return "", false
	}
	digest, err := artifact.ParseDigest(string(says.Tree))
	return digest, err == nil
}

// SetTree sets the digest of a release's tree before the project's role is signed.
func SetTree(role *Role, r artifact.Release, digest artifact.Digest) error {
	file, ok := role.Signed.Targets[TargetPath(r.Project, r.Version, r.Format)]
	if !ok {
		return fmt.Errorf("%s is not among the project's artifacts", r)
	}
	says := map[string]any{}
	if file.Custom != nil {
		if err := json.Unmarshal(*file.Custom, &says); err != nil {
			return fmt.Errorf("reading the signed data of %s: %w", r, err)
		}
	}
	says["tree"] = digest
	data, err := json.Marshal(says)
	if err != nil {
		return err
	}
	raw := json.RawMessage(data)
	file.Custom = &raw
	return nil
}

// Recall returns a client of the metadata that a host has kept, for questions about its releases. It reads no store and
// accepts expired metadata. Each file is verified by its signatures alone, since an interrupted refresh leaves some
// files newer than others.
func Recall(dir string) (*Client, error) {
	c, err := OpenToRenew(nil, dir)
	if err != nil {
		return nil, err
	}
	return c, c.recallRole(targetsRole, func(role *Role) error { return c.set.Root.VerifyDelegate(targetsRole, role) })
}

// RecallProject loads the kept metadata of a project.
func (c *Client) RecallProject(project string) error {
	if !c.delegated(project) {
		return fmt.Errorf("%w: %s", ErrNoProject, project)
	}
	return c.recallRole(project, func(role *Role) error {
		return c.set.Targets[targetsRole].VerifyDelegate(project, role)
	})
}

func (c *Client) recallRole(name string, verify func(*Role) error) error {
	data, err := c.seen.load(roleFile(name))
	if err != nil {
		return err
	}
	if data == nil {
		return fmt.Errorf("%w: this host has seen nothing of %s", ErrNoProject, name)
	}
	err = Guard(func() error {
		role, err := Decode[tuf.TargetsType](data)
		if err == nil {
			err = verify(role)
		}
		if err == nil {
			c.set.Targets[name] = role
		}
		return err
	})
	if err != nil {
		return refuse(MetaName(name), err)
	}
	return nil
}
