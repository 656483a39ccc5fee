package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/render"
)

// Where a host has its keys, unless its options say otherwise. A host that comes from Salt keeps
// its key ring where it is.
const (
	ageKeyFile  = "/etc/corpus/age.key"
	gpgKeyDir   = "/etc/corpus/gpgkeys"
	saltKeyDir  = "/etc/salt/gpgkeys"
	gpgPatience = 30 * time.Second // for one value
)

// decrypters are the renderers that decrypt values. What they decrypt is kept secret.
func (s *Session) decrypters() map[string]render.Decrypter {
	return map[string]render.Decrypter{
		"age": keeping{&ageDecrypter{files: s.Host.Files, file: s.option("age_keyfile")}, s.Redactor},
		"gpg": keeping{&gpgDecrypter{host: s.Host, dir: s.option("gpg_keydir"), plain: map[string]string{}}, s.Redactor},
	}
}

// keeping makes known to the redactor what was decrypted.
type keeping struct {
	render.Decrypter
	redactor *redact.Redactor
}

func (k keeping) Decrypt(ctx context.Context, text string) (string, bool, error) {
	plain, ok, err := k.Decrypter.Decrypt(ctx, text)
	if ok {
		k.redactor.Add(plain)
	}
	return plain, ok, err
}

// ageDecrypter decrypts armored age files with the keys of a file on the host.
type ageDecrypter struct {
	files host.Files
	file  string

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
			return "", false, diag.WithHint(fmt.Errorf("no key in %s decrypts this value", d.file), "encrypt it for this host: age -a -r RECIPIENT")
		}
		return "", false, fmt.Errorf("decrypting a value: %w", err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return "", false, fmt.Errorf("decrypting a value: %w", err)
	}
	return string(plain), true, nil
}

// identities reads the host's keys when the first value needs them.
func (d *ageDecrypter) identities() ([]age.Identity, error) {
	if d.keys != nil {
		return d.keys, nil
	}
	if d.file == "" {
		d.file = ageKeyFile
	}
	data, err := d.files.ReadFile(d.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.WithHint(fmt.Errorf("a value is encrypted with age, and this host has no %s", d.file), "make a key with age-keygen and put it there, readable by root alone")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the age keys: %w", err)
	}
	if d.keys, err = age.ParseIdentities(strings.NewReader(string(data))); err != nil {
		d.keys = nil
		return nil, fmt.Errorf("reading the age keys in %s: %w", d.file, err)
	}
	return d.keys, nil
}

// Marks of an encrypted block.
const (
	gpgBegin = "-----BEGIN PGP MESSAGE-----"
	gpgEnd   = "-----END PGP MESSAGE-----"
)

// gpgDecrypter decrypts every block in a text with the host's gpg.
type gpgDecrypter struct {
	host *host.Host
	dir  string

	plain map[string]string // of blocks that were decrypted in this run
}

func (d *gpgDecrypter) Decrypt(ctx context.Context, text string) (string, bool, error) {
	var out strings.Builder
	found := false
	for {
		before, rest, ok := strings.Cut(text, gpgBegin)
		if !ok {
			break
		}
		block, after, ok := strings.Cut(rest, gpgEnd)
		if !ok {
			return "", false, diag.WithHint(errors.New("a PGP message begins and does not end"), "see whether the value was cut, or is not indented alike")
		}
		plain, err := d.block(ctx, gpgBegin+block+gpgEnd)
		if err != nil {
			return "", false, err
		}
		out.WriteString(before + plain)
		text, found = after, true
	}
	if !found {
		return "", false, nil
	}
	out.WriteString(text)
	return out.String(), true, nil
}

func (d *gpgDecrypter) block(ctx context.Context, block string) (string, error) {
	if plain, ok := d.plain[block]; ok {
		return plain, nil
	}
	out, err := d.host.Commands.Run(ctx, host.Command{
		Argv:  []string{"gpg", "--homedir", d.keyDir(), "--batch", "--no-tty", "--status-fd", "2", "-d"},
		Env:   []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"},
		Stdin: block, Limit: gpgPatience, Quiet: true,
	})
	if err != nil {
		return "", fmt.Errorf("decrypting a value with gpg: %w", err)
	}
	if out.TimedOut || out.Code != 0 {
		return "", diag.WithHint(fmt.Errorf("gpg does not decrypt a value: %s", gpgReason(out)), "see which keys there are: gpg --homedir %s --list-secret-keys", d.keyDir())
	}
	d.plain[block] = out.Stdout
	return out.Stdout, nil
}

// gpgReason is the last thing that gpg said for people.
func gpgReason(out host.Output) string {
	if out.TimedOut {
		return fmt.Sprintf("it did not answer within %s", diag.Elapsed(gpgPatience))
	}
	lines := strings.Split(strings.TrimSpace(out.Stderr), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if !strings.HasPrefix(lines[i], "[GNUPG:]") {
			return strings.TrimPrefix(lines[i], "gpg: ")
		}
	}
	return fmt.Sprintf("it exited with %d", out.Code)
}

func (d *gpgDecrypter) keyDir() string {
	if d.dir == "" {
		d.dir = gpgKeyDir
		_, own := d.host.Files.Stat(gpgKeyDir)
		if _, err := d.host.Files.Stat(saltKeyDir); own != nil && err == nil {
			d.dir = saltKeyDir
		}
	}
	return d.dir
}
