package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// The default places of a host's keys. A host that was set up by Salt may keep its key ring in saltKeyDir.
const (
	ageKeyFile  = "/etc/corpus/age.key"
	gpgKeyDir   = "/etc/corpus/gpgkeys"
	saltKeyDir  = "/etc/salt/gpgkeys"
	gpgPatience = 30 * time.Second // the time limit for one value
)

// ageDecrypter decrypts armored age files with the keys of a file on the host.
type ageDecrypter struct {
	host *host.Host
	file string
	log  func(level, message string)

	keys []age.Identity
}

func (d *ageDecrypter) Decrypt(_ context.Context, text string) (string, bool, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), armor.Header) {
		return "", false, nil
	}
	keys, err := d.identities()
	if err != nil {
		return "", false, err
	}
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(strings.TrimSpace(text))), keys...)
	if err != nil {
		var none *age.NoIdentityMatchError
		if errors.As(err, &none) {
			return "", false, diag.Decrypt.Hint(fmt.Errorf("no key in %s decrypts this value", d.file),
				"encrypt it for this host: age -a -r RECIPIENT")
		}
		return "", false, fmt.Errorf("decrypting a value: %w", err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return "", false, fmt.Errorf("decrypting a value: %w", err)
	}
	return string(plain), true, nil
}

// identities returns the host's keys. They are read when the first value needs them.
func (d *ageDecrypter) identities() ([]age.Identity, error) {
	if d.keys != nil {
		return d.keys, nil
	}
	if d.file == "" {
		d.file = ageKeyFile
	}
	if err := rootsKeys(d.host, d.file); err != nil {
		return nil, err
	}
	data, err := d.host.Files.ReadFile(d.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Decrypt.Hint(fmt.Errorf("a value is encrypted with age, and this host has no %s", d.file),
			"put the private key there that the value was encrypted for, with mode 0600; a new key does not decrypt it")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the age keys: %w", err)
	}
	warnReadable(d.host.Files, d.file, d.log)
	if d.keys, err = age.ParseIdentities(strings.NewReader(string(data))); err != nil {
		d.keys = nil
		return nil, fmt.Errorf("reading the age keys in %s: %w", d.file, err)
	}
	return d.keys, nil
}
