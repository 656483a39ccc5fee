// Package hostkey is the key with which a host signs its reports.
//
// Each host makes an ed25519 key of its own and never gives it away. The public half is in the name of an object in the
// store, which holds nothing else of importance: one listing shows the keys of all hosts. The first key that was put
// there for a name of a host is this host's; see Registry. A report has its signature within itself, so a store needs
// no other object for it, and readers that know no signatures read it as before.
package hostkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

const pemType = "PRIVATE KEY" // PKCS #8, which `openssl pkey` reads

// Key is the private key of a host.
type Key struct{ private ed25519.PrivateKey }

// Public is the public half of a host's key: 32 bytes in unpadded base64 for URLs.
type Public string

// ParsePublic returns an error unless text is a public key.
func ParsePublic(text string) (Public, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) != ed25519.PublicKeySize {
		return "", fmt.Errorf("%q is no public key of a host", text)
	}
	return Public(text), nil
}

// Public returns the public half of a key.
func (k Key) Public() Public {
	return Public(base64.RawURLEncoding.EncodeToString(k.private.Public().(ed25519.PublicKey)))
}

// Open reads the key of this host from a file that only root may read, and makes one where there is none. A file that
// holds no key is kept beside the new one, with .corrupt in its name; damaged is then what was wrong with it.
func Open(path string) (key Key, damaged, err error) {
	data, err := walk.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return Key{}, nil, fmt.Errorf("reading the host's key: %w", err)
	default:
		key, bad := parse(data)
		if bad == nil {
			return key, nil, nil
		}
		damaged = fmt.Errorf("%s holds no key (%w) and is kept as %s.corrupt; the host has a new one", path, bad, path)
		if err := durable.Rename(path, path+".corrupt"); err != nil {
			return Key{}, nil, err
		}
	}
	key, err = create(path)
	return key, damaged, err
}

// Read reads the key of this host; it returns fs.ErrNotExist where there is none.
func Read(path string) (Key, error) {
	data, err := walk.ReadFile(path)
	if err != nil {
		return Key{}, err
	}
	return parse(data)
}

func create(path string) (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	data, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Key{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: data})
	if err := durable.WriteFile(path, text, 0o600); err != nil {
		return Key{}, fmt.Errorf("keeping the host's key: %w", err)
	}
	return Key{private}, nil
}

func parse(data []byte) (Key, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemType {
		return Key{}, errors.New("it is no PEM file of a private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, err
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, errors.New("it is no ed25519 key")
	}
	return Key{private}, nil
}
