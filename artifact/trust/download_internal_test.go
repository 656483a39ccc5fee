package trust

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// TestBlocksOfOtherBytesAreRefused downloads an artifact with a list of blocks that was signed for other content of the
// same length. Each block matches its list, so only the digest of the whole detects the wrong content.
func TestBlocksOfOtherBytesAreRefused(t *testing.T) {
	signed := bytes.Repeat([]byte("signed"), smallestBlock/2)
	other := bytes.Repeat([]byte("others"), smallestBlock/2)
	release := artifact.Release{Project: "myapp", Version: "1", Digest: artifact.NewDigest(sha256.Sum256(signed)),
		Length: int64(len(signed))}
	list, err := MakeBlocks(bytes.NewReader(other), release.Length)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := ParseBlocks(&Signed{release: release, kind: KindBlocks, data: list})
	if err != nil {
		t.Fatal(err)
	}
	s := mem.New()
	key, body := ObjectKey(release), bytes.NewReader(other)
	if _, err := s.Put(t.Context(), key, body, release.Length, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "part"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := (&Client{store: s, set: &tuf.Set{}}).Download(t.Context(), blocks, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var refused *Refused
	if _, err := io.Copy(io.Discard, v.Reader()); !errors.As(err, &refused) || refused.Check != CheckDigest {
		t.Errorf("the artifact with other bytes was read: %v, want a refused digest", err)
	}
}
