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

// errEncrypted says that a private key cannot be read without a passphrase or an age identity.
var errEncrypted = errors.New("it is encrypted")

// Private is what can be said of a private key file without opening it.
type Private struct {
	Encrypted bool        // its key is not verified then
	Mode      fs.FileMode // who may read it
}

// Inspect reads a private key file without a passphrase and without a key management service. The error says why the
// file cannot sign, and its hint what to do.
func Inspect(file string) (Private, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Private{}, diag.WithHint(fmt.Errorf("reading a private key: %w", err),
			"bring the file back from a backup, or remove the link: %s", file)
	}
	p := Private{Mode: info.Mode().Perm()}
	if !info.Mode().IsRegular() {
		return p, explainFile(file, fmt.Errorf("reading a private key from %s: %w", file,
			&damagedKey{"it is not a regular file"}))
	}
	data, err := walk.ReadFile(file)
	if err != nil {
		return p, diag.WithHint(fmt.Errorf("reading a private key: %w", err),
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

// RoleOf returns the role whose private key a file of the ring's directory is: ROLE for ROLE.key and ROLE-2.key.
func (r Ring) RoleOf(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), privateSuffix)
	if r.numbered(name, privateSuffix) {
		name = name[:strings.LastIndexByte(name, '-')]
	}
	return name
}
