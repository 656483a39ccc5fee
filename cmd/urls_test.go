package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestURLsAreRedactedInOnePlace checks that only state/redact removes credentials from URLs: the functions of net/url
// keep a password that was not escaped and the tokens of a query, as other implementations did.
func TestURLsAreRedactedInOnePlace(t *testing.T) {
	byHand := regexp.MustCompile(`\.Redacted\(\)|\.User = (nil|url)|url\.(User|UserPassword)\(|` +
		`://[^"` + "`" + `]*\[\^[^"` + "`" + `]*@|"xxxxx`)
	allowed := map[string]bool{
		"state/redact/url.go":   true,
		"state/redact/forms.go": true,
	}
	for _, top := range []string{"agent", "artifact", "cmd", "grains", "packaging", "state"} {
		err := filepath.WalkDir("../"+top, func(path string, _ os.DirEntry, err error) error {
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			for i, line := range strings.Split(string(data), "\n") {
				code, _, _ := strings.Cut(line, " //")
				if byHand.MatchString(code) && !allowed[name] {
					t.Errorf("%s:%d: use redact.URLs or redact.Login: %s", name, i+1, strings.TrimSpace(line))
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
