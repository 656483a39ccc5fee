// Package tuf implements the metadata of The Update Framework (https://theupdateframework.github.io/specification/,
// 1.0): its files, their signatures, and the order in which a client accepts new ones.
//
// A file is a Metadata of one of four roles. A Set is the metadata that a client trusts: it starts with a root and
// accepts newer files one by one, if they are signed by the keys that the previous files name. Package artifact/trust
// fetches files, remembers the files seen before and acts on them; artifact/publish writes them.
//
// Unknown fields of a file are kept in UnrecognizedFields and written again, since a later version of a program may
// have signed more. Signatures cover the canonical form of the signed content, not the bytes of the file.
//
// The input must have passed artifact.CheckJSON, and may contain hostile keys: the package returns errors and never
// panics.
package tuf

import (
	"encoding/hex"
	"encoding/json"
	"time"
)

// The roles for which a root names keys.
const (
	RoleRoot      = "root"
	RoleTimestamp = "timestamp"
	RoleSnapshot  = "snapshot"
	RoleTargets   = "targets"
)

// TopRoles returns the roles for which a root names keys.
func TopRoles() []string { return []string{RoleRoot, RoleTimestamp, RoleSnapshot, RoleTargets} }

// specVersion is the version of the specification that new files name.
const specVersion = "1.0.31"

// Roles are the types of signed content.
type Roles interface {
	RootType | SnapshotType | TimestampType | TargetsType
}

// Metadata is a file: the signed content and its signatures.
type Metadata[T Roles] struct {
	Signed             T              `json:"signed"`
	Signatures         []Signature    `json:"signatures"`
	UnrecognizedFields map[string]any `json:"-"`
}

// Signature is one signature of a file.
type Signature struct {
	KeyID              string         `json:"keyid"`
	Signature          HexBytes       `json:"sig"`
	UnrecognizedFields map[string]any `json:"-"`
}

// RootType names the keys of all roles.
type RootType struct {
	Type               string           `json:"_type"`
	SpecVersion        string           `json:"spec_version"`
	ConsistentSnapshot bool             `json:"consistent_snapshot"`
	Version            int64            `json:"version"`
	Expires            time.Time        `json:"expires"`
	Keys               map[string]*Key  `json:"keys"`  // by ID
	Roles              map[string]*Role `json:"roles"` // by name
	UnrecognizedFields map[string]any   `json:"-"`
}

// SnapshotType names the version of every targets file.
type SnapshotType struct {
	Type               string                `json:"_type"`
	SpecVersion        string                `json:"spec_version"`
	Version            int64                 `json:"version"`
	Expires            time.Time             `json:"expires"`
	Meta               map[string]*MetaFiles `json:"meta"` // by the file's name, such as targets.json
	UnrecognizedFields map[string]any        `json:"-"`
}

// TimestampType names the version of the snapshot.
type TimestampType struct {
	Type               string                `json:"_type"`
	SpecVersion        string                `json:"spec_version"`
	Version            int64                 `json:"version"`
	Expires            time.Time             `json:"expires"`
	Meta               map[string]*MetaFiles `json:"meta"` // snapshot.json alone
	UnrecognizedFields map[string]any        `json:"-"`
}

// TargetsType lists files, and delegates the listing of others.
type TargetsType struct {
	Type               string                  `json:"_type"`
	SpecVersion        string                  `json:"spec_version"`
	Version            int64                   `json:"version"`
	Expires            time.Time               `json:"expires"`
	Targets            map[string]*TargetFiles `json:"targets"` // by path
	Delegations        *Delegations            `json:"delegations,omitzero"`
	UnrecognizedFields map[string]any          `json:"-"`
}

// Key is a public key.
type Key struct {
	Type               string         `json:"keytype"`
	Scheme             string         `json:"scheme"`
	Value              KeyVal         `json:"keyval"`
	UnrecognizedFields map[string]any `json:"-"`
}

// KeyVal contains the bytes of a public key: PEM, or hexadecimal for Ed25519.
type KeyVal struct {
	PublicKey          string         `json:"public"`
	UnrecognizedFields map[string]any `json:"-"`
}

// Role has the keys that may sign a role, and the required number of signatures.
type Role struct {
	KeyIDs             []string       `json:"keyids"`
	Threshold          int            `json:"threshold"`
	UnrecognizedFields map[string]any `json:"-"`
}

