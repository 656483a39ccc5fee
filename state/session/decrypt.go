package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
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

// keeping is a Decrypter that adds decrypted values to the redactor.
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
	return plain, ok, diag.HostOnly(err) // the available keys depend on the host
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
	log("warning", fmt.Sprintf("%s has mode %#o: other users can access the keys that decrypt the pillar; chmod %s %s",
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
				value.Str(item), renderer).WithHint(diag.Decrypt, "add it to decrypt_pillar_renderers, or name another renderer")
			continue
		}
		with, ok := s.renderer.Decrypters[renderer]
		if !ok {
			problems.Add(diag.Pos{}, "decrypt_pillar: the renderer %q of %s does not decrypt", renderer,
				value.Str(item)).WithHint(diag.Decrypt, "write gpg or age")
			continue
		}
		if err := decryptAt(ctx, data, strings.Split(value.Str(item), delimiter),
			noticing{with, value.Str(item)}); err != nil {
			problems.Add(diag.Pos{}, "decrypt_pillar: %s: %v", value.Str(item), err).WithHint(diag.Decrypt, diag.HintOf(err))
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
