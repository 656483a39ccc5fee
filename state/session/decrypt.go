package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// The default places of a host's keys. A host that was set up by Salt may keep its key ring in saltKeyDir.
const (
	ageKeyFile  = "/etc/corpus/age.key"
	gpgKeyDir   = "/etc/corpus/gpgkeys"
	saltKeyDir  = "/etc/salt/gpgkeys"
	gpgPatience = 30 * time.Second // the time limit for one value
)

// decrypters returns the renderers that decrypt values. The decrypted values are added to the redactor.
func (s *Session) decrypters() map[string]render.Decrypter {
	return map[string]render.Decrypter{
		"age": keeping{&ageDecrypter{host: s.Host, file: s.option("age_keyfile"), log: s.log}, s},
		"gpg": keeping{&gpgDecrypter{
			host: s.Host, dir: s.option("gpg_keydir"), lenient: !s.flag("gpg_decrypt_must_succeed", true),
			plain: map[string]string{}, log: s.log,
		}, s},
	}
}

// keeping is a Decrypter that adds what it decrypts to the redactor.
type keeping struct {
	render.Decrypter
	of *Session
}

// Decrypted adds a value to the redactor, and logs a warning if the value is too short to be found inside other
// text.
func (k keeping) Decrypted(plain, key string, at diag.Pos) {
	k.of.Redactor.Add(plain)
	if len(strings.TrimSpace(plain)) < redact.Shortest {
		if at.File != "" {
			key = fmt.Sprintf("%s (%s)", key, at)
		}
		k.of.log("warning",
			fmt.Sprintf("the decrypted value of %s is not protected: it has fewer than %d characters, and is redacted only "+
				"where it stands alone", key, redact.Shortest))
	}
}

