package tuf

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Decode parses a file of a role without checking its signatures.
func Decode[T Roles](data []byte) (*Metadata[T], error) {
	var file Metadata[T]
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	if got, want := typeOf(any(&file.Signed)); got != want {
		return nil, fmt.Errorf("it is the metadata of %q, and not of %s", got, want)
	}
	seen := map[string]bool{}
	for _, s := range file.Signatures {
		if seen[s.KeyID] {
			return nil, fmt.Errorf("it has two signatures of key %s", s.KeyID)
		}
		seen[s.KeyID] = true
	}
	return &file, nil
}

// typeOf returns the type that a file claims to have, and the expected one.
func typeOf(signed any) (got, want string) {
	switch s := signed.(type) {
	case *RootType:
		return s.Type, RoleRoot
	case *SnapshotType:
		return s.Type, RoleSnapshot
	case *TimestampType:
		return s.Type, RoleTimestamp
	case *TargetsType:
		return s.Type, RoleTargets
	}
	return "", "no role"
}

// ToBytes encodes the file, with its keys in order.
func (m *Metadata[T]) ToBytes() ([]byte, error) { return json.Marshal(*m) }

// field is a field of one of this package's structs, with its name in JSON.
type field struct {
	name string
	omit string // omitempty or omitzero
}

