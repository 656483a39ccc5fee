package keyring

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// New makes n key pairs for a role. A key that is there already is kept; made lists the files that
// are new.
func (r Ring) New(role string, n int) (made []string, err error) {
	if r.Dir == "" {
		return nil, diag.WithHint(errors.New("new keys need a directory"), "give --keys DIR, or set CORPUS_KEYS")
	}
	if err := durable.MkdirAll(r.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the key directory: %w", err)
	}
	for i := 1; i <= n; i++ {
		name := filepath.Join(r.Dir, keyFile(role, i))
		if _, err := os.Lstat(name + privateSuffix); err == nil {
			continue
		}
		if err := r.newPair(name); err != nil {
			return made, err
		}
		made = append(made, name+privateSuffix)
	}
	return made, nil
}

func (r Ring) newPair(name string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	secret := pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der})
	if r.Locks != nil {
		if secret, err = r.Locks.lock(secret); err != nil {
			return fmt.Errorf("encrypting %s: %w", name+privateSuffix, err)
		}
	}
	return writePair(name, public, secret)
}

// Refer writes a reference to a private key that lies elsewhere as a key of the role, and its
// public part. A key that is there already is not replaced.
func (r Ring) Refer(role, ref string) (Key, error) {
	keys, err := r.File(ref)
	if err != nil {
		return Key{}, err
	}
	public, err := keys[0].PublicKey()
	if err != nil {
		return Key{}, fmt.Errorf("reading the public key of %s: %w", ref, err)
	}
	if err := durable.MkdirAll(r.Dir, 0o700); err != nil {
		return Key{}, fmt.Errorf("making the key directory: %w", err)
	}
	files, err := r.files(role, publicSuffix)
	if err != nil {
		return Key{}, err
	}
	for _, file := range files {
		there, err := ReadPublic(file)
		if err != nil {
			return Key{}, err
		}
		if id, err := there.ID(); err == nil && id == keys[0].ID {
			keys[0].From = file
			return keys[0], nil
		}
	}
	name := filepath.Join(r.Dir, keyFile(role, len(files)+1))
	keys[0].From = name + privateSuffix
	return keys[0], writePair(name, public, []byte(ref+"\n"))
}

// writePair writes the private key last: it is what makes the pair count as there.
func writePair(name string, public crypto.PublicKey, secret []byte) error {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	return errors.Join(
		durable.WriteFile(name+publicSuffix, pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der}), 0o644),
		durable.WriteFile(name+privateSuffix, secret, 0o600))
}

// ReadPublic reads a public key file.
func ReadPublic(file string) (*metadata.Key, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a public key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != publicBlock {
		return nil, diag.WithHint(fmt.Errorf("%s is not a PEM public key", file), "give the .pub file that `corpus keys new` made")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return metadata.KeyFromPublicKey(public)
}

// Retire takes the role's pairs out of the directory into its subdirectory old, under names that
// carry their IDs, and puts those of next in their place. What an attempt that was cut short has
// moved already stays moved.
func (r Ring) Retire(role string, next Ring) error {
	old := filepath.Join(r.Dir, "old")
	if err := durable.MkdirAll(old, 0o700); err != nil {
		return fmt.Errorf("keeping the old keys: %w", err)
	}
	fresh, err := next.files(role, publicSuffix)
	if err != nil {
		return err
	}
	// From the last to the first: what is left after a cut still counts from 1.
	for n, file := range slices.Backward(fresh) {
		name := filepath.Join(r.Dir, keyFile(role, n+1))
		if err := retire(name, filepath.Join(old, keyFile(role, n+1))); err != nil {
			return err
		}
		from := file[:len(file)-len(publicSuffix)]
		// The private key first: while next still has a public one, this is not finished.
		if err := errors.Join(moveIfThere(from+privateSuffix, name+privateSuffix), moveIfThere(from+publicSuffix, name+publicSuffix)); err != nil {
			return fmt.Errorf("putting the new key of %s in place: %w", role, err)
		}
	}
	return nil
}

func retire(name, to string) error {
	key, err := ReadPublic(name + publicSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	id, err := key.ID()
	if err != nil {
		return err
	}
	to += "." + id[:8]
	if err := errors.Join(moveIfThere(name+privateSuffix, to+privateSuffix), moveIfThere(name+publicSuffix, to+publicSuffix)); err != nil {
		return fmt.Errorf("keeping the old key %s: %w", name, err)
	}
	return nil
}

func moveIfThere(from, to string) error {
	err := durable.Rename(from, to)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
