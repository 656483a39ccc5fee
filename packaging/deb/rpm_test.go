package deb_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/packaging/deb"
	"github.com/corpus-agent/corpus-agent/packaging/installed"
)

// Numbers of tags in rpm's documentation.
const (
	tagName, tagVersion, tagRelease, tagSummary, tagDescription         = 1000, 1001, 1002, 1004, 1005
	tagBuildTime, tagBuildHost, tagLicense, tagURL, tagOS, tagArch      = 1006, 1007, 1014, 1020, 1021, 1022
	tagPreInstall, tagPostRemove                                        = 1023, 1026
	tagPostInstall, tagPreRemove, tagModes, tagTimes, tagLinks          = 1024, 1025, 1030, 1034, 1036
	tagOwners, tagGroups, tagRequires, tagDirIndexes, tagNames, tagDirs = 1039, 1040, 1049, 1116, 1117, 1118
	tagCompressor                                                       = 1125
)

// header has the texts and numbers in the header of an rpm, by tag.
type header struct {
	texts   map[int][]string
	numbers map[int][]int64
}

// readHeader parses a header section and returns its length. Its format: a magic number, the numbers of entries and
// bytes that follow, for each entry tag, kind, offset and count, then the bytes.
func readHeader(t *testing.T, data []byte) (header, int) {
	t.Helper()
	if !bytes.HasPrefix(data, []byte{0x8e, 0xad, 0xe8, 1}) {
		t.Fatalf("the data has no header: % x", data[:8])
	}
	entries, size := int(binary.BigEndian.Uint32(data[8:])), int(binary.BigEndian.Uint32(data[12:]))
	content := data[16+16*entries:][:size]
	h := header{texts: map[int][]string{}, numbers: map[int][]int64{}}
	for i := range entries {
		entry := data[16+16*i:]
		tag, kind := int(binary.BigEndian.Uint32(entry)), binary.BigEndian.Uint32(entry[4:])
		at, count := content[binary.BigEndian.Uint32(entry[8:]):], int(binary.BigEndian.Uint32(entry[12:]))
		for n := range count {
			switch kind {
			case 3:
				h.numbers[tag] = append(h.numbers[tag], int64(binary.BigEndian.Uint16(at[2*n:])))
			case 4:
				h.numbers[tag] = append(h.numbers[tag], int64(binary.BigEndian.Uint32(at[4*n:])))
			case 6, 8, 9:
				text, rest, _ := bytes.Cut(at, []byte{0})
				h.texts[tag], at = append(h.texts[tag], string(text)), rest
			}
		}
	}
	return h, 16 + 16*entries + size
}

// parse parses an rpm's header, which follows a lead of 96 bytes and the signatures, padded to a multiple of 8.
func parse(t *testing.T, data []byte) header {
	t.Helper()
	if !bytes.HasPrefix(data, []byte{0xed, 0xab, 0xee, 0xdb}) {
		t.Fatal("the file is not an rpm")
	}
	_, signatures := readHeader(t, data[96:])
	h, _ := readHeader(t, data[96+(signatures+7)/8*8:])
	return h
}

