package unpack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
)

// unpacked unpacks an archive as a host does, after verifying it.
func unpacked(t *testing.T, archive []byte, format artifact.Format, limits unpack.Limits) (string, error) {
	t.Helper()
	dir, _, err := unpackedInto(t, archive, format, limits)
	return dir, err
}

// unpackedTree unpacks a valid archive and returns the list of its content.
func unpackedTree(t *testing.T, archive []byte) *manifest.Manifest {
	t.Helper()
	_, made, err := unpackedInto(t, archive, artifact.TarZst, unpack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Tree
}

func unpackedInto(t *testing.T, archive []byte,
	format artifact.Format, limits unpack.Limits) (string, unpack.Unpacked, error) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "artifact"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(archive); err != nil {
		t.Fatal(err)
	}
	verified, err := trust.Verify(artifact.Release{
		Project: "myapp", Version: "1", Format: format, Length: int64(len(archive)), Digest: digest(archive),
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "release")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	made, err := unpack.Into(context.Background(), verified, root, limits)
	return dir, made, err
}

// tree lists the names below a directory with their modes, and the targets of links.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil || name == "." {
			return err
		}
		b.WriteString(info.Mode().String() + " " + name)
		if target, err := os.Readlink(path); err == nil {
			b.WriteString(" -> " + target)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReleaseIsReadOnlyExceptWritablePaths(t *testing.T) {
	dir, err := unpacked(t, artifacttest.Archive(t, artifacttest.Files{
		"bin/":                      "",
		"bin/run":                   "#!/bin/sh\n",
		"app/config":                "a=1\n",
		"cache/deep/entry":          "x",
		"cache/tool":                "#!/bin/sh\n",
		"current":                   "-> bin/run",
		"salt/config/pillar/secret": "s",
		"corpus.yaml":               "writable:\n  - cache\n",
	}), artifact.TarZst, unpack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimLeft(`
drwxr-xr-x app
-r--r--r-- app/config
drwxr-xr-x bin
-r-xr-xr-x bin/run
drwxr-xr-x cache
drwxr-xr-x cache/deep
-rw-r--r-- cache/deep/entry
-rwxr-xr-x cache/tool
-r--r--r-- corpus.yaml
Lrwxrwxrwx current -> bin/run
drwxr-xr-x salt
drwxr-xr-x salt/config
drwx------ salt/config/pillar
-r--r--r-- salt/config/pillar/secret
`, "\n")
	if got := tree(t, dir); got != want {
		t.Errorf("the release is\n%swant\n%s", got, want)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Errorf("a release cannot be removed: %v", err)
	}
}

// TestProjectWithProceduresIsReadOnly uses both forms of the earlier default, which gave the whole release to its user.
func TestProjectWithProceduresIsReadOnly(t *testing.T) {
	for _, recipe := range []string{"", "writable: [.]\n", "writable: [.salt, app]\n"} {
		files := artifacttest.Files{".salt/install.sls": "a: test.nop", "app": "x"}
		if recipe != "" {
			files["corpus.yaml"] = recipe
		}
		dir, err := unpacked(t, artifacttest.Archive(t, files), artifact.TarZst, unpack.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got := tree(t, dir)
		if free := strings.Contains(got, "-rw-r--r-- app\n"); free != strings.Contains(recipe, "app") ||
			strings.Contains(got, "-rw-r--r-- .salt") {
			t.Errorf("with the recipe %q, the release is\n%s", recipe, got)
		}
	}
}

func TestReleaseWithWritableCode(t *testing.T) {
	dir, err := unpacked(t, artifacttest.Archive(t, artifacttest.Files{".salt/install.sls": "a: test.nop", "app": "x",
		"corpus.yaml": "writable: [.]\nwritable_code: true\n"}), artifact.TarZst, unpack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := tree(t, dir); !strings.Contains(got, "-rw-r--r-- app\n") {
		t.Errorf("a release with writable_code is not writable:\n%s", got)
	}
}

func TestOtherFormatsAreReadToo(t *testing.T) {
	plain := plainTar(t, "app", "hello")
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	formats := map[artifact.Format][]byte{artifact.TarGz: gz.Bytes()}
	if xz, err := exec.LookPath("xz"); err == nil {
		cmd := exec.Command(xz, "-c")
		cmd.Stdin = bytes.NewReader(plain)
		packed, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		formats[artifact.TarXz] = packed
	}
	for format, data := range formats {
		dir, err := unpacked(t, data, format, unpack.Limits{})
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, "app")); err != nil || string(got) != "hello" {
			t.Errorf("%s: app has %q, %v", format, got, err)
		}
	}
}

func plainTar(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644,
		Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// entry returns an entry for the hostile table.
func entry(kind byte, name, link string) artifacttest.Entry {
	e := artifacttest.Entry{Header: tar.Header{Typeflag: kind, Name: name, Linkname: link, Mode: 0o644}}
	if kind == tar.TypeReg {
		e.Content = "x"
	}
	return e
}

func TestHostileArchivesAreRefused(t *testing.T) {
	file, dir, sym, hard := byte(tar.TypeReg), byte(tar.TypeDir), byte(tar.TypeSymlink), byte(tar.TypeLink)
	mode := func(m int64) artifacttest.Entry {
		e := entry(file, "tool", "")
		e.Mode = m
		return e
	}
	records := func(key, v string) artifacttest.Entry {
		e := entry(file, "app", "")
		e.PAXRecords, e.Format = map[string]string{key: v}, tar.FormatPAX
		return e
	}
	cases := map[string][]artifacttest.Entry{
		"absolute name":                    {entry(file, "/etc/passwd", "")},
		"name that leaves":                 {entry(file, "../evil", "")},
		"name that leaves in the middle":   {entry(file, "a/../../evil", "")},
		"name with dots that stays":        {entry(file, "a/../b", "")},
		"name twice":                       {entry(file, "a", ""), entry(file, "a", "")},
		"name twice, written otherwise":    {entry(file, "a", ""), entry(file, "./a", "")},
		"file over a link":                 {entry(sym, "a", "b"), entry(file, "a", "")},
		"file over a directory":            {entry(dir, "a/", ""), entry(file, "a", "")},
		"link over a directory":            {entry(file, "a/b", ""), entry(sym, "a", "c")},
		"below a link":                     {entry(dir, "real/", ""), entry(sym, "a", "real"), entry(file, "a/b", "")},
		"below a file":                     {entry(file, "a", ""), entry(file, "a/b", "")},
		"absolute link":                    {entry(sym, "a", "/etc")},
		"link that leaves":                 {entry(sym, "a", "../x")},
		"link that leaves deeper":          {entry(sym, "d/a", "../../x")},
		"link that leaves through another": {entry(sym, "d/up", ".."), entry(sym, "a", "d/up/../x")},
		"link that leaves by a chain":      {entry(sym, "a/b", ".."), entry(sym, "c", "a/b/.."), entry(file, "z", "")},
		"link to nothing":                  {entry(sym, "a", "")},
		"hard link to outside":             {entry(hard, "a", "/etc/passwd")},
		"hard link that leaves":            {entry(hard, "a", "../x")},
		"hard link to a later file":        {entry(hard, "a", "b"), entry(file, "b", "")},
		"hard link to a link":              {entry(sym, "l", "x"), entry(hard, "a", "l")},
		"hard link to itself":              {entry(hard, "a", "a")},
		"device":                           {entry(tar.TypeChar, "null", "")},
		"block device":                     {entry(tar.TypeBlock, "sda", "")},
		"fifo":                             {entry(tar.TypeFifo, "pipe", "")},
		"setuid":                           {mode(0o4755)},
		"setgid":                           {mode(0o2755)},
		"sticky":                           {mode(0o1777)},
		"extended attribute":               {records("SCHILY.xattr.security.capability", "x")},
		"long part of a name":              {entry(file, strings.Repeat("a", 256), "")},
		"too deep":                         {entry(file, strings.Repeat("a/", 70)+"b", "")},
	}
	for name, entries := range cases {
		t.Run(name, func(t *testing.T) {
			archive := artifacttest.Pack(t, entries...)
			_, err := unpacked(t, archive, artifact.TarZst, unpack.Limits{})
			var hostile *unpack.Hostile
			if !errors.As(err, &hostile) {
				t.Errorf("error is %v, want it refused", err)
			}
			if _, err := unpack.Inspect(context.Background(), bytes.NewReader(archive),
				artifact.TarZst, unpack.Limits{}); !errors.As(err, &hostile) {
				t.Errorf("the error of a publisher is %v, want that of a host", err)
			}
		})
	}
}

func TestLimitsStopAnArchive(t *testing.T) {
	archive := artifacttest.Archive(t, artifacttest.Files{"a": "12345", "b": "12345", "c/d": "1"})
	for name, limits := range map[string]unpack.Limits{
		"bytes": {Bytes: 9}, "files": {Files: 2}, "depth": {Depth: 1},
	} {
		var hostile *unpack.Hostile
		if _, err := unpacked(t, archive, artifact.TarZst, limits); !errors.As(err, &hostile) {
			t.Errorf("limit of %s: %v, want it refused", name, err)
		}
	}
}

func TestDamagedArchivesAreErrors(t *testing.T) {
	good := artifacttest.Archive(t, artifacttest.Files{"a": strings.Repeat("12345", 10000)})
	for name, data := range map[string][]byte{"interrupted": good[:len(good)/2], "empty": nil, "text": []byte("hello")} {
		if _, err := unpacked(t, data, artifact.TarZst, unpack.Limits{}); err == nil {
			t.Errorf("an archive that is %s was unpacked", name)
		}
	}
}

func FuzzInspectNeverPanicsOrHangs(f *testing.F) {
	f.Add(artifacttest.Archive(&testing.T{}, artifacttest.Files{"a/b": "x", "l": "-> a/b"}))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		limits := unpack.Limits{Bytes: 1 << 20, Files: 1000}
		_, _ = unpack.Inspect(context.Background(), bytes.NewReader(data), artifact.TarZst, limits)
	})
}