// HexBytes are bytes that are encoded in hexadecimal.
type HexBytes []byte

// Hashes are digests by the name of their algorithm.
type Hashes map[string]HexBytes

// MetaFiles describes a metadata file. Length in bytes and Hashes may be absent.
type MetaFiles struct {
	Length             int64          `json:"length,omitempty"`
	Hashes             Hashes         `json:"hashes,omitempty"`
	Version            int64          `json:"version"`
	UnrecognizedFields map[string]any `json:"-"`
}

// TargetFiles describes a file that is not metadata. It has at least one digest.
type TargetFiles struct {
	Length             int64            `json:"length"` // bytes
	Hashes             Hashes           `json:"hashes"`
	Custom             *json.RawMessage `json:"custom,omitzero"`
	UnrecognizedFields map[string]any   `json:"-"`
}

// Delegations has the roles that may list further files: Roles, or else SuccinctRoles.
type Delegations struct {
	Keys               map[string]*Key `json:"keys"` // by ID
	Roles              []DelegatedRole `json:"roles,omitzero"`
	SuccinctRoles      *SuccinctRoles  `json:"succinct_roles,omitzero"`
	UnrecognizedFields map[string]any  `json:"-"`
}

// DelegatedRole may list the files whose paths match Paths, or whose paths have such digests.
type DelegatedRole struct {
	Name               string         `json:"name"`
	KeyIDs             []string       `json:"keyids"`
	Threshold          int            `json:"threshold"`
	Terminating        bool           `json:"terminating"`
	PathHashPrefixes   []string       `json:"path_hash_prefixes,omitzero"`
	Paths              []string       `json:"paths,omitzero"`
	UnrecognizedFields map[string]any `json:"-"`
}

// SuccinctRoles are 2 to the power of BitLength roles with the same keys.
type SuccinctRoles struct {
	KeyIDs             []string       `json:"keyids"`
	Threshold          int            `json:"threshold"`
	BitLength          int            `json:"bit_length"` // 1 to 32
	NamePrefix         string         `json:"name_prefix"`
	UnrecognizedFields map[string]any `json:"-"`
}

func (b HexBytes) String() string { return hex.EncodeToString(b) }

// NewRoot returns a root without keys.
func NewRoot(expires time.Time) *Metadata[RootType] {
	roles := map[string]*Role{}
	for _, name := range TopRoles() {
		roles[name] = &Role{KeyIDs: []string{}, Threshold: 1}
	}
	return &Metadata[RootType]{Signatures: []Signature{}, Signed: RootType{
		Type: RoleRoot, SpecVersion: specVersion, Version: 1, Expires: expires, ConsistentSnapshot: true,
		Keys: map[string]*Key{}, Roles: roles,
	}}
}

// NewSnapshot returns a snapshot of the first targets.
func NewSnapshot(expires time.Time) *Metadata[SnapshotType] {
	return &Metadata[SnapshotType]{Signatures: []Signature{}, Signed: SnapshotType{
		Type: RoleSnapshot, SpecVersion: specVersion, Version: 1, Expires: expires,
		Meta: map[string]*MetaFiles{"targets.json": MetaFile(1)},
	}}
}

// NewTimestamp returns a timestamp of the first snapshot.
func NewTimestamp(expires time.Time) *Metadata[TimestampType] {
	return &Metadata[TimestampType]{Signatures: []Signature{}, Signed: TimestampType{
		Type: RoleTimestamp, SpecVersion: specVersion, Version: 1, Expires: expires,
		Meta: map[string]*MetaFiles{"snapshot.json": MetaFile(1)},
	}}
}

// NewTargets returns empty targets.
func NewTargets(expires time.Time) *Metadata[TargetsType] {
	return &Metadata[TargetsType]{Signatures: []Signature{}, Signed: TargetsType{
		Type: RoleTargets, SpecVersion: specVersion, Version: 1, Expires: expires, Targets: map[string]*TargetFiles{},
	}}
}

// MetaFile returns the description of a version of a metadata file, without its length and digests.
func MetaFile(version int64) *MetaFiles { return &MetaFiles{Hashes: Hashes{}, Version: version} }

// TargetFile returns an empty description of a file.
func TargetFile() *TargetFiles { return &TargetFiles{Hashes: Hashes{}} }
