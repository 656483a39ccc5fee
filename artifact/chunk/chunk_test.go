package chunk

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

func noise(seed byte, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // never fails
	return data
}

func cutAll(t *testing.T, data []byte) [][]byte {
	t.Helper()
	var all [][]byte
	for c := NewCutter(bytes.NewReader(data), usualSize); ; {
		piece, err := c.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(piece))
	}
}

func sums(chunks [][]byte) map[Sum]bool {
	set := map[Sum]bool{}
	for _, c := range chunks {
		set[sha256.Sum256(c)] = true
	}
	return set
}

func TestChunksCoverStreamWithinSizeLimits(t *testing.T) {
	data := noise(1, 8<<20)
	chunks := cutAll(t, data)
	if !bytes.Equal(bytes.Join(chunks, nil), data) {
		t.Error("the chunks differ from the stream")
	}
	for i, c := range chunks {
		if len(c) > 4*usualSize || len(c) < usualSize/4 && i < len(chunks)-1 {
			t.Errorf("chunk %d has %d bytes", i, len(c))
		}
	}
	if average := len(data) / len(chunks); average < usualSize/2 || average > 2*usualSize {
		t.Errorf("chunks have %d bytes on average, want about %d", average, usualSize)
	}
	// Zeros have no cut point before the maximum length.
	for _, c := range cutAll(t, make([]byte, 1<<20)) {
		if len(c) != 4*usualSize {
			t.Errorf("a chunk of zeros has %d bytes", len(c))
		}
	}
}

func TestSmallChangesMakeFewNewChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes long, and its result does not depend on the user")
	}
	data := noise(2, 8<<20)
	before := sums(cutAll(t, data))
	for seed := range byte(20) {
		at := 1000 + int(seed)*400_000
		changed := bytes.Clone(data)
		changed[at]++
		changed[at+1]--
		longer := slices.Insert(bytes.Clone(data), at, 'x', 'y')
		for name, after := range map[string][]byte{"changed": changed, "inserted": longer} {
			fresh := 0
			for sum := range sums(cutAll(t, after)) {
				if !before[sum] {
					fresh++
				}
			}
			if fresh > 2 {
				t.Errorf("two bytes %s at %d make %d new chunks, want 2 at most", name, at, fresh)
			}
		}
	}
}

// tree writes files below a directory and lists them.
func tree(t *testing.T, files map[string][]byte) (*Stream, *manifest.Manifest) {
	t.Helper()
	dir := t.TempDir()
	m := &manifest.Manifest{}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		m.Entries = append(m.Entries, manifest.Entry{Name: name, Kind: manifest.File, Size: int64(len(data)),
			Digest: sha256.Sum256(data)})
	}
	m.Sort()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := NewStream(root, m)
	t.Cleanup(func() { _ = errors.Join(s.Close(), root.Close()) })
	return s, m
}

// published packs a stream into a store.
func published(t *testing.T, s store.Store, stream *Stream, known Known) (*Index, int64) {
	t.Helper()
	var pack bytes.Buffer
	x, digest, size, err := Pack(t.Context(), stream, known, &pack)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), PackKey("myapp", digest), bytes.NewReader(pack.Bytes()),
		size, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	data, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	again.release = artifact.Release{Project: "myapp", Version: "1"}
	if got, err := again.Encode(); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("an index cannot be written and read: %v", err)
	}
	return again, size
}

