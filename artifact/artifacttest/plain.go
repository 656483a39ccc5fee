package artifacttest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// PlainTar packs regular files without compressing them.
func PlainTar(t *testing.T, files Files) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644,
			Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		must(io.WriteString(w, files[name]))(t)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Boundaries returns the offsets in a plain archive at which an entry ends. Many readers accept an archive that was cut
// there as complete.
func Boundaries(archive []byte) []int {
	var cuts []int
	r := bytes.NewReader(archive)
	for entries := tar.NewReader(r); ; {
		h, err := entries.Next()
		if err != nil {
			return cuts
		}
		at := len(archive) - r.Len() + int(h.Size)
		cuts = append(cuts, (at+511)/512*512)
	}
}

// ReleaseFile publishes an archive as a version and points a channel at it.
func (r *Repo) ReleaseFile(project, version, channel, file string) artifact.Release {
	r.t.Helper()
	return must(releases.Publish(r.t.Context(), r.Publisher, releases.Request{Project: project, Version: version,
		File: file, Channel: channel}))(r.t)
}

// Sign adds a target to a role and returns its digest.
func (f *Forger) Sign(role *trust.Role, target string, data []byte) artifact.Digest {
	f.repo.t.Helper()
	sum := sha256.Sum256(data)
	file := tuf.TargetFile()
	file.Length, file.Hashes = int64(len(data)), tuf.Hashes{"sha256": sum[:]}
	role.Signed.Targets[target] = file
	role.Signed.Version++
	return artifact.NewDigest(sum)
}
