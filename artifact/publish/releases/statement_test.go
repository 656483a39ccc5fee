package releases_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

func TestStatementsOfArtifactAreSigned(t *testing.T) {
	t.Parallel()
	p := artifacttest.Publisher(t, mem.New())
	file := artifacttest.App(t, "one")
	stem := strings.TrimSuffix(file, ".tar.zst")
	write := func(kind trust.Kind, text string) {
		if err := os.WriteFile(stem+"."+string(kind), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	publishIt := func() error {
		_, err := releases.Publish(t.Context(), p, releases.Request{Project: "myapp", Version: "1", File: file,
			Channel: "testing"})
		return err
	}
	write(trust.KindSPDX, `{"packages": []}`)
	write(trust.KindProvenance, `{"subject": [{"digest": {"sha256": "00"}}]}`)
	var mistake *publish.Mistake
	if err := publishIt(); !errors.As(err, &mistake) || !strings.Contains(err.Error(), "is about other bytes than") {
		t.Fatalf("a provenance of other bytes: %v", err)
	}
	write(trust.KindProvenance, `nonsense`)
	if err := publishIt(); !errors.As(err, &mistake) || !strings.Contains(err.Error(), "is not JSON") {
		t.Fatalf("a damaged provenance: %v", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(data)
	write(trust.KindProvenance, `{"sha256": "`+hex.EncodeToString(digest[:])+`"}`)
	if err := publishIt(); err != nil {
		t.Fatal(err)
	}
	c := artifacttest.Client(t, p)
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	statements := list[0].Statements["1"]
	if len(statements) != 2 || statements[0].Kind != trust.KindSPDX || statements[1].Kind != trust.KindProvenance {
		t.Fatalf("the store has the statements %+v", statements)
	}
	signed, err := c.FetchSidecar(t.Context(), list[0].Releases[0], trust.KindSPDX)
	if err != nil || string(signed.Data()) != `{"packages": []}` {
		t.Errorf("the fetched statement is %v, %v", signed, err)
	}
}
