package leaks_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/corpus-agent/corpus-agent/packaging/leaks"
)

func scanner(t *testing.T) *leaks.Scanner {
	t.Helper()
	s, err := leaks.New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scan scans a text as the content of a file with a name.
func scan(t *testing.T, s *leaks.Scanner, name, text string) []leaks.Finding {
	t.Helper()
	found, err := s.File(t.Context(), strings.NewReader(text), name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// key returns a text in the form of a private key.
func key(kind string) string {
	line := strings.Repeat("MIIEvQIBADANBgkq", 4)
	return "-----BEGIN " + kind + "-----\n" + line + "\n" + line + "\n-----END " + kind + "-----\n"
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

func TestSecretsInFilesAreFound(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.Marshal(map[string]string{"key": key("PRIVATE KEY")})
	if err != nil {
		t.Fatal(err)
	}
	s := scanner(t)
	for name, c := range map[string]struct {
		text, rule string
		line       int
	}{
		"a key of age":  {"# created: today\n" + identity.String() + "\n", "age-secret-key", 2},
		"a key of PGP":  {"exported\n" + key("PGP PRIVATE KEY BLOCK"), "private-key", 2},
		"a key in YAML": {"tls:\n  key: |\n" + indented(key("RSA PRIVATE KEY")), "private-key", 3},
		"a key in JSON": {string(inJSON), "private-key", 1},
		"a key after attributes": {"Bag Attributes\n    localKeyID: 01\nKey Attributes: <No Attributes>\n" +
			key("PRIVATE KEY"), "private-key", 4},
		"a key after 70 KiB": {strings.Repeat("a line of text\n", 5000) + key("OPENSSH PRIVATE KEY"), "private-key",
			5001},
		"a key after 20 MiB": {strings.Repeat("a line of text!\n", 20<<16) + key("EC PRIVATE KEY"), "private-key",
			20<<16 + 1},
		"a key across two pieces": {strings.Repeat("a line of text!\n", 8<<16-3) + key("EC PRIVATE KEY"), "private-key",
			8<<16 - 2},
		"a key that is cut": {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "private-key", 1},
		"a key of PuTTY":    {"PuTTY-User-Key-File-3: ssh-ed25519\n", "private-key", 1},
		"a token of GitHub": {"export T=ghp_" + strings.Repeat("a1B2c3D4e", 4) + "\n", "github-pat", 1},
		"a key of AWS":      {"id: AKIA" + "Q3EGB7SWYHL4TZVN" + "\n", "aws-access-token", 1},
	} {
		found := scan(t, s, "conf/data.txt", c.text)
		if len(found) != 1 || found[0].Rule != c.rule || found[0].Line != c.line {
			t.Errorf("%s: found %+v, want %s in line %d", name, found, c.rule, c.line)
		}
	}
}

// TestSecretsInBinaryFilesAreFound checks that the text at the beginning of binary files is scanned.
func TestSecretsInBinaryFilesAreFound(t *testing.T) {
	s := scanner(t)
	token := "ghp_" + strings.Repeat("a1B2c3D4e", 4)
	wide := "\xff\xfe"
	for _, c := range "token: " + token + "\r\n" {
		wide += string(c) + "\x00"
	}
	const program = "\x7fELF\x02\x01\x00\x00"
	for name, c := range map[string]struct{ text, rule string }{
		"a token in a program": {program + "\x90\x00" + token + "\x00\xff", "github-pat"},
		"a token after 20 MiB": {program + strings.Repeat("\x00\x01\x80\xff", 5<<20) + token + "\x00",
			"github-pat"},
		"a token in UTF-16": {wide, "github-pat"},
		"a key in a database": {"SQLite format 3\x00\x10\x00" + key("OPENSSH PRIVATE KEY") + "\x00",
			"private-key"},
		"a token beyond the searched part": {program + strings.Repeat("\x00", 65<<20) + token + "\x00", ""},
		"a program with only the marks": {program +
			"\x00-----BEGIN RSA PRIVATE KEY----------END RSA PRIVATE KEY-----" + strings.Repeat("GetProcessMemoryInfo", 10) +
			"-----END EC PRIVATE KEY-----\x00", ""},
	} {
		found := scan(t, s, "data.bin", c.text)
		if c.rule == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Rule != c.rule || found[0].Line != 0 {
			t.Errorf("%s: found %+v, want %s without a line", name, found, c.rule)
		}
	}
}

func TestNamesOfSecretsAreFound(t *testing.T) {
	s := scanner(t)
	for _, name := range []string{
		".git-credentials", "home/.docker/config.json", ".vault-token", "infra/terraform.tfstate", "terraform.tfstate.backup",
		"id_ecdsa_sk", "server.key.bak",
		"server.key.bak.1", "Server.KEY~", "prod.env", "Prod.Env", ".ENV", ".env.production", "ID_RSA", "deploy/ID_ed25519",
		".kube/config", ".NETRC", "x.PFX",
		"keys/a.ppk", "db.kdbx.old", "credentials.json", "host.keytab",
	} {
		if found := scan(t, s, name, "some text\n"); len(found) != 1 || found[0].Rule != "name" {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	for _, name := range []string{".env.example", "example.env", "prod.env.j2", "config.json", "docker/config.json",
		"environment", "keys.md", "cacert.pem", "monkey.py", "tfstate.go"} {
		if found := scan(t, s, name, "some text\n"); len(found) != 0 {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	for name, text := range map[string]string{
		"ca.pem": "# the root\n" + key("CERTIFICATE"), "repo.key": key("PGP PUBLIC KEY BLOCK"),
		"dh.pem": key("DH PARAMETERS"),
		"docs/keys.md": "A key is between -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY-----, as the manual says " +
			"it in many more words.\n",
		"code.py": "HEAD = '-----BEGIN PRIVATE KEY-----'\nTAIL = '-----END PRIVATE KEY-----'\n" +
			strings.Repeat("x = 1\n", 20),
		"secret.sls": "password: |\n  " + strings.ReplaceAll(key("PGP MESSAGE"), "\n", "\n  "),
	} {
		if found := scan(t, s, name, text); len(found) != 0 {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestOrdinaryTreesHaveNoFindings packs ordinary trees: states, formulas and documents that mention passwords and keys.
func TestOrdinaryTreesHaveNoFindings(t *testing.T) {
	s := scanner(t)
	files := 0
	for _, tree := range []string{"../../testdata/demo", "../../testdata/salt", "../../testdata/modules",
		"../../testdata/jinja", "../../docs", "../../state/module"} {
		err := filepath.WalkDir(tree, func(file string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			files++
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			found, err := s.File(t.Context(), bytes.NewReader(data), filepath.ToSlash(file))
			if len(found) > 0 {
				t.Errorf("%s: %+v", file, found)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if files < 300 {
		t.Errorf("%d files were scanned", files)
	}
}