// fieldsOf lists the fields of a struct in order; a field that is not encoded has the name "-".
func fieldsOf(t reflect.Type) []field {
	list := make([]field, t.NumField())
	for i := range list {
		list[i].name, list[i].omit, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return list
}

// encode encodes a struct, together with the fields that are unknown to it.
func encode(known any, more map[string]any) ([]byte, error) {
	object := make(map[string]any, len(more)+8)
	for name, value := range more {
		object[name] = value
	}
	v := reflect.ValueOf(known)
	for i, f := range fieldsOf(v.Type()) {
		value := v.Field(i)
		empty := value.IsZero() || f.omit == "omitempty" && value.Kind() == reflect.Map && value.Len() == 0
		if f.name != "-" && (f.omit == "" || !empty) {
			object[f.name] = value.Interface()
		}
	}
	return json.Marshal(object)
}

// decode decodes a struct, and returns the fields that are unknown to it.
func decode(data []byte, known any) (more map[string]any, err error) {
	if err := json.Unmarshal(data, known); err != nil {
		return nil, err
	}
	var rest map[string]json.RawMessage
	if err := json.Unmarshal(data, &rest); err != nil {
		return nil, err
	}
	if rest == nil {
		return nil, fmt.Errorf("%T is null", known)
	}
	fields := fieldsOf(reflect.TypeOf(known).Elem())
	for _, f := range fields {
		delete(rest, f.name)
	}
	more = make(map[string]any, len(rest))
	for name, raw := range rest {
		for _, f := range fields {
			if strings.EqualFold(name, f.name) { // which package json takes for the same
				return nil, fmt.Errorf("%q is written %q", f.name, name)
			}
		}
		if more[name], err = exactly(raw); err != nil {
			return nil, err
		}
	}
	return more, nil
}

// exactly decodes a value without changing its numbers: as float64, an integer above 2^53 would change, and so would
// the signed content.
func exactly(data []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// MarshalJSON encodes the file.
func (m Metadata[T]) MarshalJSON() ([]byte, error) {
	type plain Metadata[T]
	return encode(plain(m), m.UnrecognizedFields)
}

// UnmarshalJSON decodes the file.
func (m *Metadata[T]) UnmarshalJSON(data []byte) (err error) {
	type plain Metadata[T]
	m.UnrecognizedFields, err = decode(data, (*plain)(m))
	return err
}

// MarshalJSON encodes the signature.
func (s Signature) MarshalJSON() ([]byte, error) {
	type plain Signature
	return encode(plain(s), s.UnrecognizedFields)
}

// UnmarshalJSON decodes the signature.
func (s *Signature) UnmarshalJSON(data []byte) (err error) {
	type plain Signature
	s.UnrecognizedFields, err = decode(data, (*plain)(s))
	return err
}

// MarshalJSON encodes the signed content.
func (r RootType) MarshalJSON() ([]byte, error) {
	type plain RootType
	return encode(plain(r), r.UnrecognizedFields)
}

// UnmarshalJSON decodes the signed content.
func (r *RootType) UnmarshalJSON(data []byte) (err error) {
	type plain RootType
	r.UnrecognizedFields, err = decode(data, (*plain)(r))
	return errors.Join(err, named(r.Keys), named(r.Roles))
}

// MarshalJSON encodes the signed content.
func (s SnapshotType) MarshalJSON() ([]byte, error) {
	type plain SnapshotType
	return encode(plain(s), s.UnrecognizedFields)
}

// UnmarshalJSON decodes the signed content.
func (s *SnapshotType) UnmarshalJSON(data []byte) (err error) {
	type plain SnapshotType
	s.UnrecognizedFields, err = decode(data, (*plain)(s))
	return errors.Join(err, named(s.Meta))
}

// MarshalJSON encodes the signed content.
func (t TimestampType) MarshalJSON() ([]byte, error) {
	type plain TimestampType
	return encode(plain(t), t.UnrecognizedFields)
}

// UnmarshalJSON decodes the signed content.
func (t *TimestampType) UnmarshalJSON(data []byte) (err error) {
	type plain TimestampType
	t.UnrecognizedFields, err = decode(data, (*plain)(t))
	return errors.Join(err, named(t.Meta))
}

// MarshalJSON encodes the signed content.
func (t TargetsType) MarshalJSON() ([]byte, error) {
	type plain TargetsType
	return encode(plain(t), t.UnrecognizedFields)
}

// UnmarshalJSON decodes the signed content.
func (t *TargetsType) UnmarshalJSON(data []byte) (err error) {
	type plain TargetsType
	t.UnrecognizedFields, err = decode(data, (*plain)(t))
	return errors.Join(err, named(t.Targets))
}

// MarshalJSON encodes the key.
func (k Key) MarshalJSON() ([]byte, error) {
	type plain Key
	return encode(plain(k), k.UnrecognizedFields)
}

// UnmarshalJSON decodes the key.
func (k *Key) UnmarshalJSON(data []byte) (err error) {
	type plain Key
	k.UnrecognizedFields, err = decode(data, (*plain)(k))
	return err
}

// MarshalJSON encodes the bytes of a key.
func (k KeyVal) MarshalJSON() ([]byte, error) {
	type plain KeyVal
	return encode(plain(k), k.UnrecognizedFields)
}

// UnmarshalJSON decodes the bytes of a key.
func (k *KeyVal) UnmarshalJSON(data []byte) (err error) {
	type plain KeyVal
	k.UnrecognizedFields, err = decode(data, (*plain)(k))
	return err
}

// MarshalJSON encodes the role.
func (r Role) MarshalJSON() ([]byte, error) {
	type plain Role
	return encode(plain(r), r.UnrecognizedFields)
}

// UnmarshalJSON decodes the role.
func (r *Role) UnmarshalJSON(data []byte) (err error) {
	type plain Role
	r.UnrecognizedFields, err = decode(data, (*plain)(r))
	return err
}

// MarshalJSON encodes the description.
func (f MetaFiles) MarshalJSON() ([]byte, error) {
	type plain MetaFiles
	return encode(plain(f), f.UnrecognizedFields)
}

// UnmarshalJSON decodes the description.
func (f *MetaFiles) UnmarshalJSON(data []byte) (err error) {
	type plain MetaFiles
	f.UnrecognizedFields, err = decode(data, (*plain)(f))
	return err
}

// MarshalJSON encodes the description.
func (f TargetFiles) MarshalJSON() ([]byte, error) {
	type plain TargetFiles
	return encode(plain(f), f.UnrecognizedFields)
}

// UnmarshalJSON decodes the description, which must have a digest.
func (f *TargetFiles) UnmarshalJSON(data []byte) (err error) {
	type plain TargetFiles
	f.UnrecognizedFields, err = decode(data, (*plain)(f))
	if err == nil && len(f.Hashes) == 0 {
		return errors.New("a target has no digest")
	}
	return err
}

// MarshalJSON encodes the delegations: roles, or else succinct roles.
func (d Delegations) MarshalJSON() ([]byte, error) {
	type plain Delegations
	p := plain(d)
	if p.Roles != nil {
		p.SuccinctRoles = nil
	}
	return encode(p, d.UnrecognizedFields)
}

// UnmarshalJSON decodes the delegations.
func (d *Delegations) UnmarshalJSON(data []byte) (err error) {
	type plain Delegations
	d.UnrecognizedFields, err = decode(data, (*plain)(d))
	return errors.Join(err, named(d.Keys))
}

// MarshalJSON encodes the role, which matches either paths or digests of paths.
func (r DelegatedRole) MarshalJSON() ([]byte, error) {
	type plain DelegatedRole
	if r.Paths != nil && r.PathHashPrefixes != nil {
		return nil, fmt.Errorf("the delegated role %s has both paths and path_hash_prefixes", r.Name)
	}
	return encode(plain(r), r.UnrecognizedFields)
}

// UnmarshalJSON decodes the role.
func (r *DelegatedRole) UnmarshalJSON(data []byte) (err error) {
	type plain DelegatedRole
	r.UnrecognizedFields, err = decode(data, (*plain)(r))
	return err
}

// MarshalJSON encodes the roles.
func (r SuccinctRoles) MarshalJSON() ([]byte, error) {
	type plain SuccinctRoles
	return encode(plain(r), r.UnrecognizedFields)
}

// UnmarshalJSON decodes the roles.
func (r *SuccinctRoles) UnmarshalJSON(data []byte) (err error) {
	type plain SuccinctRoles
	r.UnrecognizedFields, err = decode(data, (*plain)(r))
	if err == nil && (r.BitLength < 1 || r.BitLength > 32) {
		return fmt.Errorf("bit_length is %d, and has to be between 1 and 32", r.BitLength)
	}
	return err
}

// MarshalJSON encodes the bytes in hexadecimal.
func (b HexBytes) MarshalJSON() ([]byte, error) { return json.Marshal(hex.EncodeToString(b)) }

// UnmarshalJSON decodes hexadecimal bytes.
func (b *HexBytes) UnmarshalJSON(data []byte) error {
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return errors.New("these are not hexadecimal digits in a string")
	}
	digits, err := hex.DecodeString(string(data[1 : len(data)-1]))
	*b = digits
	return err
}

// named refuses null entries, which callers would dereference.
func named[V any](entries map[string]*V) error {
	for name, entry := range entries {
		if entry == nil {
			return fmt.Errorf("%q is null", name)
		}
	}
	return nil
}
