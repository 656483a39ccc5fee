package keyring

import (
	"bytes"
	"strings"

	"filippo.io/age/armor"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Listed describes a key without decrypting it.
type Listed struct {
	Role string `json:"role"`
	ID   string `json:"id"`
	// Kind is open, encrypted, a reference, or public if the private key is missing; "damaged" if the file contains no
	// private key, and "another key" if the private key does not belong to the ID.
	Kind string `json:"kind"`
	File string `json:"file"`
}

// List lists the keys of the directory.
func (r Ring) List() ([]Listed, error) {
	roles, err := r.roles(publicSuffix)
	if err != nil {
		return nil, err
	}
	list := []Listed{}
	for _, role := range roles {
		files, err := r.files(role, publicSuffix)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			listed, err := r.listed(role, file)
			if err != nil {
				return nil, err
			}
			list = append(list, listed)
		}
	}
	return list, nil
}

// listed describes the key whose public part is in a file.
func (r Ring) listed(role, file string) (Listed, error) {
	key, err := ReadPublic(file)
	if err != nil {
		return Listed{}, err
	}
	id, err := key.ID()
	if err != nil {
		return Listed{}, err
	}
	kind, file := r.kindOf(strings.TrimSuffix(file, publicSuffix)+privateSuffix, file, id)
	return Listed{Role: role, ID: id, Kind: kind, File: file}, nil
}

func (r Ring) kindOf(private, public, id string) (kind, file string) {
	data, err := walk.ReadFile(private)
	if err == nil {
		r.lookAt(private, data)
	}
	switch {
	case err != nil:
		return "public", public
	case bytes.HasPrefix(data, []byte(armor.Header)):
		return "encrypted", private
	case isReference(string(data)):
		return strings.Fields(string(data))[0], private
	}
	return r.kindOfOpen(private, strings.TrimSpace(string(data)), id), private
}

// kindOfOpen returns the kind of a key that is not encrypted, which may also be another key or damaged.
func (r Ring) kindOfOpen(file, text, id string) string {
	signers, err := r.parse(file, text)
	if err != nil || len(signers) == 0 {
		return "damaged"
	}
	for _, s := range signers {
		if has, err := idOf(s); err == nil && has == id {
			return "open"
		}
	}
	return "another key"
}
