package artifacttest

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/cjson"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// Forger is an attacker who can write anything to a store and has the keys of some roles. It signs every other role
// with its own keys.
type Forger struct {
	repo   *Repo
	stolen []string
	own    keyring.Ring
}

// Forger makes a forger that has all keys of these roles.
func (r *Repo) Forger(stolen ...string) *Forger {
	return &Forger{repo: r, stolen: stolen, own: keyring.Ring{Dir: r.t.TempDir()}}
}

// Keys returns the keys with which the forger signs a role.
func (f *Forger) Keys(role string) []keyring.Key {
	f.repo.t.Helper()
	if slices.Contains(f.stolen, role) {
		return must(f.repo.Keys.Keys(role))(f.repo.t)
	}
	must(f.own.New(role, 1))(f.repo.t)
	return must(f.own.Keys(role))(f.repo.t)
}

// Public returns the public part of the forger's own key of a role.
func (f *Forger) Public(role string) *tuf.Key {
	f.repo.t.Helper()
	must(f.own.New(role, 1))(f.repo.t)
	return must(f.own.Public(role))(f.repo.t)[0]
}

// Forged is the metadata that a forger writes. Each role in Roles that was edited is signed and written with the
// version number that it contains. Snapshot and Timestamp are always written, with the next version number unless Held
// is set.
type Forged struct {
	Roles     map[string]*trust.Role // targets and projects
	Snapshot  *tuf.Metadata[tuf.SnapshotType]
	Timestamp *tuf.Metadata[tuf.TimestampType]
	Held      bool // snapshot and timestamp keep the version numbers that edit gave them

	Before func() // called when the roles are described in Snapshot, before it is signed
}

// Forge reads the metadata of the store, calls edit, and writes the result.
func (f *Forger) Forge(edit func(*Forged)) {
	t := f.repo.t
	t.Helper()
	forged := f.read()
	before := map[string][]byte{}
	for name, role := range forged.Roles {
		before[name] = must(role.ToBytes())(t)
	}
	edit(forged)
	for name, role := range forged.Roles {
		if bytes.Equal(before[name], must(role.ToBytes())(t)) {
			continue
		}
		if name != tuf.RoleTargets {
			f.head(forged, name)
		}
		data := signed(t, role, f.Keys(name))
		f.repo.Replace(trust.RoleKey(name, role.Signed.Version), data)
		forged.Snapshot.Signed.Meta[trust.MetaName(name)] = Described(role.Signed.Version, data)
	}
	if forged.Before != nil {
		forged.Before()
	}
	if !forged.Held {
		forged.Snapshot.Signed.Version++
		forged.Timestamp.Signed.Version++
	}
	data := signed(t, forged.Snapshot, f.Keys(tuf.RoleSnapshot))
	f.repo.Replace(trust.RoleKey(tuf.RoleSnapshot, forged.Snapshot.Signed.Version), data)
	forged.Timestamp.Signed.Meta[trust.MetaName(tuf.RoleSnapshot)] = Described(forged.Snapshot.Signed.Version, data)
	f.repo.Replace(trust.TimestampKey, signed(t, forged.Timestamp, f.Keys(tuf.RoleTimestamp)))
}

// head writes the head and the pages of a project, with the content of its role.
func (f *Forger) head(forged *Forged, name string) {
	t := f.repo.t
	t.Helper()
	role := forged.Roles[name]
	forms := must(trust.Split(name, role, false))(t)
	for digest, page := range forms.Pages {
		f.repo.Replace(trust.PageKey(name, digest), page)
	}
	data := signed(t, forms.Head, f.Keys(name))
	f.repo.Replace(trust.RoleKey(trust.HeadRole(name), role.Signed.Version), data)
	forged.Snapshot.Signed.Meta[trust.MetaName(trust.HeadRole(name))] = Described(role.Signed.Version, data)
}

// Root writes the next root, changed by edit and signed by the forger and by signers.
func (f *Forger) Root(edit func(*tuf.RootType), signers ...keyring.Key) {
	t := f.repo.t
	t.Helper()
	version := int64(1)
	for must(f.repo.has(trust.RoleKey(tuf.RoleRoot, version+1)))(t) {
		version++
	}
	root := must(tuf.Decode[tuf.RootType](f.repo.Object(trust.RoleKey(tuf.RoleRoot, version))))(t)
	root.Signed.Version++
	edit(&root.Signed)
	f.repo.Replace(trust.RoleKey(tuf.RoleRoot, root.Signed.Version),
		signed(t, root, append(f.Keys(tuf.RoleRoot), signers...)))
}

