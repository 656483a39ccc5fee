package keyring

import (
	"bytes"
	"os"
	"strings"

	"filippo.io/age/armor"
)

// Listed is what can be said of a key without opening it.
type Listed struct {
	Role string `json:"role"`
	ID   string `json:"id"`
	Kind string `json:"kind"` // open, encrypted, a reference, or public where the private key is not here
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
			key, err := ReadPublic(file)
			if err != nil {
				return nil, err
			}
			id, err := key.ID()
			if err != nil {
				return nil, err
			}
			kind, file := r.kindOf(strings.TrimSuffix(file, publicSuffix)+privateSuffix, file)
			list = append(list, Listed{Role: role, ID: id, Kind: kind, File: file})
		}
	}
	return list, nil
}

func (r Ring) kindOf(private, public string) (kind, file string) {
	data, err := os.ReadFile(private)
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
	return "open", private
}
