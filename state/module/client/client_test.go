package client_test

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module/client"
)

func TestWithoutLogins(t *testing.T) {
	for text, want := range map[string]string{
		"at https://me:s3cret@example.org/x and git+ssh://u:p@h/": "at https://example.org/x and git+ssh://h/",
		"plain":                        "plain",
		"https://example.org/@scope/x": "https://example.org/@scope/x",
	} {
		if got := client.WithoutLogins(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
