package keyring

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// New makes n key pairs for a role. It keeps existing keys; made lists the new files.
func (r Ring) New(role string, n int) (made []string, err error) {
	if r.Dir == "" {
		return nil, diag.Keys.Hint(errors.New("new keys need a directory"), "give --keys DIR, or set CORPUS_KEYS")
	}
	unlock, err := r.Lock(context.Background())
	if err != nil {
		return nil, err
	}
	defer unlock()
	for i := 1; i <= n; i++ {
		name := filepath.Join(r.Dir, keyFile(role, i))
		if there, err := walk.Named(name + privateSuffix); err != nil {
			return made, err
		} else if there {
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

// Refer writes a reference to a private key that is elsewhere as a key of the role, and its public part. It does not
// replace an existing key.
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

// writePair writes the public key before the private key, since a pair counts as existing when its private key exists.
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
func ReadPublic(file string) (*tuf.Key, error) {
	data, err := walk.ReadFile(file)
	if err != nil {
		return nil, diag.Keys.Hint(fmt.Errorf("reading a public key: %w", err),
			"give a file NAME.pub that `corpus keys new` made beside the key")
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != publicBlock {
		return nil, diag.Keys.Hint(fmt.Errorf("%s is not a PEM public key", file),
			"give the .pub file that `corpus keys new` made")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return tuf.NewKey(public)
}

// NewLike makes n key pairs for a role. Each is encrypted like the pair with the same number in old, unless Locks has a
// passphrase or recipients for new keys. It keeps existing keys.
func (r Ring) NewLike(role string, n int, old Ring) error {
	if err := durable.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("making the key directory: %w", err)
	}
	for i := 1; i <= n; i++ {
		name := filepath.Join(r.Dir, keyFile(role, i))
		if there, err := walk.Named(name + privateSuffix); err != nil {
			return err
		} else if there {
			continue
		}
		if err := r.newPairLike(name, role, filepath.Join(old.Dir, keyFile(role, i))+privateSuffix); err != nil {
			return err
		}
	}
	return nil
}

// Forget removes the role's first pair, which New made for a change that was refused.
func (r Ring) Forget(role string) error {
	name := filepath.Join(r.Dir, keyFile(role, 1))
	return errors.Join(durable.Remove(name+privateSuffix), durable.Remove(name+publicSuffix))
}

func (r Ring) newPairLike(name, role, old string) error {
	sealed, err := walk.ReadFile(old)
	switch {
	case errors.Is(err, fs.ErrNotExist) || r.Locks.chosen():
		return r.newPair(name)
	case err != nil:
		return fmt.Errorf("reading how the old key is kept: %w", err)
	case isReference(string(sealed)):
		return diag.Keys.Hint(fmt.Errorf("%s refers to a key that is elsewhere, and its successor has to be there too", old),
			"make a key there, run `corpus keys use %s awskms:ARN --keys %s`, then run this again; --encrypt or "+
				"--encrypt-to make one in a file", role, r.Dir)
	case !bytes.HasPrefix(bytes.TrimSpace(sealed), []byte(armor.Header)):
		return r.newPair(name)
	case r.Locks == nil:
		return fmt.Errorf("%s is encrypted, and nothing here encrypts its successor", old)
	}
	to, err := r.Locks.recipientsOf(old, bytes.TrimSpace(sealed))
	if err != nil {
		return fmt.Errorf("encrypting the new key as %s is: %w", old, err)
	}
	like := r
	like.Locks = &Locks{Recipients: to}
	return like.newPair(name)
}

// moving returns the name of a file that exists while the new keys of a role, which are in force, are moved into place.
func (r Ring) moving(role string) string { return filepath.Join(r.Dir, role+".moving") }

// Moving reports whether an earlier Retire of the keys in next was interrupted.
func (r Ring) Moving(role string) (bool, error) { return walk.Named(r.moving(role)) }

// Retire copies the role's pairs into the subdirectory old, under names that contain their IDs, and replaces them by
// those of next. After an interruption, it continues.
func (r Ring) Retire(role string, next Ring) error {
	old := filepath.Join(r.Dir, "old")
	if err := durable.MkdirAll(old, 0o700); err != nil {
		return fmt.Errorf("keeping the old keys: %w", err)
	}
	if err := durable.WriteFile(next.moving(role), nil, 0o600); err != nil {
		return fmt.Errorf("putting the new keys of %s in place: %w", role, err)
	}
	public, err := next.files(role, publicSuffix)
	if err != nil {
		return err
	}
	private, err := next.files(role, privateSuffix)
	if err != nil {
		return err
	}
	// From the last to the first, so that after an interruption the numbers of the remaining keys start at 1.
	for n := max(len(public), len(private)); n > 0; n-- {
		from, name := filepath.Join(next.Dir, keyFile(role, n)), filepath.Join(r.Dir, keyFile(role, n))
		if n <= len(public) { // the public key moves first: while the private key is in next, the old pair is whole
			if err := keepOld(name, filepath.Join(old, keyFile(role, n))); err != nil {
				return err
			}
		}
		if err := errors.Join(moveIfThere(from+publicSuffix, name+publicSuffix),
			moveIfThere(from+privateSuffix, name+privateSuffix)); err != nil {
			return fmt.Errorf("putting the new key of %s in place: %w", role, err)
		}
	}
	return durable.Remove(next.moving(role))
}

// keepOld copies a pair, if it exists.
func keepOld(name, to string) error {
	id, err := publicID(name + publicSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, suffix := range []string{privateSuffix, publicSuffix} {
		data, err := walk.ReadFile(name + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = durable.WriteFile(to+"."+id[:8]+suffix, data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("keeping the old key %s: %w", name, err)
		}
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
