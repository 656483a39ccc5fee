package session

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// oneGPG answers as gpg: the plain text of a block is what stands between its marks.
type oneGPG struct {
	host.Commands
	hangs bool
	fails bool
	asked int
}

func (g *oneGPG) Run(_ context.Context, c host.Command) (host.Output, error) {
	g.asked++
	if g.hangs {
		return host.Output{TimedOut: true, Code: -1}, nil
	}
	if g.fails {
		return host.Output{Code: 2, Stderr: "gpg: decryption failed: No secret key\n"}, nil
	}
	text := strings.TrimSuffix(strings.TrimPrefix(c.Stdin, gpgBegin), gpgEnd)
	return host.Output{Stdout: strings.TrimPrefix(text, "\n")}, nil
}

// openKeys is a host whose directory of keys every user can read.
type openKeys struct{ host.Files }

func (openKeys) Stat(path string) (host.Info, error) {
	if path == gpgKeyDir {
		return host.Info{Mode: fs.ModeDir | 0o755}, nil
	}
	return host.Info{}, fs.ErrNotExist
}

func gpgSession(g *oneGPG, options ...any) (*Session, *[]string) {
	var notes []string
	s := New(Settings{
		Host: &host.Host{Files: openKeys{}, Commands: g}, Options: value.NewMap(options...),
		Log: func(level, message string) { notes = append(notes, level+": "+message) },
	})
	return s, &notes
}

func block(plain string) string { return gpgBegin + "\n" + plain + gpgEnd }

// Salt takes the line feeds off the end of a value, which nearly every one has that `echo` wrote, and no other byte.
func TestDecryptedValuesEndAsInSalt(t *testing.T) {
	s, _ := gpgSession(&oneGPG{})
	for in, want := range map[string]string{
		block("secret\n"): "secret", block("two\nlines\n\n") + "\n": "two\nlines", block(" kept \r\n"): " kept \r", "a " + block("b") + " c\n": "a b c",
	} {
		if got, ok, err := s.renderer.Decrypters["gpg"].Decrypt(t.Context(), in); got != want || !ok || err != nil {
			t.Errorf("%q is decrypted to %q, %t, %v, want %q", in, got, ok, err, want)
		}
	}
}

func TestAHangingGPGCostsOneTimeout(t *testing.T) {
	g := &oneGPG{hangs: true}
	s, _ := gpgSession(g)
	for _, text := range []string{block("a"), block("b"), block("c")} {
		if _, _, err := s.renderer.Decrypters["gpg"].Decrypt(t.Context(), text); err == nil || !strings.Contains(err.Error(), "did not answer") {
			t.Errorf("error is %v", err)
		}
	}
	if g.asked != 1 {
		t.Errorf("gpg was asked %d times", g.asked)
	}
}

func TestOptionsOfSaltsRendererAreHonoured(t *testing.T) {
	s, notes := gpgSession(&oneGPG{}, "decrypt_pillar", value.NewList("app/password", value.NewMap("tls", "gpg"), "not/there"), "decrypt_pillar_delimiter", "/", "gpg_cache", true)
	data := value.NewMap("app", value.NewMap("password", block("hunter22"), "other", block("kept")), "tls", value.NewMap("keys", value.NewList(block("one-key"))))
	if err := s.decryptPillar(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	password, _ := value.Lookup(data, "app:password", ":")
	other, _ := value.Lookup(data, "app:other", ":")
	keys, _ := value.Lookup(data, "tls:keys", ":")
	if password != "hunter22" || other != block("kept") || keys.(*value.List).Items[0] != "one-key" {
		t.Errorf("the pillar is %v, %v, %v", password, other, keys)
	}
	if text := s.Redactor.Text("hunter22 and one-key"); strings.Contains(text, "hunter22") || strings.Contains(text, "one-key") {
		t.Errorf("not redacted: %s", text)
	}
	for _, want := range []string{"warning: gpg_cache is not used here", "warning: /etc/corpus/gpgkeys has mode 0755"} {
		if !strings.Contains(strings.Join(*notes, "\n"), want) {
			t.Errorf("%q is not in %q", want, *notes)
		}
	}
	s, notes = gpgSession(&oneGPG{fails: true}, "gpg_decrypt_must_succeed", false)
	if got, _, err := s.renderer.Decrypters["gpg"].Decrypt(t.Context(), block("x")); err != nil || got != block("x") || !strings.Contains(strings.Join(*notes, ""), "stays encrypted") {
		t.Errorf("%q, %v, %q", got, err, *notes)
	}
}

func TestShortSecretsAreNamed(t *testing.T) {
	s, notes := gpgSession(&oneGPG{})
	keeping{nil, s}.Decrypted("4711\n", "pin", diag.Pos{File: "secrets.sls", Line: 3, Col: 6})
	keeping{nil, s}.Decrypted("long enough", "password", diag.Pos{})
	if len(*notes) != 1 || !strings.Contains((*notes)[0], "pin (secrets.sls:3") || strings.Contains((*notes)[0], "4711") {
		t.Errorf("notes are %q", *notes)
	}
}
