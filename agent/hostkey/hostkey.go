// Package hostkey manages the key with which a host signs its reports.
//
// Each host creates its own ed25519 key and never discloses it. The public key is the name of an object in the store:
// one listing has the keys of all hosts. The first key that was stored for the name of a host belongs to this host; see
// Registry. The signature of a report is part of the report, so a store needs no other object for it, and readers that
// do not support signatures read it as before.
package hostkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// keyword is the start of the file of a key. The seed follows it, 32 bytes in unpadded base64 for URLs.
const keyword = "ed25519 "

// Key is the private key of a host.
type Key struct{ private ed25519.PrivateKey }

// Public is the public half of a host's key: 32 bytes in unpadded base64 for URLs.
type Public string

// ParsePublic parses a public key.
func ParsePublic(text string) (Public, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(data) != ed25519.PublicKeySize {
		return "", fmt.Errorf("%q is not a public key of a host", text)
	}
	return Public(text), nil
}

// Public returns the public half of a key.
func (k Key) Public() Public {
	return Public(base64.RawURLEncoding.EncodeToString(k.private.Public().(ed25519.PublicKey)))
}

// Open reads the key of this host from a file that only root may read, and creates one if there is none. A file that
// has no valid key is kept beside the new one, with .corrupt in its name; damaged is then the error of the file.
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

// OpenFor does the same as Open for a host, and notes what was wrong with the file.
func OpenFor(host, path string, note func(format string, args ...any)) (Key, error) {
	key, damaged, err := Open(path)
	if err == nil && damaged != nil {
		note("%v; with `corpus host forget %s` it counts in the store", damaged, host)
	}
	return key, err
}

// Read reads the key of this host, and creates none.
func Read(path string) (Key, error) {
	data, err := walk.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("reading the host's key: %w", err)
	}
	return parse(data)
}

func create(path string) (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	text := keyword + base64.RawURLEncoding.EncodeToString(private.Seed()) + "\n"
	if err := durable.WriteFile(path, []byte(text), 0o600); err != nil {
		return Key{}, fmt.Errorf("keeping the host's key: %w", err)
	}
	return Key{private}, nil
}

func parse(data []byte) (Key, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(string(data)), keyword)
	seed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(seed) != ed25519.SeedSize {
		return Key{}, errors.New("it is not " + strings.TrimSpace(keyword) + " and a seed")
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}