func TestReleaseIsRebuiltOfOldAndNewChunks(t *testing.T) {
	objects := mem.New()
	files := map[string][]byte{"empty": nil, "large": noise(1, 3<<20), "other": noise(2, 1<<20)}
	for i := range 200 {
		files[fmt.Sprintf("small%03d", i)] = noise(byte(i), 1000+i)
	}
	old, _ := tree(t, files)
	first, firstSize := published(t, objects, old, Known{})
	files["large"] = slices.Insert(bytes.Clone(files["large"]), 1<<20, 'x', 'y')
	files["small100"] = []byte("changed")
	files["new"] = noise(9, 100_000)
	next, list := tree(t, files)
	known := Known{}
	known.Add(first)
	second, size := published(t, objects, next, known)
	if size > firstSize/10 {
		t.Errorf("the second version brings %d bytes of chunks, the first %d", size, firstSize)
	}
	for name, have := range map[string][]*Stream{"nothing": nil, "the old release": {old}} {
		plan := NewPlan(second)
		for _, s := range have {
			plan.Look(t.Context(), s)
		}
		cacheFile := filepath.Join(t.TempDir(), "chunks")
		got := assembled(t, plan, objects, cacheFile)
		var want []byte
		for _, e := range list.Entries {
			want = append(want, files[e.Name]...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("with %s on the host: %d bytes with other content than the tree", name, len(got))
		}
		if have != nil && (plan.Bytes() > size+closeBy || plan.Requests() > 3) {
			t.Errorf("with %s: %d bytes in %d requests for %d new bytes", name, plan.Bytes(), plan.Requests(), size)
		}
		// Chunks that arrived are used after a restart, and no chunk is fetched twice.
		if got := assembled(t, plan, mem.New(), cacheFile); !bytes.Equal(got, want) {
			t.Errorf("with %s, after a restart: the content differs", name)
		}
	}
}

func assembled(t *testing.T, plan *Plan, from store.Store, cacheFile string) []byte {
	t.Helper()
	cache, err := plan.OpenCache(cacheFile)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	if err := plan.Fetch(t.Context(), from, cache, func(int) {}); err != nil {
		t.Fatal(err)
	}
	made, err := plan.Assemble(cache)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(made)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestChangedFilesAreNotUsed checks that a file that was changed on the host does not count as its old content.
func TestChangedFilesAreNotUsed(t *testing.T) {
	objects := mem.New()
	files := map[string][]byte{"a": noise(1, 1<<20), "b": noise(2, 1<<20), "c": noise(3, 1<<20)}
	old, _ := tree(t, files)
	x, _ := published(t, objects, old, Known{})
	if err := old.root.WriteFile("b", []byte("short"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := old.root.Remove("c"); err != nil {
		t.Fatal(err)
	}
	plan := NewPlan(x)
	plan.Look(t.Context(), old)
	if got := assembled(t, plan, objects, filepath.Join(t.TempDir(), "chunks")); !bytes.Equal(got,
		slices.Concat(files["a"], files["b"], files["c"])) {
		t.Error("the tree has other content than was published")
	}
	// A file that changes after it was read is also detected.
	if err := old.root.WriteFile("a", noise(7, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	cache, err := plan.OpenCache(filepath.Join(t.TempDir(), "chunks"))
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	if err := plan.Fetch(t.Context(), objects, cache, func(int) {}); err != nil {
		t.Fatal(err)
	}
	made, err := plan.Assemble(cache)
	if err == nil {
		_, err = io.Copy(io.Discard, made)
	}
	if !errors.Is(err, ErrChanged) {
		t.Errorf("error is %v, want the error about a changed release", err)
	}
}

func FuzzDecodeIndex(f *testing.F) {
	x := &Index{Size: usualSize, List: 10, Packs: []artifact.Digest{artifact.NewDigest([32]byte{1})},
		Chunks: []Chunk{{Length: 20, Stored: 30}, {Length: 5, Stored: 9, Offset: 100}}}
	data, err := x.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := decode(data)
		if err != nil {
			return
		}
		NewPlan(x)
		if again, err := x.Encode(); err != nil {
			t.Errorf("the index cannot be written again: %v (%d bytes)", err, len(again))
		}
	})
}

func BenchmarkCut(b *testing.B) {
	data := noise(1, 16<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		c := NewCutter(bytes.NewReader(data), usualSize)
		for {
			if _, err := c.Next(); err != nil {
				break
			}
		}
	}
}
