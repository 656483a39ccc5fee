package keyring

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// isReference reports whether a text is a reference to a key that is elsewhere.
func isReference(text string) bool { return strings.HasPrefix(text, "awskms:") }

// read parses private keys in any of the supported forms. from is their origin, for errors; the errors never contain
// any of the text.
func (r Ring) read(from, text string) ([]Key, error) {
	signers, err := r.parse(from, strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("reading a private key from %s: %w", from, err)
	}
	var keys []Key
	for _, s := range signers {
		id, err := idOf(s)
		if err != nil {
			return nil, fmt.Errorf("reading a private key from %s: %w", from, err)
		}
		keys = append(keys, Key{Signer: s, ID: id, From: from})
	}
	return keys, nil
}

func (r Ring) parse(from, text string) ([]Signer, error) {
	switch {
	case isReference(text):
		return r.remote(strings.Fields(text))
	case strings.HasPrefix(text, armor.Header):
		if r.Locks == nil {
			return nil, errEncrypted
		}
		plain, err := r.Locks.open(from, []byte(text))
		if err != nil {
			return nil, err
		}
		return parsePEM(plain)
	case strings.HasPrefix(text, "-----BEGIN "):
		return parsePEM([]byte(text))
	}
	// One line of base64, for variables of CI systems.
	plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil || !strings.HasPrefix(string(plain), "-----BEGIN ") {
		return nil, diag.Keys.Hint(&damagedKey{"it is neither PEM, nor base64 of PEM, nor a reference"},
			"give the content of the .key file that `corpus keys new` made, or awskms:ARN")
	}
	return r.parse(from, string(plain))
}

func (r Ring) remote(refs []string) ([]Signer, error) {
	var signers []Signer
	for _, ref := range refs {
		if r.Remote == nil || !isReference(ref) {
			return nil, errors.New("this program cannot read keys from such a reference")
		}
		s, err := r.Remote(ref)
		if err != nil {
			return nil, err
		}
		signers = append(signers, s)
	}
	return signers, nil
}

func parsePEM(data []byte) ([]Signer, error) {
	var signers []Signer
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		s, err := parseBlock(block)
		if err != nil {
			return nil, err
		}
		signers = append(signers, s)
	}
	if len(signers) == 0 {
		return nil, &damagedKey{"it is truncated, or damaged"}
	}
	return signers, nil
}

// damagedKey is the error for a text that is not a private key.
type damagedKey struct{ text string }

func (d *damagedKey) Error() string { return d.text }

// explainFile adds a hint to the error about a damaged key file.
func explainFile(file string, err error) error {
	var damaged *damagedKey
	if !errors.As(err, &damaged) {
		return err
	}
	role, command := strings.TrimSuffix(filepath.Base(file), privateSuffix), ""
	for _, known := range []string{"timestamp", "snapshot", "targets"} {
		if role == known || strings.HasPrefix(role, known+"-") {
			command = ": corpus keys rotate " + known
		}
	}
	return diag.Keys.Hint(err,
		"bring the file back from a backup; without one the key is lost: move the file away (mv %[1]s %[1]s.damaged), "+
			"and a holder of the root's key "+
			"gives its role a new one%[2]s (docs/trust.md, \"A key is lost, stolen or added\")", file, command)
}

func parseBlock(block *pem.Block) (Signer, error) {
	switch block.Type {
	case privateBlock:
	case publicBlock:
		return nil, diag.Keys.Hint(errors.New("it is a public key"), "give the file that ends in .key")
	case "ENCRYPTED PRIVATE KEY":
		return nil, diag.Keys.Hint(errors.New("it is encrypted in a way that is not read here"),
			"encrypt the key with age (`corpus keys new --encrypt`)")
	default:
		return nil, errors.New("it is not a PKCS #8 private key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, &damagedKey{"it is damaged"} // the library's message might quote the key
	}
	switch private := key.(type) {
	case ed25519.PrivateKey:
		return ed25519Signer(private), nil
	case *ecdsa.PrivateKey:
		if private.Curve.Params().BitSize == 256 {
			return ecdsaSigner{private}, nil
		}
	}
	return nil, fmt.Errorf("it is a %T, and only Ed25519 and ECDSA P-256 keys sign", key)
}

// idOf returns a key's ID in signed metadata.
func idOf(s Signer) (string, error) {
	public, err := s.PublicKey()
	if err != nil {
		return "", err
	}
	key, err := tuf.NewKey(public)
	if err != nil {
		return "", err
	}
	return key.ID()
}
