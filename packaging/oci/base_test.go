package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/corpus-agent/corpus-agent/packaging/oci"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// release returns a tree with one program.
func release(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "app"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return tree
}

// system returns the root directory of a system.
func system(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/sh": 0o755, "bin/su": os.ModeSetuid | 0o755, "etc/shadow": 0o640,
		"tmp/": os.ModeSticky | 0o777} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		make := func() error { return os.WriteFile(file, []byte(name), 0o600) }
		if strings.HasSuffix(name, "/") {
			make = func() error { return os.Mkdir(file, 0o755) }
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("bin", filepath.Join(dir, "sbin")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// write makes an image twice, expects the same bytes, and returns the file.
func write(t *testing.T, tree, base string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.oci.tar")
	var sums [2][32]byte
	for i := range sums {
		var b bytes.Buffer
		request := oci.Request{Tree: tree, Prefix: "/opt/myapp", Name: "myapp", Version: "1", Arch: runtime.GOARCH,
			Content: "sha256:c", Command: []string{"/opt/myapp/app"}, Base: base}
		if err := oci.Write(t.Context(), &b, request, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(b.Bytes())
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Error("two images of the same tree differ")
	}
	return file
}

// image opens the only image in a file.
func image(t *testing.T, file string) v1.Image {
	t.Helper()
	dir := t.TempDir()
	unpackInto(t, file, dir)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("the index is %+v, %v", list, err)
	}
	found, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func unpackInto(t *testing.T, file, dir string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		target := filepath.Join(dir, h.Name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(target), 0o755),
			os.WriteFile(target, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// files returns the entries that remain after all of an image's layers, by name.
func files(t *testing.T, i v1.Image) map[string]tar.Header {
	t.Helper()
	found := map[string]tar.Header{}
	flat := mutate.Extract(i)
	defer flat.Close()
	for r := tar.NewReader(flat); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(h.Name, "/")] = *h
	}
}

// archived packs a directory with the system's tar; pack compresses the archive.
func archived(t *testing.T, dir string, pack func(io.Writer) io.WriteCloser) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "base.tar")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	var w io.WriteCloser = f
	if pack != nil {
		w = pack(f)
	}
	archive := tar.NewWriter(w)
	if err := archive.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(archive.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	_ = f.Close() // already closed without compression
	return file
}

func TestAnImageIsPutOnABase(t *testing.T) {
	tree, root := release(t), system(t)
	overImage := write(t, tree, root)
	unpackedLayout := t.TempDir()
	unpackInto(t, overImage, unpackedLayout)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		base   string
		layers int
	}{
		"a link to a directory": {link, 2},
		"nothing":               {"", 1},
		"a directory":           {root, 2},
		"an archive":            {archived(t, root, nil), 2},
		"an archive, packed":    {archived(t, root, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }), 2},
		"a layout":              {unpackedLayout, 3},
		"a layout's archive":    {overImage, 3},
	} {
		t.Run(name, func(t *testing.T) {
			i := image(t, write(t, tree, c.base))
			layers, err := i.Layers()
			config, configErr := i.ConfigFile()
			if err != nil || configErr != nil || len(layers) != c.layers {
				t.Fatalf("the image has %d layers (%v, %v), want %d", len(layers), err, configErr, c.layers)
			}
			there := files(t, i)
			if there["opt/myapp/app"].Mode != 0o755 {
				t.Errorf("the image lacks the release: %v", there)
			}
			base, named := config.Config.Labels["org.opencontainers.image.base.digest"]
			if named != (c.base != "") || strings.Join(config.Config.Cmd, " ") != "/opt/myapp/app" ||
				config.Architecture != runtime.GOARCH {
				t.Errorf("the configuration is %+v, the base %q", config.Config, base)
			}
			if c.base == "" {
				return
			}
			if there["sbin"].Linkname != "bin" || there["bin/sh"].Mode != 0o755 {
				t.Errorf("the image lacks the base: %v", there)
			}
		})
	}
}

func TestABaseKeepsModesAndOwners(t *testing.T) {
	there := files(t, image(t, write(t, release(t), system(t))))
	for name, mode := range map[string]int64{"bin/su": 0o4755, "etc/shadow": 0o640, "tmp": 0o1777} {
		if h := there[name]; h.Mode != mode || h.Uid != os.Getuid() {
			t.Errorf("%s has mode %o and belongs to %d, want %o", name, h.Mode, h.Uid, mode)
		}
	}
}

func TestABaseThatDoesNotFitIsAnError(t *testing.T) {
	tree := release(t)
	foreign := filepath.Join(t.TempDir(), "foreign.oci.tar")
	var b bytes.Buffer
	if err := oci.Write(t.Context(), &b, oci.Request{Tree: tree, Prefix: "/opt/x", Arch: "s390x"},
		t.TempDir()); err != nil {
		t.Fatal(err)
	}
	nonsense := filepath.Join(t.TempDir(), "nonsense.tar")
	if err := errors.Join(os.WriteFile(foreign, b.Bytes(), 0o644),
		os.WriteFile(nonsense, []byte(strings.Repeat("no archive ", 100)), 0o644)); err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]string{foreign: "s390x", nonsense: "tar",
		filepath.Join(t.TempDir(), "absent"): "no such file"} {
		err := oci.Write(t.Context(), io.Discard, oci.Request{Tree: tree, Prefix: "/opt/x", Arch: "amd64", Base: base},
			t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("on top of %s: %v, want %q", base, err, want)
		}
		if want != "no such file" && diag.HintOf(err) == "" {
			t.Errorf("%v has no hint", err)
		}
	}
}

// TestBaseSeesTheContext checks that reading each kind of base ends when the build is interrupted.
func TestBaseSeesTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	archive := filepath.Join(t.TempDir(), "base.tar")
	var image bytes.Buffer
	if err := oci.Write(t.Context(), &image, oci.Request{Tree: release(t), Prefix: "/opt/x", Arch: runtime.GOARCH},
		t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(archive, image.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{archive, system(t)} {
		scratch := t.TempDir()
		err := oci.Write(ctx, io.Discard, oci.Request{Tree: release(t), Prefix: "/opt/x", Arch: runtime.GOARCH, Base: base},
			scratch)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", base, err)
		}
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("%s: %v was still made, %v", base, left, err)
		}
	}
}
