package attack_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mholt/archives"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// unpackAs unpacks a hostile archive as a host does if an attacker with the project's key has signed it, below a new
// directory. It returns the parent of that directory.
func unpackAs(t *testing.T, h artifacttest.Hostile, limits unpack.Limits) (parent string, err error) {
	t.Helper()
	parent = t.TempDir()
	file, err := os.Create(filepath.Join(t.TempDir(), "artifact"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(h.Data); err != nil {
		t.Fatal(err)
	}
	verified, err := trust.Verify(artifact.Release{
		Project: "myapp", Version: "1", Format: h.Format, Length: int64(len(h.Data)),
		Digest: artifact.NewDigest(sha256.Sum256(h.Data)),
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	release := filepath.Join(parent, "inner", "release")
	if err := os.MkdirAll(release, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(release)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	_, err = unpack.Into(t.Context(), verified, root, limits)
	return parent, err
}

// outside lists the files below a directory that are not in the release.
func outside(t *testing.T, parent string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(parent, func(path string, _ fs.DirEntry, err error) error {
		name, _ := filepath.Rel(parent, path)
		if name != "." && name != "inner" && name != "inner/release" && !strings.HasPrefix(name, "inner/release/") {
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// compressed returns a hostile tar archive in all other formats.
func compressed(t *testing.T, h artifacttest.Hostile) []artifacttest.Hostile {
	t.Helper()
	var all []artifacttest.Hostile
	for format, by := range map[artifact.Format]archives.Compressor{
		artifact.TarGz: archives.Gz{}, artifact.TarXz: archives.Xz{}, artifact.TarZst: archives.Zstd{},
	} {
		var b bytes.Buffer
		w, err := by.OpenWriter(&b)
		if err == nil {
			_, err = w.Write(h.Data)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, artifacttest.Hostile{Name: string(format) + ": " + h.Name, Format: format, Data: b.Bytes()})
	}
	return all
}

// everyHostile returns all hostile archives, in all five formats.
func everyHostile(t *testing.T) []artifacttest.Hostile {
	t.Helper()
	all := artifacttest.HostileZips()
	for _, h := range artifacttest.HostileTars() {
		if all = append(all, h); h.Format == artifact.Tar {
			all = append(all, compressed(t, h)...)
		}
	}
	return all
}

// TestDamagedCompression checks that a compressed archive is refused if its last bytes are missing, changed or followed
// by others, even if every entry of it can be read.
func TestDamagedCompression(t *testing.T) {
	whole := artifacttest.Hostile{Data: artifacttest.Raw(artifacttest.Block{Name: "a", Type: '0', Content: "x"})}
	for _, h := range compressed(t, whole) {
		if parent, err := unpackAs(t, h, unpack.Limits{}); err != nil {
			t.Fatalf("%s: a valid archive is refused below %s: %v", h.Format, parent, err)
		}
		flipped := bytes.Clone(h.Data)
		flipped[len(flipped)-1] ^= 1
		for damage, data := range map[string][]byte{
			"cut by a byte": h.Data[:len(h.Data)-1], "cut by half": h.Data[:len(h.Data)/2], "last bit changed": flipped,
			"followed by other bytes": append(bytes.Clone(h.Data), "other bytes"...),
		} {
			if _, err := unpackAs(t, artifacttest.Hostile{Format: h.Format, Data: data}, unpack.Limits{}); err == nil {
				t.Errorf("%s, %s: the archive was unpacked", h.Format, damage)
			}
		}
	}
}

func TestHostileArchives(t *testing.T) {
	for _, h := range everyHostile(t) {
		t.Run(h.Name, func(t *testing.T) {
			parent, err := unpackAs(t, h, unpack.Limits{})
			if err == nil {
				t.Error("the archive was unpacked")
			}
			if found := outside(t, parent); len(found) > 0 {
				t.Errorf("%v were written outside of the release", found)
			}
			var hostile *unpack.Hostile
			if errors.As(err, &hostile) && (exit.Code(err) != exit.Refused || diag.HintOf(err) == "" || hostile.Rule == "") {
				t.Errorf("%v: exit code %d, want %d, a rule and a hint", err, exit.Code(err), exit.Refused)
			}
			// A publisher gets the error before a host does.
			if _, err := unpack.Inspect(t.Context(), bytes.NewReader(h.Data), h.Format, unpack.Limits{}); err == nil {
				t.Error("the archive was accepted for publishing")
			}
		})
	}
}

func TestHostileArchivesAreRefusedByARule(t *testing.T) {
	// These archives are well-formed, so the error has to name the rule.
	for _, h := range everyHostile(t) {
		rule := false
		for _, word := range []string{"leaves", "absolute", "device", "fifo", "set", "twice", "through", "hard link",
			"attribute", "sparse file of", "deep", "overlapping", "cut at an entry"} {
			rule = rule || strings.Contains(h.Name, word)
		}
		if !rule {
			continue
		}
		_, err := unpackAs(t, h, unpack.Limits{})
		var hostile *unpack.Hostile
		if !errors.As(err, &hostile) {
			t.Errorf("%s: %v, want it refused by a rule", h.Name, err)
		}
	}
}

func TestBombs(t *testing.T) {
	artifacttest.Long(t)
	const size = 64 << 20
	for _, h := range []artifacttest.Hostile{artifacttest.Bomb(t, size), artifacttest.ZipBomb(t, size)} {
		parent, err := unpackAs(t, h, unpack.Limits{Bytes: 1 << 20})
		var hostile *unpack.Hostile
		if !errors.As(err, &hostile) || exit.Code(err) != exit.Refused {
			t.Errorf("%s: %v, want it refused", h.Name, err)
		}
		var written int64
		_ = filepath.WalkDir(parent, func(_ string, d fs.DirEntry, _ error) error {
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				written += info.Size()
			}
			return nil
		})
		if written > 2<<20 {
			t.Errorf("%s wrote %d bytes", h.Name, written)
		}
	}
}
