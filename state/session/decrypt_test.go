package session

import (
	"context"
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// oneGPG is a fake of gpg. The plain text of a block is the text between its begin and end.
type oneGPG struct {
	host.Commands
	hangs   bool
	fails   bool
	encoded bool // the plain text of a block is in base64
	runs    int
}

func (g *oneGPG) Run(_ context.Context, c host.Command) (host.Output, error) {
	g.runs++
	if g.hangs {
		return host.Output{TimedOut: true, Code: -1}, nil
	}
	if g.fails {
		return host.Output{Code: 2, Stderr: "gpg: decryption failed: No secret key\n"}, nil
	}
	text := strings.TrimSuffix(strings.TrimPrefix(c.Stdin, gpgBegin), gpgEnd)
	if g.encoded {
		plain, err := base64.StdEncoding.DecodeString(text)
		return host.Output{Stdout: string(plain)}, err
	}
	return host.Output{Stdout: strings.TrimPrefix(text, "\n")}, nil
}

// openKeys is a host.Files whose directory of keys every user can read.
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

// TestDecryptedLineFeedsMatchSalt checks that only line feeds at the end of a value are removed, as in Salt. Most
// values have one, since `echo` writes it.
func TestDecryptedLineFeedsMatchSalt(t *testing.T) {
	s, _ := gpgSession(&oneGPG{})
	for in, want := range map[string]string{
		block("secret\n"): "secret", block("two\nlines\n\n") + "\n": "two\nlines", block(" kept \r\n"): " kept \r",
		"a " + block("b") + " c\n": "a b c",
	} {
		if got, ok, err := s.renderer.Decrypters["gpg"].Decrypt(t.Context(), in); got != want || !ok || err != nil {
			t.Errorf("%q is decrypted to %q, %t, %v, want %q", in, got, ok, err, want)
		}
	}
}

func TestHangingGPGTimesOutOnce(t *testing.T) {
	g := &oneGPG{hangs: true}
	s, _ := gpgSession(g)
	for _, text := range []string{block("a"), block("b"), block("c")} {
		if _, _, err := s.renderer.Decrypters["gpg"].Decrypt(t.Context(), text); err == nil ||
			!strings.Contains(err.Error(), "did not answer") {
			t.Errorf("error is %v", err)
		}
	}
	if g.runs != 1 {
		t.Errorf("gpg ran %d times", g.runs)
	}
}

func TestOptionsOfSaltsRendererAreHonoured(t *testing.T) {
	s, notes := gpgSession(&oneGPG{}, "decrypt_pillar", value.NewList("app/password", value.NewMap("tls", "gpg"),
		"not/there"), "decrypt_pillar_delimiter", "/", "gpg_cache", true)
	data := value.NewMap("app", value.NewMap("password", block("hunter22"), "other", block("kept")), "tls",
		value.NewMap("keys", value.NewList(block("one-key"))))
	if err := s.decryptPillar(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	password, _ := value.Lookup(data, "app:password", ":")
	other, _ := value.Lookup(data, "app:other", ":")
	keys, _ := value.Lookup(data, "tls:keys", ":")
	if password != "hunter22" || other != block("kept") || keys.(*value.List).Items[0] != "one-key" {
		t.Errorf("the pillar is %v, %v, %v", password, other, keys)
	}
	if text := s.Redactor.Text("hunter22 and one-key"); strings.Contains(text, "hunter22") ||
		strings.Contains(text, "one-key") {
		t.Errorf("not redacted: %s", text)
	}
	limited, cacheNotes := gpgSession(&oneGPG{}, "decrypt_pillar", value.NewList("a"), "decrypt_pillar_renderers",
		value.NewList("age"), "gpg_cache_ttl", 60, "gpg_cache_backend", "disk")
	if err := limited.decryptPillar(t.Context(), value.NewMap("a", block("x"))); err == nil ||
		!strings.Contains(err.Error(), "not one of decrypt_pillar_renderers") {
		t.Errorf("error is %v", err)
	}
	for _, want := range []string{"gpg_cache_ttl is not used here", "gpg_cache_backend is not used here"} {
		if !strings.Contains(strings.Join(*cacheNotes, "\n"), want) {
			t.Errorf("%q is not in %q", want, *cacheNotes)
		}
	}
	for _, want := range []string{"warning: gpg_cache is not used here", "warning: /etc/corpus/gpgkeys has mode 0755"} {
		if !strings.Contains(strings.Join(*notes, "\n"), want) {
			t.Errorf("%q is not in %q", want, *notes)
		}
	}
	s, notes = gpgSession(&oneGPG{fails: true}, "gpg_decrypt_must_succeed", false)
	if got, _, err := s.renderer.Decrypters["gpg"].Decrypt(t.Context(), block("x")); err != nil || got != block("x") ||
		!strings.Contains(strings.Join(*notes, ""), "stays encrypted") {
		t.Errorf("%q, %v, %q", got, err, *notes)
	}
}

func TestShortSecretsAreReported(t *testing.T) {
	s, notes := gpgSession(&oneGPG{})
	keeping{nil, s}.Decrypted("4711\n", "pin", diag.Pos{File: "secrets.sls", Line: 3, Col: 6})
	keeping{nil, s}.Decrypted("long enough", "password", diag.Pos{})
	s, pillarNotes := gpgSession(&oneGPG{}, "decrypt_pillar", value.NewList("app:pin", "app:password"))
	if err := s.decryptPillar(t.Context(),
		value.NewMap("app", value.NewMap("pin", block("4711"), "password", block("long enough")))); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(*pillarNotes, "\n"); strings.Count(text, "not protected") != 1 ||
		!strings.Contains(text, "of app:pin is") {
		t.Errorf("notes of decrypt_pillar are %q", text)
	}
	s, fileNotes := gpgSession(&oneGPG{encoded: true})
	if _, err := s.renderer.Render(t.Context(), render.Source{File: "pin.sls",
		Text: "#!gpg|yaml\n" + block(base64.StdEncoding.EncodeToString([]byte("pin: 4711\npassword: hunter22\n")))},
		value.NewMap()); err != nil {
		t.Fatal(err)
	}
	if text := s.Redactor.Text("it is hunter22"); text != "it is <secret>" {
		t.Errorf("a value of a file that is encrypted as a whole: %q", text)
	}
	if text := strings.Join(*fileNotes, "\n"); strings.Count(text, "not protected") != 1 ||
		!strings.Contains(text, "of pin (pin.sls:") {
		t.Errorf("notes of a file are %q", text)
	}
	if len(*notes) != 1 || !strings.Contains((*notes)[0], "pin (secrets.sls:3") || strings.Contains((*notes)[0], "4711") {
		t.Errorf("notes are %q", *notes)
	}
}

// TestGPGDecrypts runs the gpg of this machine with a new key ring.
func TestGPGDecrypts(t *testing.T) {
	program, err := exec.LookPath("gpg")
	if err != nil {
		t.Skip("this machine has no gpg")
	}
	home, err := os.MkdirTemp("", "gpg") // the path of its agent's socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program,
			append([]string{"--homedir", home, "--batch", "--quiet", "--trust-model", "always", "--pinentry-mode", "loopback",
				"--passphrase", ""}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gpg %v: %v", args, err)
		}
		return string(out)
	}
	run("", "--quick-generate-key", "host@example.com", "default", "default", "never")
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Settings{Host: h, Options: value.NewMap("gpg_keydir", home)})
	for plain, want := range map[string]string{"hunter22\n": "hunter22", "two\nlines\n\n": "two\nlines"} {
		got, ok, err := s.renderer.Decrypters["gpg"].Decrypt(t.Context(),
			run(plain, "--armor", "--encrypt", "-r", "host@example.com"))
		if got != want || !ok || err != nil {
			t.Errorf("%q is decrypted to %q, %t, %v, want %q", plain, got, ok, err, want)
		}
	}
	if text := s.Redactor.Text("it is hunter22"); text != "it is <secret>" {
		t.Errorf("not redacted: %q", text)
	}
}
