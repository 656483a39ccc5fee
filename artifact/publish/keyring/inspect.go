package keyring

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// errEncrypted is the error for a private key that cannot be read without a passphrase or an age identity.
var errEncrypted = errors.New("it is encrypted")

// Private describes a private key file without decrypting it.
type Private struct {
	Encrypted bool        // if true, the key was not verified
	Mode      fs.FileMode // permission bits
}

// Inspect reads a private key file without a passphrase and without a key management service. The error gives the
// reason why the key cannot sign, with a hint.
func Inspect(file string) (Private, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Private{}, diag.Keys.Hint(fmt.Errorf("reading a private key: %w", err),
			"bring the file back from a backup, or remove the link: %s", file)
	}
	p := Private{Mode: info.Mode().Perm()}
	if !info.Mode().IsRegular() {
		return p, explainFile(file, fmt.Errorf("reading a private key from %s: %w", file,
			&damagedKey{"it is not a regular file"}))
	}
	data, err := walk.ReadFile(file)
	if err != nil {
		return p, diag.Keys.Hint(fmt.Errorf("reading a private key: %w", err),
			"run this as the owner of the file, or give it the right to read: chmod 600 %s", file)
	}
	p.Encrypted, err = inspectText(file, strings.TrimSpace(string(data)))
	return p, err
}

func inspectText(file, text string) (encrypted bool, err error) {
	switch {
	case isReference(text):
		return false, nil
	case strings.HasPrefix(text, armor.Header):
		if _, err := io.Copy(io.Discard, armor.NewReader(strings.NewReader(text))); err != nil {
			return true, explainFile(file, fmt.Errorf("reading a private key from %s: %w", file,
				&damagedKey{"it is encrypted, and truncated or damaged"}))
		}
		return true, nil
	}
	if _, err = (Ring{}).read(file, text); errors.Is(err, errEncrypted) {
		return true, nil
	}
	return false, explainFile(file, err)
}

// RoleOf returns the role of a private key file in the ring's directory: ROLE for ROLE.key and ROLE-2.key.
func (r Ring) RoleOf(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), privateSuffix)
	if r.numbered(name, privateSuffix) {
		name = name[:strings.LastIndexByte(name, '-')]
	}
	return name
}