func (k keeping) Decrypt(ctx context.Context, text string) (string, bool, error) {
	plain, ok, err := k.Decrypter.Decrypt(ctx, text)
	if ok {
		k.of.Redactor.Add(plain)
	}
	return plain, ok, err
}

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
			return "", false, diag.WithHint(fmt.Errorf("no key in %s decrypts this value", d.file),
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
		return nil, diag.WithHint(fmt.Errorf("a value is encrypted with age, and this host has no %s", d.file),
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

// The first and the last line of an encrypted block.
const (
	gpgBegin = "-----BEGIN PGP MESSAGE-----"
	gpgEnd   = "-----END PGP MESSAGE-----"
)

// gpgDecrypter decrypts every block in a text with the host's gpg.
type gpgDecrypter struct {
	host    *host.Host
	dir     string
	lenient bool // a value that cannot be decrypted stays as it is, with a warning
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
			return "", false, diag.WithHint(errors.New("a PGP message begins and does not end"),
				"see whether the value was cut, or is not indented alike")
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
		return "", err
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
		d.hung = diag.WithHint(fmt.Errorf("gpg does not decrypt a value: %s", gpgReason(out)),
			"see whether its agent hangs: gpgconf --homedir %s --kill all", d.keyDir())
		return "", d.hung
	}
	if out.Code != 0 {
		return "", diag.WithHint(fmt.Errorf("gpg does not decrypt a value: %s", gpgReason(out)),
			"see which keys there are: gpg --homedir %s --list-secret-keys", d.keyDir())
	}
	d.plain[block] = out.Stdout
	return out.Stdout, nil
}

// gpgReason returns the last line that gpg printed for people.
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

// rootsKeys returns an error if an unprivileged user controls the keys. gpg runs programs that are named in the
// configuration beside its keys.
func rootsKeys(h *host.Host, at string) error {
	err := h.Sole(at)
	var unsafe *walk.UnsafeError
	if !errors.As(err, &unsafe) {
		return nil // the caller reports keys that are missing or cannot be read
	}
	return diag.WithHint(fmt.Errorf("the keys in %s are not used, since %s can change %s", at, unsafe.By,
		unsafe.Component),
		"%s", walk.CopyHint(unsafe.Component, ""))
}

// warnReadable logs a warning if other users can read the keys.
func warnReadable(files host.Files, file string, log func(level, message string)) {
	info, err := files.Stat(file)
	if err != nil || info.Mode.Perm()&0o077 == 0 {
		return
	}
	mode := "0600"
	if info.Mode.IsDir() {
		mode = "0700"
	}
	log("warning", fmt.Sprintf("%s has mode %#o: other users can get at the keys that decrypt the pillar; chmod %s %s",
		file, info.Mode.Perm(), mode, file))
}

// decryptPillar decrypts the pillar keys that the option decrypt_pillar names. Their values, and everything below
// them, are encrypted although their file is not rendered with gpg.
func (s *Session) decryptPillar(ctx context.Context, data *value.Map) error {
	named, _ := s.options.Value("decrypt_pillar").(*value.List)
	for _, option := range []string{"gpg_cache", "gpg_cache_ttl", "gpg_cache_backend"} {
		if v := s.options.Value(option); v != nil && value.Truth(v) {
			s.log("warning", option+" is not used here: decrypted values are kept for one run, in memory, and never on the disk")
		}
	}
	allowed, limited := s.options.Value("decrypt_pillar_renderers").(*value.List)
	if named == nil || data == nil {
		return nil
	}
	delimiter, usual := cmp.Or(s.option("decrypt_pillar_delimiter"), ":"),
		cmp.Or(s.option("decrypt_pillar_default"), "gpg")
	var problems diag.List
	for _, item := range named.Items {
		renderer := usual
		if m, ok := item.(*value.Map); ok && m.Len() == 1 {
			item = m.Keys()[0]
			renderer = value.Str(m.Value(value.Str(item)))
		}
		if limited && !slices.Contains(allowed.Items, any(renderer)) {
			problems.Add(diag.Pos{}, "decrypt_pillar: %s: the renderer %q is not one of decrypt_pillar_renderers",
				value.Str(item), renderer).WithHint("add it to decrypt_pillar_renderers, or name another renderer")
			continue
		}
		with, ok := s.renderer.Decrypters[renderer]
		if !ok {
			problems.Add(diag.Pos{}, "decrypt_pillar: the renderer %q of %s decrypts nothing", renderer,
				value.Str(item)).WithHint("write gpg or age")
			continue
		}
		if err := decryptAt(ctx, data, strings.Split(value.Str(item), delimiter),
			noticing{with, value.Str(item)}); err != nil {
			problems.Add(diag.Pos{}, "decrypt_pillar: %s: %v", value.Str(item), err).WithHint(diag.HintOf(err))
		}
	}
	return problems.Err()
}

// noticing is a Decrypter that reports each decrypted value under the path in decrypt_pillar.
type noticing struct {
	render.Decrypter
	path string
}

func (n noticing) Decrypt(ctx context.Context, text string) (string, bool, error) {
	plain, ok, err := n.Decrypter.Decrypt(ctx, text)
	if to, is := n.Decrypter.(render.Noticer); is && ok {
		to.Decrypted(plain, n.path, diag.Pos{})
	}
	return plain, ok, err
}

// decryptAt decrypts the value at a path and everything below it. A path that does not exist is ignored: the key
// belongs to other hosts.
func decryptAt(ctx context.Context, data *value.Map, path []string, with render.Decrypter) error {
	for _, key := range path[:len(path)-1] {
		below, ok := data.Value(key).(*value.Map)
		if !ok {
			return nil
		}
		data = below
	}
	last := path[len(path)-1]
	v, ok := data.Get(last)
	if !ok {
		return nil
	}
	plain, err := decrypted(ctx, v, with)
	if err == nil {
		data.Set(last, plain)
	}
	return err
}

// decrypted returns a value with all strings in it decrypted.
func decrypted(ctx context.Context, v any, with render.Decrypter) (any, error) {
	switch v := v.(type) {
	case string:
		if plain, ok, err := with.Decrypt(ctx, v); ok || err != nil {
			return plain, err
		}
	case *value.Map:
		for key, item := range v.Clone().All() {
			plain, err := decrypted(ctx, item, with)
			if err != nil {
				return nil, err
			}
			_ = v.SetKey(key, plain) // the key is valid, since it is in the mapping already
		}
	case *value.List:
		for i, item := range v.Items {
			plain, err := decrypted(ctx, item, with)
			if err != nil {
				return nil, err
			}
			v.Items[i] = plain
		}
	}
	return v, nil
}
