package ledger_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestFieldsOfANewerAgentSurviveARewrite loads the ledger of a newer agent, changes it as a run does, and saves it:
// unknown fields stay in their objects.
func TestFieldsOfANewerAgentSurviveARewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.json")
	written := `{"version": 1, "cohort": "canary", "host": {"store": "s3://b", "zone": "blue"},
  "good": {"service": {"project": "myapp", "version": "1", "digest": "sha256:aa", "length": 1, "format": "tar.zst", "units": ["a.service"]}, "weight": 12345678901234567890},
  "bad": [{"pair": {"service": {"project": "myapp", "version": "0", "digest": "sha256:cc", "length": 1, "format": "tar.zst"}}, "reason": "r", "run": "x", "at": "2026-01-01T00:00:00Z", "unit": "b.service"}]}`
	if err := os.WriteFile(path, []byte(written), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Host.Service = "myapp"
	l.Deployed(ledger.Pair{Service: artifact.Release{Project: "myapp", Version: "2", Digest: "sha256:bb"}}, time.Now())
	if err := l.Save(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"cohort": "canary"`, `"zone": "blue"`, `"a.service"`, `"weight": 12345678901234567890`,
		`"unit": "b.service"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is lost:\n%s", want, data)
		}
	}
	if again, err := ledger.Load(path); err != nil || again.Good.Service.Version != "2" ||
		again.Previous.Service.Version != "1" || again.Host.Service != "myapp" {
		t.Errorf("the ledger is %+v, %v", again, err)
	}
}

func TestFieldsOfAPairAreRemovedWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.json")
	if err := os.WriteFile(path, []byte(`{"version": 1, "hold": {"since": "2026-01-01T00:00:00Z", "until": "2027"}}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Hold = nil
	if err := l.Save(path); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), "until") {
		t.Errorf("after the hold was removed, the ledger is %s, %v", data, err)
	}
}

func TestEmptyAndZeroFilledLedgersAreCorrupt(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "zeros": "\x00\x00\x00\x00", "blank": "\n",
		"truncated": `{"version": 1, "go`} {
		path := filepath.Join(t.TempDir(), "ledger.json")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ledger.Load(path); err == nil {
			t.Errorf("%s: Load returned no error", name)
		}
	}
}
