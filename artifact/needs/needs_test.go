package needs_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/needs"
)

// put writes files into a directory.
func put(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func of(t *testing.T, files map[string][]byte) needs.Needs {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, files)
	n, err := needs.Of(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// dynamic returns a program of this machine that uses the C library.
func dynamic(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip("this machine has no /bin/sh")
	}
	if f, err := elf.NewFile(bytes.NewReader(data)); err != nil || f.Section(".interp") == nil {
		t.Skip("/bin/sh of this machine is not a dynamic program")
	}
	return data
}

// static builds a static program for an architecture.
func static(t *testing.T, arch string) []byte {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, map[string][]byte{"go.mod": []byte("module x\n"),
		"main.go": []byte("package main\n\nfunc main() { println(1) }\n")})
	cmd := exec.Command("go", "build", "-o", "x", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch, "GOOS=linux", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDynamicProgramRequiresLoader(t *testing.T) {
	n := of(t, map[string][]byte{"bin/sh": dynamic(t), "text": []byte("#!/bin/sh\n"), "empty": nil,
		"short": []byte("\x7fEL")})
	if n.Arch != runtime.GOARCH || len(n.Programs) != 1 || !strings.Contains(n.Programs[0], "ld") {
		t.Errorf("the program needs %+v, want this architecture and one loader", n)
	}
	if missing, err := n.Missing(needs.Host{Arch: runtime.GOARCH, Root: os.DirFS("/")}); missing != nil || err != nil {
		t.Errorf("the machine of the program lacks %q", missing)
	}
	if n.Glibc == "" {
		return // this machine has another C library
	}
	missing, err := n.Missing(needs.Host{Arch: "mips", Root: os.DirFS(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(missing, "\n")
	for _, want := range []string{"built for " + runtime.GOARCH + ", and this host is mips",
		n.Programs[0] + " does not exist", "it needs the GNU C library, and there is none"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not among %q", want, missing)
		}
	}
	n.Glibc = "99.1"
	if missing, err := n.Missing(needs.Host{Arch: runtime.GOARCH, Root: os.DirFS("/")}); err != nil || len(missing) != 1 ||
		!strings.Contains(missing[0], "the GNU C library 99.1, and here is 2.") {
		t.Errorf("with an older C library, the host lacks %q", missing)
	}
}

func TestStaticProgramRequiresArchitectureOnly(t *testing.T) {
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	program := static(t, other)
	n := of(t, map[string][]byte{"x": program})
	if n.Arch != other || n.Glibc != "" || len(n.Programs) != 0 {
		t.Errorf("the program needs %+v, want only %s", n, other)
	}
	if missing, err := n.Missing(needs.Host{Arch: other, Root: os.DirFS(t.TempDir())}); missing != nil || err != nil {
		t.Errorf("an empty host of its architecture lacks %q", missing)
	}
	dir := t.TempDir()
	put(t, dir, map[string][]byte{"a": program, "b": dynamic(t)})
	if _, err := needs.Of(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), "b is for "+runtime.GOARCH) {
		t.Errorf("two architectures in one release: %v", err)
	}
}

func TestDamagedELFIsNotAProgram(t *testing.T) {
	if n := of(t, map[string][]byte{"x": []byte("\x7fELF and then something else")}); n.Arch != "" {
		t.Errorf("the needs are %+v", n)
	}
}

func TestReadReturnsWrittenRequirements(t *testing.T) {
	dir := t.TempDir()
	if r, err := needs.Read(os.DirFS(dir)); err != nil || r.Content != "" {
		t.Errorf("a release without requirements has %+v, %v", r, err)
	}
	put(t, dir, map[string][]byte{needs.File: []byte(`{"name":"a","content":"sha256:1","needs":{"arch":"arm64"}}`)})
	if r, err := needs.Read(os.DirFS(dir)); err != nil || r.Needs.Arch != "arm64" || r.Content != "sha256:1" {
		t.Errorf("the requirements are %+v, %v", r, err)
	}
	put(t, dir, map[string][]byte{needs.File: []byte(`{`)})
	if _, err := needs.Read(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), needs.File) {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestUnreadableLibraryIsNotMissing(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink("lib", filepath.Join(root, "lib")); err != nil { // a loop
		t.Fatal(err)
	}
	n := needs.Needs{Glibc: "2.36"}
	if missing, err := n.Missing(needs.Host{Arch: runtime.GOARCH, Root: os.DirFS(root)}); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("the host lacks %q, %v", missing, err)
	}
}