func (r *Repo) has(key string) (bool, error) {
	for info, err := range r.Store.List(r.t.Context(), key) {
		return info.Key == key, err
	}
	return false, nil
}

// read reads the metadata of the store without verifying it.
func (f *Forger) read() *Forged {
	t, repo := f.repo.t, f.repo
	t.Helper()
	forged := &Forged{Roles: map[string]*trust.Role{}}
	forged.Timestamp = must(tuf.Decode[tuf.TimestampType](repo.Object(trust.TimestampKey)))(t)
	version := forged.Timestamp.Signed.Meta[trust.MetaName(tuf.RoleSnapshot)].Version
	forged.Snapshot = must(tuf.Decode[tuf.SnapshotType](repo.Object(trust.RoleKey(tuf.RoleSnapshot, version))))(t)
	for file, meta := range forged.Snapshot.Signed.Meta {
		name := strings.TrimSuffix(file, ".json")
		if _, head := trust.IsHead(name); head {
			continue // its content follows from the project's role
		}
		forged.Roles[name] = must(tuf.Decode[tuf.TargetsType](repo.Object(trust.RoleKey(name, meta.Version))))(t)
	}
	return forged
}

// Sign adds the signature of a key, whether or not it may sign the role.
func Sign[T tuf.Roles](role *tuf.Metadata[T], key keyring.Key) (tuf.Signature, error) {
	content, err := cjson.EncodeCanonical(role.Signed)
	if err != nil {
		return tuf.Signature{}, err
	}
	made, err := key.Sign(content)
	s := tuf.Signature{KeyID: key.ID, Signature: made}
	role.Signatures = append(role.Signatures, s)
	return s, err
}

func signed[T tuf.Roles](t *testing.T, role *tuf.Metadata[T], keys []keyring.Key) []byte {
	t.Helper()
	role.Signatures = []tuf.Signature{}
	for _, k := range keys {
		must(Sign(role, k))(t)
	}
	return must(role.ToBytes())(t)
}

// Described returns the entry that describes a metadata file in the role above it.
func Described(version int64, data []byte) *tuf.MetaFiles {
	sum := sha256.Sum256(data)
	file := tuf.MetaFile(version)
	file.Length, file.Hashes = int64(len(data)), tuf.Hashes{"sha256": sum[:]}
	return file
}

// Sneak adds a release with these bytes to a role, points a channel at it, and uploads the bytes.
func (f *Forger) Sneak(role *trust.Role, project, version, channel string, data []byte) artifact.Release {
	t := f.repo.t
	t.Helper()
	sum := sha256.Sum256(data)
	r := artifact.Release{Project: project, Version: version, Format: artifact.TarZst, Digest: artifact.NewDigest(sum),
		Length: int64(len(data))}
	f.repo.Replace(trust.ObjectKey(r), data)
	target := tuf.TargetFile()
	target.Length, target.Hashes = r.Length, tuf.Hashes{"sha256": sum[:]}
	role.Signed.Targets[trust.TargetPath(project, version, r.Format)] = target
	channels := must(trust.Channels(role))(t)
	channels[channel] = trust.Pointer{Version: version, Digest: r.Digest, Serial: channels[channel].Serial + 1}
	if err := trust.SetChannels(role, channels); err != nil {
		t.Fatal(err)
	}
	role.Signed.Version++
	return r
}

// Later returns a clock that is so many days ahead.
func Later(days int) func() time.Time {
	return func() time.Time { return time.Now().AddDate(0, 0, days) }
}

// Aside returns a keyring in a directory beside that of the store, as rotations need.
func (r *Repo) Aside() keyring.Ring {
	next := r.Keys
	next.Dir = filepath.Join(r.t.TempDir(), "next")
	return next
}

// As returns a publisher of the store that has only the keys of some roles.
func (r *Repo) As(roles ...string) *publish.Publisher {
	r.t.Helper()
	p := *r.Publisher
	p.Keys.Dir, p.Seen = r.t.TempDir(), filepath.Join(r.t.TempDir(), "seen")
	for _, role := range roles {
		for _, suffix := range []string{".key", ".pub"} {
			copyFile(r.t, filepath.Join(r.Keys.Dir, role+suffix), filepath.Join(p.Keys.Dir, role+suffix))
		}
	}
	if err := trust.Pin(p.Seen, r.Root()); err != nil {
		r.t.Fatal(err)
	}
	return &p
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, must(os.ReadFile(from))(t), 0o600); err != nil {
		t.Fatal(err)
	}
}
