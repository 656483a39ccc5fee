package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// The first and the last line of an encrypted block.
const (
	gpgBegin = "-----BEGIN PGP MESSAGE-----"
	gpgEnd   = "-----END PGP MESSAGE-----"
)

// gpgDecrypter decrypts every block in a text with the host's gpg.
type gpgDecrypter struct {
	host    *host.Host
	dir     string
	lenient bool // a value that cannot be decrypted stays unchanged, with a warning
	log     func(level, message string)

	looked bool              // the mode of the directory was checked
	hung   error             // the error of a call that timed out; gpg is not called again in this run
	plain  map[string]string // blocks that were decrypted in this run, and their text
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
			return "", false, diag.Decrypt.Hint(errors.New("a PGP message begins and does not end"),
				"check whether the value is truncated, or not indented evenly")
		}
		plain, err := d.block(ctx, gpgBegin+block+gpgEnd)
		if err != nil && d.lenient && ctx.Err() == nil {
			d.log("warning", fmt.Sprintf("%v; the value stays encrypted, since gpg_decrypt_must_succeed is false", err))
			plain, err = gpgBegin+block+gpgEnd, nil
		}
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
	return strings.TrimRight(out.String(), "\n"), true, nil // as Salt does: `echo secret | gpg` encrypts a line feed, too
}

func (d *gpgDecrypter) block(ctx context.Context, block string) (string, error) {
	if plain, ok := d.plain[block]; ok {
		return plain, nil
	}
	if d.hung != nil {
		return "", d.hung
	}
	if err := rootsKeys(d.host, d.keyDir()); err != nil {
		return "", noKey(err)
	}
	out, err := d.host.Commands.Run(ctx, host.Command{
		Argv:  []string{"gpg", "--homedir", d.keyDir(), "--batch", "--no-tty", "--status-fd", "2", "-d"},
		Env:   []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"},
		Stdin: block, Limit: gpgPatience, Quiet: true,
	})
	if err != nil {
		return "", fmt.Errorf("decrypting a value with gpg: %w", err)
	}
	if out.TimedOut {
		d.hung = noKey(diag.Decrypt.Hint(fmt.Errorf("gpg does not decrypt a value: %s", gpgReason(out)),
			"see whether its agent hangs: gpgconf --homedir %s --kill all", d.keyDir()))
		return "", d.hung
	}
	if out.Code != 0 {
		err := diag.Decrypt.Hint(fmt.Errorf("gpg does not decrypt a value: %s", gpgReason(out)),
			"see which keys there are: gpg --homedir %s --list-secret-keys", d.keyDir())
		if strings.Contains(out.Stderr, "[GNUPG:] NO_SECKEY ") {
			err = noKey(err)
		}
		return "", err
	}
	d.plain[block] = out.Stdout
	return out.Stdout, nil
}

// gpgReason returns the reason why gpg failed: the last line of its messages that is not a status line.
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
	if !d.looked {
		d.looked = true
		warnReadable(d.host.Files, d.dir, d.log)
	}
	return d.dir
}

// rootsKeys returns an error if an unprivileged user can change the keys. gpg runs programs that are named in the
// configuration in the directory of its keys.
func rootsKeys(h *host.Host, at string) error {
	err := h.CheckRootOnly(at)
	var unsafe *walk.UnsafeError
	if !errors.As(err, &unsafe) {
		return nil // the caller reports keys that are missing or cannot be read
	}
	return diag.Exposed.Hint(fmt.Errorf("the keys in %s are not used, since %s can change %s", at, unsafe.By,
		unsafe.Component),
		"%s", walk.CopyHint(unsafe.Component, ""))
}
