package fetch

import (
	"errors"
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// TestTreeWithAnotherDigestIsRefused gives the list of another tree than the one that the publisher signed, as a host
// has it after chunks of something else were put together.
func TestTreeWithAnotherDigestIsRefused(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	release, err := client.Resolve(t.Context(), artifact.Ref{Project: "myapp", Channel: "testing"})
	if err != nil {
		t.Fatal(err)
	}
	f := &Fetcher{Held: Held{Layout: layout.At(t.TempDir())}, Client: client}
	var refused *trust.Refused
	if err := f.keepTree(release, &manifest.Manifest{}); !errors.As(err, &refused) || refused.Check != trust.CheckDigest {
		t.Errorf("an empty tree in place of %s: %v, want the digest refused", release, err)
	}
	if _, err := os.Stat(f.Layout.Tree(release.Project, release.Dir())); !os.IsNotExist(err) {
		t.Errorf("the list of the refused tree was kept: %v", err)
	}
}
