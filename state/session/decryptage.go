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
	// AgeKeyFile is the file of the keys with which a host decrypts values for age.
	AgeKeyFile  = "/etc/corpus/age.key"
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
			return "", false, noKey(diag.Decrypt.Hint(fmt.Errorf("no key in %s decrypts this value", d.file),
				"put the key there that it was encrypted for, if the key of this host was lost or replaced; otherwise encrypt "+
					"it for this host: age -a -r RECIPIENT"))
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
		d.file = AgeKeyFile
	}
	keys, err := readAgeKeys(d.host, d.file)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("a value is encrypted with age, and %w", err)
	}
	if err != nil {
		return nil, noKey(err)
	}
	warnReadable(d.host.Files, d.file, d.log)
	d.keys = keys
	return keys, nil
}

// readAgeKeys reads the keys of a file. Each error has a hint; that of a missing file is fs.ErrNotExist.
func readAgeKeys(h *host.Host, file string) ([]age.Identity, error) {
	const putBack = "put the private key there that the values were encrypted for, with mode 0600; a new key does not " +
		"decrypt them"
	if err := rootsKeys(h, file); err != nil {
		return nil, err
	}
	data, err := h.Files.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, diag.Decrypt.Hint(&absentKeys{file}, putBack)
	case err != nil:
		return nil, diag.Decrypt.Hint(fmt.Errorf("reading the age keys: %w", err),
			"make %s a file that root can read: "+putBack, file)
	}
	keys, err := age.ParseIdentities(strings.NewReader(string(data)))
	if err != nil {
		return nil, diag.Decrypt.Hint(fmt.Errorf("reading the age keys in %s: %w", file, err), putBack)
	}
	return keys, nil
}

// absentKeys is the error of a host without a file of keys.
type absentKeys struct{ file string }

func (a *absentKeys) Error() string        { return "this host has no " + a.file }
func (a *absentKeys) Is(target error) bool { return target == fs.ErrNotExist }

// KeyFault is the error of a host whose keys for encrypted values are missing, cannot be used, or are other ones. It
// would fail every release with such values, so no release is at fault for it.
type KeyFault struct{ Err error }

func (k *KeyFault) Error() string { return k.Err.Error() }

// Unwrap returns the reason.
func (k *KeyFault) Unwrap() error { return k.Err }

// HostFault is part of diag.HostFault.
func (*KeyFault) HostFault() {}

// noKey marks an error as a KeyFault.
func noKey(err error) error { return &KeyFault{err} }

// CheckAgeKeys reads the keys of age as a run does, and shows nothing of them. found reports whether there is a file;
// open is the mode of a file that other users can read, with the command that closes it.
func CheckAgeKeys(h *host.Host) (found bool, open error, err error) {
	_, err = readAgeKeys(h, AgeKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, err
	}
	warnReadable(h.Files, AgeKeyFile, func(_, message string) {
		open = diag.Decrypt.Hint(errors.New(message), "chmod 0600 %s", AgeKeyFile)
	})
	return true, open, err
}
