// Package keyring loads and creates the private keys of a publisher.
//
// A keyring is a directory and, for CI, the environment. The private keys of a role are the files ROLE.key,
// ROLE-2.key and so on; public keys have the suffix .pub. A private key has one of three forms, in files and
// variables alike:
//
//	a PEM block, PKCS #8, as openssl reads it
//	the same encrypted with age, by a passphrase or to recipients
//	a reference to a key of a key management service, such as awskms:ARN
//
// The keys in a keyring determine which roles its owner can sign. Errors never contain private keys.
package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Ring is the set of available keys. With only Dir set, it has the unencrypted keys in files.
type Ring struct {
	Dir    string                           // directory of key files; empty for none
	Env    func(name string) string         // the environment; nil for none
	Locks  *Locks                           // opens and makes encrypted keys; nil for none
	Remote func(ref string) (Signer, error) // opens a reference; nil for none
	// Exposed is called for each private key file that other users of the machine may read, with its mode; nil for
	// no warning.
	Exposed func(file string, mode fs.FileMode)
}

const (
	privateSuffix = ".key"
	publicSuffix  = ".pub"
)

// Key is an available private key.
type Key struct {
	Signer
	ID   string // ID in signed metadata
	From string // the file or variable it was read from
}

// keyFile returns the name of the n-th key of a role, without its suffix.
func keyFile(role string, n int) string {
	if n == 1 {
		return role
	}
	return fmt.Sprintf("%s-%d", role, n)
}

// FileOf returns the name of the n-th private key file of a role, counted from 1.
func FileOf(role string, n int) string { return keyFile(role, n) + privateSuffix }

// PublicFile returns the path of the public key file of the role's key with this ID.
func (r Ring) PublicFile(role, id string) (string, error) {
	files, err := r.files(role, publicSuffix)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		has, err := publicID(file)
		if err != nil {
			return "", err
		}
		if has == id {
			return file, nil
		}
	}
	return "", fmt.Errorf("no public key %s of %s in %s", id, role, r.where())
}

// EnvName returns the name of the variable for a role's private keys: CORPUS_KEY_MY_APP for my-app.
func EnvName(role string) string {
	return "CORPUS_KEY_" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, role)
}

func (r Ring) env(role string) string {
	if r.Env == nil {
		return ""
	}
	return r.Env(EnvName(role))
}

// Has reports whether a private key of the role is available.
func (r Ring) Has(role string) bool {
	if r.env(role) != "" {
		return true
	}
	if r.Dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(r.Dir, keyFile(role, 1)+privateSuffix))
	return err == nil
}

// Keys reads the role's private keys: those of the environment, then those of the directory. It returns no keys and no
// error if there are none.
func (r Ring) Keys(role string) ([]Key, error) {
	var keys []Key
	if text := r.env(role); text != "" {
		found, err := r.read("the variable "+EnvName(role), text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, found...)
	}
	files, err := r.files(role, privateSuffix)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		found, err := r.File(file)
		if err != nil {
			return nil, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// File reads the private keys in a file, or the key of a reference given in place of a file.
func (r Ring) File(file string) ([]Key, error) {
	if isReference(file) {
		return r.read(file, file)
	}
	data, err := walk.ReadFile(file)
	if err != nil {
		return nil, diag.Keys.Hint(fmt.Errorf("reading a private key: %w", err),
			"correct the path, or ask the owner of the key to do this")
	}
	r.lookAt(file, data)
	keys, err := r.read(file, string(data))
	return keys, explainFile(file, err)
}

// lookAt calls Exposed for a private key that others may read. A reference is not a secret.
func (r Ring) lookAt(file string, data []byte) {
	if r.Exposed == nil || isReference(string(data)) {
		return
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		r.Exposed(file, info.Mode().Perm())
	}
}

// mostKeys is the maximum number of keys of a role.
const mostKeys = 64

// files lists a role's files in the order of their numbers. If the role's first public key exists, files after a
// missing number are listed too. Otherwise they may belong to another role whose name ends in a number.
func (r Ring) files(role, suffix string) ([]string, error) {
	if r.Dir == "" {
		return nil, nil
	}
	gaps, err := walk.Exists(filepath.Join(r.Dir, role+publicSuffix))
	if err != nil {
		return nil, err
	}
	var files []string
	for n := 1; n <= mostKeys; n++ {
		file := filepath.Join(r.Dir, keyFile(role, n)+suffix)
		_, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			if gaps {
				continue
			}
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// Public reads the role's public keys.
func (r Ring) Public(role string) ([]*tuf.Key, error) {
	files, err := r.files(role, publicSuffix)
	if err != nil {
		return nil, err
	}
	var keys []*tuf.Key
	for _, file := range files {
		key, err := ReadPublic(file)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, diag.Keys.Hint(fmt.Errorf("no public key of %s in %s", role, r.where()),
			"make keys with `corpus keys new --keys DIR`")
	}
	return keys, nil
}

// Held lists the IDs of the role's available private keys. It does not decrypt files, so that no passphrase is needed.
func (r Ring) Held(role string) (ids []string, err error) {
	if text := r.env(role); text != "" {
		keys, err := r.read("the variable "+EnvName(role), text)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
	}
	files, err := r.files(role, privateSuffix)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		id, err := publicID(strings.TrimSuffix(file, privateSuffix) + publicSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func publicID(file string) (string, error) {
	key, err := ReadPublic(file)
	if err != nil {
		return "", err
	}
	return key.ID()
}

func (r Ring) where() string {
	if r.Dir == "" {
		return "the environment"
	}
	return r.Dir
}

// Missing returns the error for a role without an available key.
func (r Ring) Missing(role string) error {
	return diag.Keys.Hint(fmt.Errorf("no key of %s in %s", role, r.where()),
		"give --keys the directory that holds %s%s, set %s, or ask its owner to do this", role, privateSuffix, EnvName(role))
}

// roles lists the roles that have files with this suffix in the directory.
func (r Ring) roles(suffix string) ([]string, error) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return nil, diag.Keys.Hint(fmt.Errorf("reading the keys: %w", err),
			"correct --keys, or make keys with `corpus keys new --keys DIR`")
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if ok && !r.numbered(name, suffix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// numbered reports whether name is a numbered key of a role, such as ROLE-2, and not the name of a role.
func (r Ring) numbered(name, suffix string) bool {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 || name[i+1:] == "" || strings.Trim(name[i+1:], "0123456789") != "" {
		return false
	}
	_, err := os.Stat(filepath.Join(r.Dir, name[:i]+suffix))
	return err == nil
}
