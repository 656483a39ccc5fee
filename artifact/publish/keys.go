package publish

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Keyring is a directory of keys. A role's private keys are the files ROLE.key and ROLE-2.key,
// ROLE-3.key and so on, its public keys the same with .pub; both are PEM, PKCS #8 and PKIX, so
// that openssl reads them. Which keys lie there is what its owner may sign.
type Keyring struct{ Dir string }

const (
	privateSuffix = ".key"
	publicSuffix  = ".pub"
	privateBlock  = "PRIVATE KEY"
	publicBlock   = "PUBLIC KEY"
)

// keyFile is the name of the n-th key of a role, without its suffix.
func keyFile(role string, n int) string {
	if n == 1 {
		return role
	}
	return fmt.Sprintf("%s-%d", role, n)
}

// New makes n key pairs for a role. A key that is there already is kept; made lists the files that
// are new.
func (k Keyring) New(role string, n int) (made []string, err error) {
	if err := durable.MkdirAll(k.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the key directory: %w", err)
	}
	for i := 1; i <= n; i++ {
		name := filepath.Join(k.Dir, keyFile(role, i))
		if _, err := os.Lstat(name + privateSuffix); err == nil {
			continue
		}
		if err := newPair(name); err != nil {
			return made, err
		}
		made = append(made, name+privateSuffix)
	}
	return made, nil
}

func newPair(name string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	publicDER, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	// The private key comes last: it is what makes the pair count as there.
	return errors.Join(
		durable.WriteFile(name+publicSuffix, pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: publicDER}), 0o644),
		durable.WriteFile(name+privateSuffix, pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: privateDER}), 0o600))
}

// Has reports whether the keyring holds a private key of the role.
func (k Keyring) Has(role string) bool {
	_, err := os.Stat(filepath.Join(k.Dir, keyFile(role, 1)+privateSuffix))
	return err == nil
}

// Signers reads the role's private keys.
func (k Keyring) Signers(role string) ([]signature.Signer, error) {
	files, err := k.files(role, privateSuffix)
	if err != nil {
		return nil, err
	}
	var signers []signature.Signer
	for _, file := range files {
		s, err := readSigner(file)
		if err != nil {
			return nil, fmt.Errorf("reading key %s: %w", file, err)
		}
		signers = append(signers, s)
	}
	if len(signers) == 0 {
		return nil, diag.WithHint(fmt.Errorf("no key of %s in %s", role, k.Dir),
			"give --keys the directory that holds %s%s, or ask its owner to do this", role, privateSuffix)
	}
	return signers, nil
}

// files lists a role's files in the order of their numbers.
func (k Keyring) files(role, suffix string) ([]string, error) {
	var files []string
	for n := 1; ; n++ {
		file := filepath.Join(k.Dir, keyFile(role, n)+suffix)
		_, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
}

func readSigner(file string) (signature.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != privateBlock {
		return nil, errors.New("it is not a PEM private key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it is a %T, and only Ed25519 keys sign", key)
	}
	return signature.LoadED25519Signer(private)
}

// Public reads the role's public keys.
func (k Keyring) Public(role string) ([]*metadata.Key, error) {
	files, err := k.files(role, publicSuffix)
	if err != nil {
		return nil, err
	}
	var keys []*metadata.Key
	for _, file := range files {
		key, err := ReadPublic(file)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, diag.WithHint(fmt.Errorf("no public key of %s in %s", role, k.Dir), "make keys with `corpus keys new --keys %s`", k.Dir)
	}
	return keys, nil
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

// Projects lists the projects whose private keys the keyring holds.
func (k Keyring) Projects() ([]string, error) {
	entries, err := os.ReadDir(k.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), privateSuffix)
		if ok && !numbered(name) && trust.CheckProject(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// numbered tells ROLE-2 from ROLE.
func numbered(name string) bool {
	i := strings.LastIndexByte(name, '-')
	return i > 0 && name[i+1:] != "" && strings.Trim(name[i+1:], "0123456789") == ""
}
