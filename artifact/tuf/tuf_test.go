package tuf

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/trustedmetadata"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// These tests compare with go-tuf, which was used before: files that it refuses have to be refused here, and files that
// it accepts have to be accepted, except where go-tuf has a fault.

// signer is a private key of any kind.
type signer struct {
	key *Key
	id  string
	by  crypto.Signer
}

func (s signer) sign(t *testing.T, content []byte) []byte {
	t.Helper()
	var made []byte
	var err error
	switch k := s.by.(type) {
	case ed25519.PrivateKey:
		made = ed25519.Sign(k, content)
	case *ecdsa.PrivateKey:
		if s.key.Scheme == schemeP384 {
			sum := sha512.Sum384(content)
			made, err = ecdsa.SignASN1(rand.Reader, k, sum[:])
			break
		}
		sum := sha256.Sum256(content)
		made, err = ecdsa.SignASN1(rand.Reader, k, sum[:])
	case *rsa.PrivateKey:
		sum := sha256.Sum256(content)
		made, err = rsa.SignPSS(rand.Reader, k, crypto.SHA256, sum[:], nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newSigner(t *testing.T, kind string) signer {
	t.Helper()
	var by crypto.Signer
	switch kind {
	case "ed25519":
		_, private, err := ed25519.GenerateKey(rand.Reader)
		by = must(private, err)(t)
	case "p256":
		by = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	case "p384":
		by = must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	case "rsa":
		by = must(rsa.GenerateKey(rand.Reader, 2048))(t)
	}
	key := must(NewKey(by.Public()))(t)
	if kind == "p384" {
		key.Scheme = schemeP384
	}
	theirs := must(metadata.KeyFromPublicKey(by.Public()))(t)
	if kind != "p384" && must(key.ID())(t) != must(theirs.ID())(t) {
		t.Errorf("the ID of a %s key differs from go-tuf's", kind)
	}
	return signer{key, must(key.ID())(t), by}
}

func signedBy[T Roles](t *testing.T, m *Metadata[T], keys ...signer) []byte {
	t.Helper()
	m.Signatures = []Signature{}
	content := must(m.content())(t)
	for _, k := range keys {
		m.Signatures = append(m.Signatures, Signature{KeyID: k.id, Signature: k.sign(t, content)})
	}
	return must(m.ToBytes())(t)
}

// world is a small store: a root with a key of every kind, and one delegated role.
type world struct {
	root, next, timestamp, later, snapshot, laterSnapshot, targets, project []byte
}

var far = time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld(t *testing.T) world {
	t.Helper()
	ed, p256, p384, pss := newSigner(t, "ed25519"), newSigner(t, "p256"), newSigner(t, "p384"), newSigner(t, "rsa")
	root := NewRoot(far)
	for role, keys := range map[string][]signer{RoleRoot: {ed, p256, pss}, RoleTimestamp: {ed}, RoleSnapshot: {p384},
		RoleTargets: {pss, p256}} {
		for _, k := range keys {
			if err := root.Signed.AddKey(k.key, role); err != nil {
				t.Fatal(err)
			}
		}
	}
	root.Signed.Roles[RoleRoot].Threshold = 2
	root.Signed.UnrecognizedFields = map[string]any{"note": "<&> é", "later": map[string]any{"n": 7}}
	var w world
	w.root = signedBy(t, root, ed, pss)
	root.Signed.Version = 2
	w.next = signedBy(t, root, p256, ed, pss)

	project := NewTargets(far)
	custom := json.RawMessage(`{"b":1,"a":[true,null,"x"]}`)
	project.Signed.Targets["deploy/app/1"] = &TargetFiles{Length: 3,
		Hashes: Hashes{"sha256": make(HexBytes, 32)}, Custom: &custom}
	w.project = signedBy(t, project, ed)
	targets := NewTargets(far)
	targets.Signed.Delegations = &Delegations{Keys: map[string]*Key{},
		Roles: []DelegatedRole{{Name: "app", KeyIDs: []string{}, Threshold: 1, Terminating: true,
			Paths: []string{"deploy/app/*"}}}}
	if err := targets.Signed.AddKey(ed.key, "app"); err != nil {
		t.Fatal(err)
	}
	w.targets = signedBy(t, targets, p256)
	snapshot := NewSnapshot(far)
	sum := sha512.Sum512(w.project)
	snapshot.Signed.Meta["app.json"] = &MetaFiles{Version: 1, Length: int64(len(w.project)),
		Hashes: Hashes{"sha512": sum[:]}}
	w.snapshot = signedBy(t, snapshot, p384)
	timestamp := NewTimestamp(far)
	w.timestamp = signedBy(t, timestamp, ed)
	snapshot.Signed.Version = 2
	w.laterSnapshot = signedBy(t, snapshot, p384)
	hash := sha256.Sum256(w.laterSnapshot)
	timestamp.Signed.Version, timestamp.Signed.Meta["snapshot.json"] = 2, &MetaFiles{Version: 2,
		Length: int64(len(w.laterSnapshot)), Hashes: Hashes{"sha256": hash[:]}}
	w.later = signedBy(t, timestamp, ed)
	return w
}

// step is one file that a client adds.
type step struct {
	data   []byte
	ours   func(*Set, []byte) error
	theirs func(*trustedmetadata.TrustedMetadata, []byte) error
}

func (w world) steps() map[string]step {
	return map[string]step{
		"next root": {w.next, (*Set).UpdateRoot, func(s *trustedmetadata.TrustedMetadata, d []byte) error {
			_,
				err := s.UpdateRoot(d)
			return err
		}},
		"timestamp": {w.timestamp, (*Set).UpdateTimestamp,
			func(s *trustedmetadata.TrustedMetadata, d []byte) error { _, err := s.UpdateTimestamp(d); return err }},
		"later": {w.later, (*Set).UpdateTimestamp,
			func(s *trustedmetadata.TrustedMetadata, d []byte) error { _, err := s.UpdateTimestamp(d); return err }},
		"snapshot": {w.snapshot, func(s *Set, d []byte) error { return s.UpdateSnapshot(d, true) },
			func(s *trustedmetadata.TrustedMetadata, d []byte) error {
				_, err := s.UpdateSnapshot(d, true)
				return err
			}},
		"later snapshot": {w.laterSnapshot, func(s *Set, d []byte) error { return s.UpdateSnapshot(d, false) },
			func(s *trustedmetadata.TrustedMetadata, d []byte) error {
				_, err := s.UpdateSnapshot(d, false)
				return err
			}},
		"targets": {w.targets, func(s *Set, d []byte) error { return s.UpdateDelegatedTargets(d, RoleTargets, RoleRoot) },
			func(s *trustedmetadata.TrustedMetadata, d []byte) error { _, err := s.UpdateTargets(d); return err }},
		"app": {w.project, func(s *Set, d []byte) error { return s.UpdateDelegatedTargets(d, "app", RoleTargets) },
			func(s *trustedmetadata.TrustedMetadata, d []byte) error {
				_, err := s.UpdateDelegatedTargets(d, "app", RoleTargets)
				return err
			}},
	}
}

// kind returns the refusal that package trust makes from an error.
func kind(err error) string {
	var signature *SignatureError
	var version *VersionError
	var same *SameVersionError
	var expired *ExpiredError
	var content *ContentError
	switch {
	case err == nil:
		return "taken"
	case errors.As(err, &signature):
		return "signature"
	case errors.As(err, &version):
		return "version"
	case errors.As(err, &same):
		return "same"
	case errors.As(err, &expired):
		return "expired"
	case errors.As(err, &content):
		return "content"
	}
	return "form"
}

func theirKind(err error) string {
	var signature *metadata.ErrUnsignedMetadata
	var version *metadata.ErrBadVersionNumber
	var same *metadata.ErrEqualVersionNumber
	var expired *metadata.ErrExpiredMetadata
	var content *metadata.ErrLengthOrHashMismatch
	switch {
	case err == nil:
		return "taken"
	case errors.As(err, &signature):
		return "signature"
	case errors.As(err, &version):
		return "version"
	case errors.As(err, &same):
		return "same"
	case errors.As(err, &expired):
		return "expired"
	case errors.As(err, &content):
		return "content"
	}
	return "form"
}

func guarded(check func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return check()
}

// follow adds files in an order to both implementations, and compares the results.
func follow(t *testing.T, root []byte, at time.Time, steps map[string]step, order ...string) {
	t.Helper()
	ours, err := NewSet(root)
	var theirs *trustedmetadata.TrustedMetadata
	theirErr := guarded(func() error { var e error; theirs, e = trustedmetadata.New(root); return e })
	if kind(err) != theirKind(theirErr) {
		t.Fatalf("the root: %v; go-tuf: %v", err, theirErr)
	}
	if err != nil {
		return
	}
	ours.RefTime, theirs.RefTime = at, at
	for _, name := range order {
		s := steps[name]
		err, theirErr := s.ours(ours, s.data), guarded(func() error { return s.theirs(theirs, s.data) })
		if kind(err) != theirKind(theirErr) {
			t.Fatalf("%v at %s, %s: %v; go-tuf: %v\n%s", order, at.Format(time.DateOnly), name, err, theirErr, s.data)
		}
	}
}

func TestEveryOrder(t *testing.T) {
	w := newWorld(t)
	names := []string{"next root", "timestamp", "later", "snapshot", "later snapshot", "targets", "app"}
	dice := mathrand.New(mathrand.NewPCG(1, 2))
	orders := [][]string{{"next root", "timestamp", "snapshot", "targets", "app"},
		{"timestamp", "later", "later snapshot", "targets", "app"}, {"timestamp", "timestamp"},
		{"later", "timestamp"}, {"later", "snapshot", "later snapshot", "targets"}, {"later", "later snapshot", "snapshot"}}
	for range 60 {
		order := []string{}
		for range 6 {
			order = append(order, names[dice.IntN(len(names))])
		}
		orders = append(orders, order)
	}
	for _, order := range orders {
		for _, at := range []time.Time{far.Add(-time.Hour), far.Add(time.Hour)} {
			follow(t, w.root, at, w.steps(), order...)
		}
	}
}

// TestDamagedFiles changes bytes, numbers and names of each file, and removes parts.
func TestDamagedFiles(t *testing.T) {
	w := newWorld(t)
	steps := w.steps()
	at := far.Add(-time.Hour)
	good := []string{"next root", "timestamp", "snapshot", "targets", "app"}
	dice := mathrand.New(mathrand.NewPCG(3, 4))
	for i, name := range good {
		for range 40 {
			damaged := map[string]step{}
			for n, s := range steps {
				damaged[n] = s
			}
			s := damaged[name]
			s.data = damage(dice, s.data)
			if !json.Valid(s.data) || bytes.Contains(s.data, []byte("null")) {
				continue // go-tuf accepts null for a missing field
			}
			damaged[name] = s
			follow(t, w.root, at, damaged, good[:i+1]...)
		}
	}
	for range 60 {
		if root := damage(dice, w.root); json.Valid(root) && !bytes.Contains(root, []byte("null")) {
			follow(t, root, at, steps)
		}
	}
}

// damage makes a small change.
func damage(dice *mathrand.Rand, data []byte) []byte {
	text := string(data)
	switch dice.IntN(5) {
	case 0: // a changed byte
		i := dice.IntN(len(text))
		return []byte(text[:i] + string(rune('0'+dice.IntN(10))) + text[i+1:])
	case 1: // a removed member of an object
		parts := strings.SplitAfter(text, ",")
		i := dice.IntN(len(parts))
		return []byte(strings.Join(append(parts[:i:i], parts[i+1:]...), ""))
	case 2: // a changed word
		words := []string{"ed25519", "ecdsa", "rsa", "targets", "root", "snapshot", "sha256", "sha512", "keyids", "threshold",
			"version", `"version":1`, `"threshold":1`, "PUBLIC"}
		return []byte(strings.Replace(text, words[dice.IntN(len(words))], words[dice.IntN(len(words))], 1))
	case 3: // a changed number
		return []byte(strings.Replace(text, ":1", fmt.Sprint(":", dice.IntN(5)-1), 1+dice.IntN(3)))
	}
	return []byte(strings.Replace(text, `{"`, `{"more":"here","`, 1+dice.IntN(3)))
}

// TestBytesAreTheSame compares files with the bytes that go-tuf writes for them.
func TestBytesAreTheSame(t *testing.T) {
	w := newWorld(t)
	compare := func(name string, data, ours, theirs []byte) {
		if !bytes.Equal(ours, theirs) || !bytes.Equal(ours, data) {
			t.Errorf("%s:\n%s\nread and written again:\n%s\ngo-tuf:\n%s", name, data, ours, theirs)
		}
	}
	for _, data := range [][]byte{w.root, bytes.Replace(w.root, []byte(`"keytype"`),
		[]byte(`"a":[1,{"b":null}],"keytype"`), 1)} {
		compare("root", data, must(must(Decode[RootType](data))(t).ToBytes())(t),
			must(must(metadata.Root().FromBytes(data))(t).ToBytes(false))(t))
	}
	compare("timestamp", w.later, must(must(Decode[TimestampType](w.later))(t).ToBytes())(t),
		must(must(metadata.Timestamp().FromBytes(w.later))(t).ToBytes(false))(t))
	compare("snapshot", w.snapshot, must(must(Decode[SnapshotType](w.snapshot))(t).ToBytes())(t),
		must(must(metadata.Snapshot().FromBytes(w.snapshot))(t).ToBytes(false))(t))
	for _, data := range [][]byte{w.targets, w.project} {
		compare("targets", data, must(must(Decode[TargetsType](data))(t).ToBytes())(t),
			must(must(metadata.Targets().FromBytes(data))(t).ToBytes(false))(t))
	}
	for _, text := range []string{
		`{"signatures":[],"signed":{"_type":"targets","delegations":{"keys":{},"roles":[]},` +
			`"expires":"2099-01-02T03:04:05Z","spec_version":"1","targets":{},"version":1}}`,
		`{"signatures":[],"signed":{"_type":"targets","delegations":{"keys":{},"succinct_roles":{"bit_length":3,` +
			`"keyids":[],"name_prefix":"b","threshold":1}},"expires":"2099-01-02T03:04:05Z","spec_version":"1","targets":{},` +
			`"version":1}}`,
		`{"signatures":[{"keyid":"a","more":1,"sig":""}],"signed":{"_type":"targets","expires":"2099-01-02T03:04:05.5Z",` +
			`"spec_version":"1","targets":{"p":{"hashes":{"sha256":"00"},"length":0,"x":"\u2028"}},"version":1},"top":{}}`,
	} {
		compare("targets", []byte(text), must(must(Decode[TargetsType]([]byte(text)))(t).ToBytes())(t),
			must(must(metadata.Targets().FromBytes([]byte(text)))(t).ToBytes(false))(t))
	}
}

func TestNullIsRefused(t *testing.T) {
	w := newWorld(t)
	for of, data := range map[string][]byte{
		`"deploy/app/1":{`: w.project, `"app.json":{`: w.snapshot, `"snapshot":{`: w.root, `"keyval":{`: w.root,
		`"signed":{`: w.root,
	} {
		at := bytes.Index(data, []byte(of))
		name, _, _ := strings.Cut(of, "{")
		changed := string(data[:at]) + name + `null,"was":{` + string(data[at+len(of):])
		if _, err := Decode[RootType]([]byte(changed)); err == nil || strings.Contains(of, "app") {
			_, err1 := Decode[TargetsType]([]byte(changed))
			_, err2 := Decode[SnapshotType]([]byte(changed))
			if err1 == nil || err2 == nil {
				t.Errorf("%s is accepted", changed)
			}
		}
	}
}

func TestNamesInAnotherCaseAreRefused(t *testing.T) {
	text := `{"Signed":{"_type":"targets","expires":"2099-01-02T03:04:05Z","targets":{},"version":1},"signatures":[]}`
	if _, err := Decode[TargetsType]([]byte(text)); err == nil ||
		!strings.Contains(err.Error(), `"signed" is written "Signed"`) {
		t.Errorf("%v", err)
	}
}

func TestPathsOfADelegation(t *testing.T) {
	for _, c := range []struct{ pattern, target string }{
		{"deploy/app/*", "deploy/app/1"}, {"deploy/app/*", "deploy/app/1/2"}, {"deploy/*", "deploy/app/1"}, {"*", "a/b"},
		{"a/?", "a/b"}, {"a[/]b", "a/b"}, {"a/[b-d]", "a/c"}, {"a/[", "a/["}, {"", ""}, {"a", "a/"},
	} {
		ours, theirs := DelegatedRole{Paths: []string{"x", c.pattern}}, metadata.DelegatedRole{Paths: []string{"x",
			c.pattern}}
		want, err := theirs.IsDelegatedPath(c.target)
		if got := ours.Matches(c.target); err != nil || got != want {
			t.Errorf("%s, %s: %t, go-tuf %t, %v", c.pattern, c.target, got, want, err)
		}
	}
	sum := sha256.Sum256([]byte("a/b"))
	if r := (DelegatedRole{PathHashPrefixes: []string{"zz", fmt.Sprintf("%x", sum[:2])}}); !r.Matches("a/b") ||
		r.Matches("a/c") {
		t.Error("a prefix of the digest's digits does not count")
	}
}

func TestOneKeyUnderTwoIDsSignsOnce(t *testing.T) {
	k := newSigner(t, "ed25519")
	root := NewRoot(far)
	again := *k.key
	again.UnrecognizedFields = map[string]any{"again": true}
	for _, role := range TopRoles() {
		if err := errors.Join(root.Signed.AddKey(k.key, role), root.Signed.AddKey(&again, role)); err != nil {
			t.Fatal(err)
		}
	}
	root.Signed.Roles[RoleRoot].Threshold = 2
	data := signedBy(t, root, k, signer{&again, must(again.ID())(t), k.by})
	if _, err := NewSet(data); kind(err) != "signature" {
		t.Errorf("%v", err)
	}
	follow(t, data, far, nil)
}

// TestUnknownIntegersAreSignedExactly checks that integers that do not fit into a float64 are signed unchanged. go-tuf
// rounds them.
func TestUnknownIntegersAreSignedExactly(t *testing.T) {
	k := newSigner(t, "ed25519")
	root := NewRoot(far)
	root.Signed.UnrecognizedFields = map[string]any{"more": map[string]any{"odd": json.Number("9007199254740993"),
		"even": json.Number("9007199254740992")}}
	for _, role := range TopRoles() {
		if err := root.Signed.AddKey(k.key, role); err != nil {
			t.Fatal(err)
		}
	}
	data := signedBy(t, root, k)
	if _, err := NewSet(data); err != nil {
		t.Errorf("the signed file is refused: %v", err)
	}
	if again := must(must(Decode[RootType](data))(t).ToBytes())(t); !bytes.Equal(again, data) {
		t.Errorf("%s\nread and written again:\n%s", data, again)
	}
	for _, change := range []*strings.Replacer{strings.NewReplacer("740993", "740992"),
		strings.NewReplacer("740992", "740993")} {
		if _, err := NewSet([]byte(change.Replace(string(data)))); kind(err) != "signature" {
			t.Errorf("an integer that was changed after signing: %v", err)
		}
	}
}

// rounded matches integers that may be beyond 2^53, which go-tuf rounds.
var rounded = regexp.MustCompile(`[0-9]{16}`)

func FuzzDecode(f *testing.F) {
	f.Add([]byte(
		`{"signatures":[],"signed":{"_type":"root","keys":{"a":{"keytype":"ed25519","keyval":{"public":"00"}}},` +
			`"roles":{"root":{"keyids":["a"],"threshold":1}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if artifact.CheckJSON(data) != nil || bytes.Contains(data, []byte("null")) || rounded.Match(data) {
			return
		}
		if root, err := Decode[RootType](data); err == nil {
			_ = root.VerifyDelegate(RoleRoot, root) // does not panic
		}
		targets, err := Decode[TargetsType](data)
		if err != nil {
			return
		}
		_ = targets.VerifyDelegate("app", targets)
		theirs, theirErr := metadata.Targets().FromBytes(data)
		if theirErr != nil {
			t.Fatalf("go-tuf refuses it: %v", theirErr)
		}
		ours, ourErr := targets.ToBytes()
		if want, err := theirs.ToBytes(false); (err == nil) != (ourErr == nil) || !bytes.Equal(ours, want) {
			t.Errorf("%s, go-tuf %s; %v, %v", ours, want, ourErr, err)
		}
	})
}
