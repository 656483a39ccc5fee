package packaging

import (
	"bytes"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// secretNames are patterns of file names that hold secrets more often than not.
func secretNames() []string {
	return []string{
		".env", ".env.*", "*.key", "*.pem", "*.p12", "*.pfx", "*.jks", "*.kdbx", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
		"credentials", "credentials.json", ".netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".htpasswd", "*.ovpn",
	}
}

// harmless are names that fit those patterns and hold examples or certificates.
func harmless() []string {
	return []string{".env.example", ".env.sample", ".env.template", "cacert.pem"}
}

// looksSecret says why a file looks like a secret, or "". A certificate is none.
func looksSecret(file, name string, size int64) string {
	base := path.Base(name)
	if slices.Contains(harmless(), base) {
		return ""
	}
	head := start(file, size)
	if bytes.Contains(head, []byte("PRIVATE KEY-----")) && bytes.HasPrefix(bytes.TrimSpace(head), []byte("-----BEGIN")) {
		return "it holds a private key"
	}
	if bytes.HasPrefix(head, []byte("-----BEGIN CERTIFICATE")) || bytes.HasPrefix(head, []byte("-----BEGIN PUBLIC KEY")) {
		return ""
	}
	for _, pattern := range secretNames() {
		if ok, err := path.Match(pattern, base); err == nil && ok {
			return "its name is that of a secret"
		}
	}
	return ""
}

// keySize is more than any private key in text takes.
const keySize = 64 << 10

// start is what a small file begins with; a large one is no key.
func start(file string, size int64) []byte {
	if size > keySize || size == 0 {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil // packing it will say so
	}
	defer f.Close()
	head := make([]byte, 128)
	n, err := io.ReadFull(f, head)
	if err != nil && n == 0 {
		return nil
	}
	return head[:n]
}

// leaves reports whether a pattern leaves a path out: one without a slash fits names anywhere.
func leaves(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		subject := name
		if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
			subject = path.Base(name)
		}
		ok, err := path.Match(strings.Trim(pattern, "/"), subject)
		return err == nil && ok
	})
}
