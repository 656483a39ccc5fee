package session

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"filippo.io/age/armor"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestMissingAgeKeyHint checks the hint on a host without an age key. It asks for the key that the value was encrypted
// for, since a new key cannot decrypt it.
func TestMissingAgeKeyHint(t *testing.T) {
	d := &ageDecrypter{host: &host.Host{Files: noFiles{}}}
	_, _, err := d.Decrypt(context.Background(), armor.Header+"\n")
	if err == nil || !strings.Contains(err.Error(), AgeKeyFile) {
		t.Fatalf("the error is %v", err)
	}
	if hint := diag.HintOf(err); !strings.Contains(hint, "that the values were encrypted for") ||
		strings.Contains(hint, "make a key") {
		t.Errorf("hint %q", hint)
	}
}

// noFiles is a host.Files without any file.
type noFiles struct{ host.Files }

func (noFiles) ReadFile(string) ([]byte, error) { return nil, fs.ErrNotExist }
