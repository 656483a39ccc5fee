package ledger_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
)

// FuzzLoad reads arbitrary bytes as a ledger. Refused bytes are reported as corrupt, so that the next run restores the
// ledger; an accepted ledger does not change when it is written, read and written again.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(
		`{"version": 1, "good": {"service": {"project": "myapp", "version": "1", "digest": "sha256:aa", "length": 1, ` +
			`"format": "tar.zst"}}, "later": {"a": [1e3]}}`))
	f.Add([]byte(
		`{"version": 2, "bad": [{"pair": {"service": null}, "reason": "r", "at": "2026-01-01T00:00:00Z"}], ` +
			`"withdrawn": [{}]}`))
	f.Add([]byte(`{"good": {"service": {}, "service": {"units": [null]}}, "GOOD": {}}`))
	f.Add([]byte("\x00\x00"))
	f.Add([]byte(`null`))
	f.Add([]byte(`[]`))
	path := filepath.Join(f.TempDir(), "ledger.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *ledger.Corrupt
		l, err := ledger.Load(path)
		if err != nil {
			if !errors.As(err, &corrupt) {
				t.Fatalf("%v is not reported as corrupt", err)
			}
			return
		}
		first, err := l.Content()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, first, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := ledger.Load(path)
		if err != nil {
			t.Fatalf("the written ledger is refused: %v\n%s", err, first)
		}
		second, err := again.Content()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v; written\n%s\nand then\n%s", err, first, second)
		}
		if again.Good != nil {
			again.IsWithdrawn(*again.Good)
			again.Deployed(*again.Good, time.Unix(0, 0))
		}
	})
}