func rpm(t *testing.T, change func(*deb.Request)) []byte {
	t.Helper()
	tree := t.TempDir()
	for name, text := range map[string]string{
		"app": "#!/bin/sh\n", "etc/app.conf": "a\n", "myapp.service": "[Service]\n", "scripts/post.sh": "echo installed\n",
		"scripts/pre.sh": "echo removed\n",
	} {
		file, mode := filepath.Join(tree, name), os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("app", filepath.Join(tree, "current")); err != nil {
		t.Fatal(err)
	}
	r := deb.Request{
		Format: "rpm", Tree: tree, Name: "myapp", Version: "1.2.3", Prefix: "/opt/myapp", Arch: "amd64",
		Content: "sha256:abc",
		Files: []installed.File{
			{Target: "/usr/lib/systemd/system/myapp.service", Data: []byte("[Service]\n"), Mode: 0o644, Unit: true},
			{Target: "/etc/myapp.conf", Data: []byte("a=1\n"), Mode: 0o640, User: "myapp"},
		},
		Scratch: t.TempDir(),
		Recipe: recipe.Recipe{Package: recipe.Package{
			Description: "An app\nin two lines", License: "Apache-2.0", Homepage: "https://example.org",
			Depends:    []string{"bash"},
			PreInstall: "scripts/pre.sh", PostInstall: "scripts/post.sh", PreRemove: "scripts/pre.sh",
			PostRemove: "scripts/post.sh",
		}},
	}
	change(&r)
	var b bytes.Buffer
	if err := deb.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestVersionsAreWrittenAsPackageManagersTakeThem checks the rules of deb-version(7) and the restrictions of rpmbuild.
func TestVersionsAreWrittenAsPackageManagersTakeThem(t *testing.T) {
	for version, want := range map[string][2]string{
		"1.2.3":               {"1.2.3", "1.2.3"},
		"1.0-3-g0123456789ab": {"1.0-3-g0123456789ab", "1.0_3_g0123456789ab"},
		"abc123abc123":        {"0+abc123abc123", "0+abc123abc123"},
		"2026_05~rc1-dirty":   {"2026.05~rc1-dirty", "2026_05~rc1_dirty"},
	} {
		h := parse(t, rpm(t, func(r *deb.Request) { r.Version = version }))
		if got := strings.Join(h.texts[tagVersion], "|"); got != want[1] {
			t.Errorf("the rpm of %s has version %q, want %q", version, got, want[1])
		}
		data := rpm(t, func(r *deb.Request) { r.Version, r.Format = version, "deb" })
		if got := debField(t, data, "Version"); got != want[0] {
			t.Errorf("the deb of %s has version %q, want %q", version, got, want[0])
		}
	}
}

// debField returns a field of a package, read by the system's dpkg-deb.
func debField(t *testing.T, data []byte, field string) string {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	file := filepath.Join(t.TempDir(), "x.deb")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("dpkg-deb", "--field", file, field).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestRPMHasFieldsOfTheRecipe(t *testing.T) {
	h := parse(t, rpm(t, func(*deb.Request) {}))
	for tag, want := range map[int]string{
		tagName: "myapp", tagVersion: "1.2.3", tagRelease: "1", tagSummary: "An app", tagLicense: "Apache-2.0",
		tagURL: "https://example.org",
		tagOS:  "linux", tagArch: "x86_64", tagBuildHost: "localhost", tagCompressor: "zstd",
	} {
		if got := strings.Join(h.texts[tag], "|"); got != want {
			t.Errorf("tag %d is %q, want %q", tag, got, want)
		}
	}
	for tag, want := range map[int][]string{
		tagPreInstall: {"echo removed\n"}, tagPostInstall: {"echo installed\n", "preset 'myapp.service'"},
		tagPreRemove: {"echo removed\n", "stop 'myapp.service'"}, tagPostRemove: {"echo installed\n", "daemon-reload"},
	} {
		for _, part := range want {
			if got := strings.Join(h.texts[tag], "|"); !strings.Contains(got, part) {
				t.Errorf("the script %d lacks %q: %s", tag, part, got)
			}
		}
	}
	if d := strings.Join(h.texts[tagDescription], ""); !strings.Contains(d, "in two lines") ||
		!strings.Contains(d, "Content digest: sha256:abc") {
		t.Errorf("the description is %q", d)
	}
	if !slices.Contains(h.texts[tagRequires], "bash") {
		t.Errorf("the rpm requires %q", h.texts[tagRequires])
	}
	if at := h.numbers[tagBuildTime]; len(at) > 0 && at[0] != 0 {
		t.Errorf("the rpm has a build time: %d", at)
	}
}

func TestRPMListsTheReleaseAsRootOwnsIt(t *testing.T) {
	h := parse(t, rpm(t, func(*deb.Request) {}))
	got := map[string]int64{}
	for i, name := range h.texts[tagNames] {
		got[path.Join(h.texts[tagDirs][h.numbers[tagDirIndexes][i]], name)] = h.numbers[tagModes][i]
		if owner := map[bool]string{true: "myapp", false: "root"}[name == "myapp.conf"]; h.texts[tagOwners][i] != owner ||
			h.texts[tagGroups][i] != "root" || h.numbers[tagTimes][i] != 0 {
			t.Errorf("%s belongs to %s:%s and has the time %d", name, h.texts[tagOwners][i], h.texts[tagGroups][i],
				h.numbers[tagTimes][i])
		}
	}
	const file, dir, link = 0o100000, 0o040000, 0o120000
	for name, mode := range map[string]int64{
		// rpm does not check the other bits
		"/opt/myapp": dir | 0o755, "/opt/myapp/app": file | 0o755, "/opt/myapp/etc/app.conf": file | 0o644,
		"/opt/myapp/current":                    link,
		"/usr/lib/systemd/system/myapp.service": file | 0o644, "/etc/myapp.conf": file | 0o640,
	} {
		if got[name] != mode {
			t.Errorf("%s has mode %o, want %o", name, got[name], mode)
		}
	}
}

func TestRPMWithoutProgramsIsForAnyMachine(t *testing.T) {
	h := parse(t, rpm(t, func(r *deb.Request) { r.Arch, r.Recipe.Package, r.Files = "", recipe.Package{}, nil }))
	if arch := h.texts[tagArch]; len(arch) != 1 || arch[0] != "noarch" {
		t.Errorf("the architecture is %q", arch)
	}
	if scripts := append(h.texts[tagPostInstall], h.texts[tagPreRemove]...); len(scripts) > 0 {
		t.Errorf("the scripts are %q", scripts)
	}
}
