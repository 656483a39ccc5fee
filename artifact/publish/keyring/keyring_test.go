package keyring_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestPassphraseIsRequestedOnce(t *testing.T) {
	requests := 0
	locks := &keyring.Locks{Passphrase: true, WorkFactor: 10, Ask: func(_ string, anew bool) (string, error) {
		requests++
		if !anew {
			t.Error("the passphrase of a new key was requested as for an existing key")
		}
		return "correct horse", nil
	}}
	ring := keyring.Ring{Dir: t.TempDir(), Locks: locks}
	for _, role := range []string{"root", "targets"} {
		if _, err := ring.New(role, 2); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if keys, err := ring.Keys("root"); err != nil || len(keys) != 2 || keys[0].ID == keys[1].ID {
			t.Fatalf("the keys are %v, %v", keys, err)
		}
	}
	if requests != 1 {
		t.Errorf("the passphrase was requested %d times, want once", requests)
	}
	// A wrong passphrase opens nothing.
	ring.Locks = &keyring.Locks{Ask: func(string, bool) (string, error) { return "battery staple", nil }}
	if _, err := ring.Keys("root"); err == nil || diag.HintOf(err) == "" || strings.Contains(err.Error(), "battery") {
		t.Errorf("with another passphrase: %v, want an error with a hint and without the passphrase", err)
	}
	ring.Locks = nil
	if _, err := ring.Keys("root"); err == nil {
		t.Error("an encrypted key was read without a passphrase")
	}
}

func TestRolesThatLookNumberedAreRoles(t *testing.T) {
	ring := keyring.Ring{Dir: t.TempDir()}
	for _, role := range []string{"app-2", "web", "web-2"} {
		if _, err := ring.New(role, 1); err != nil {
			t.Fatal(err)
		}
	}
	list, err := ring.List()
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, k := range list {
		roles = append(roles, k.Role)
	}
	// web-2 cannot be distinguished from the second key of web, but app-2 can.
	if got := strings.Join(roles, " "); got != "app-2 web web" {
		t.Errorf("the roles are %q", got)
	}
}

func TestVariablesAreNamedAfterRoles(t *testing.T) {
	for role, want := range map[string]string{"root": "CORPUS_KEY_ROOT", "my-app.v2": "CORPUS_KEY_MY_APP_V2",
		"Web_1": "CORPUS_KEY_WEB_1"} {
		if got := keyring.EnvName(role); got != want {
			t.Errorf("the variable of %s is %s, want %s", role, got, want)
		}
	}
}

// FuzzKeys parses private keys from any text: it must not panic, and no error may contain the text.
func FuzzKeys(f *testing.F) {
	dir := f.TempDir()
	if _, err := (keyring.Ring{Dir: dir}).New("root", 1); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "root.key"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("awskms:alias/root"))
	f.Add([]byte("-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n"))
	f.Add(bytes.ReplaceAll(good, []byte("\n"), nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		ring := keyring.Ring{Env: func(string) string { return string(data) }, Locks: &keyring.Locks{}}
		keys, err := ring.Keys("root")
		if err == nil && len(data) > 0 && len(keys) == 0 {
			t.Error("the text has a key, but no key was read")
		}
		if err != nil && len(data) > 40 && strings.Contains(err.Error(), string(data[20:40])) {
			t.Errorf("the error contains the text: %v", err)
		}
	})
}

// TestDamagedKeyFileNamesItsCure reads key files that contain no key.
func TestDamagedKeyFileNamesItsCure(t *testing.T) {
	for _, content := range []string{"", "garbage", "-----BEGIN PRIVATE KEY-----\nAAAA",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		for name, command := range map[string]string{"timestamp.key": "corpus keys rotate timestamp",
			"targets-2.key": "corpus keys rotate targets", "myapp.key": "docs/trust.md"} {
			file := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := keyring.Ring{}.File(file)
			hint := diag.HintOf(err)
			for _, want := range []string{"from a backup", "mv " + file + " " + file + ".damaged", command} {
				if !strings.Contains(hint, want) {
					t.Errorf("%q in %s: %v, hint %q, want %q in it", content, name, err, hint, want)
				}
			}
		}
	}
}
