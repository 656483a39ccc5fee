package unpack_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
)

// manyFiles returns files of all sizes that are written differently: empty, a few bytes, a size that fills a batch, one
// that is written while it is read, and one that is written to disk early.
func manyFiles() artifacttest.Files {
	files := artifacttest.Files{}
	random := rand.NewChaCha8([32]byte{1})
	for i := range 700 {
		size := []int{0, 1, 5000, 20_000, 128 << 10, 128<<10 + 1}[i%6]
		if i == 350 {
			size = 20 << 20
		}
		data := make([]byte, size)
		_, _ = random.Read(data) // never fails
		files[fmt.Sprintf("dir%d/sub%d/file%d", i%3, i/100, i)] = string(data)
	}
	return files
}

func TestUnpackedFilesMatchPackedFiles(t *testing.T) {
	artifacttest.Long(t)
	files := manyFiles()
	dir, err := unpacked(t, artifacttest.Archive(t, files), artifact.TarZst, unpack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Fatalf("%s has %d bytes, want its content of %d bytes, %v", name, len(got), len(want), err)
		}
	}
}

func TestListNamesEveryFileByItsDigest(t *testing.T) {
	files := manyFiles()
	tree := unpackedTree(t, artifacttest.Archive(t, files))
	seen := 0
	for _, e := range tree.Entries {
		if e.Kind != manifest.File {
			continue
		}
		seen++
		if want := sha256.Sum256([]byte(files[e.Name])); e.Digest != want {
			t.Errorf("%s: the list has %x, want %x", e.Name, e.Digest, want)
		}
	}
	if seen != len(files) {
		t.Errorf("the list has %d files, want %d", seen, len(files))
	}
}

// TestModesDoNotDependOnTheMask unpacks with a restrictive umask.
func TestModesDoNotDependOnTheMask(t *testing.T) {
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	dir, err := unpacked(t, artifacttest.Archive(t, artifacttest.Files{"a": "x", "dir/sub/": "", "other/a": "x",
		"pillar/a": "x", "run": "#!/bin/sh\n", "large": strings.Repeat("x", 1<<20)}), artifact.TarZst, unpack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tree(t, dir), `-r--r--r-- a
drwxr-xr-x dir
drwxr-xr-x dir/sub
-r--r--r-- large
drwxr-xr-x other
-r--r--r-- other/a
drwx------ pillar
-r--r--r-- pillar/a
-r-xr-xr-x run
`; got != want {
		t.Errorf("the release is\n%swant\n%s", got, want)
	}
}
