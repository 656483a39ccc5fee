package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// layoutFile is the file that marks an OCI image layout.
const layoutFile = "oci-layout"

// base returns the base image of the release: an empty one if the request names none.
func (r Request) base(ctx context.Context, scratch string) (v1.Image, error) {
	if r.Base == "" {
		return blank(), nil
	}
	// The directory may be a link, which must not be packed as one.
	real, err := filepath.EvalSymlinks(r.Base)
	if err != nil {
		return nil, fmt.Errorf("reading the base of the image: %w", err)
	}
	r.Base = real
	info, err := os.Stat(r.Base)
	if err != nil {
		return nil, fmt.Errorf("reading the base of the image: %w", err)
	}
	image, err := r.openBase(ctx, info, scratch)
	if err != nil {
		return nil, fmt.Errorf("reading the base of the image, %s: %w", r.Base, err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the base of the image, %s: %w", r.Base, err)
	}
	if file.Architecture != "" && file.Architecture != r.Arch {
		return nil, diag.Package.Hint(fmt.Errorf("the base of the image, %s, is for %s, and the release is for %s", r.Base,
			file.Architecture, r.Arch), "give a base for %s", r.Arch)
	}
	return image, nil
}

func blank() v1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
}

func (r Request) openBase(ctx context.Context, info fs.FileInfo, scratch string) (v1.Image, error) {
	if info.IsDir() {
		isLayout, err := walk.Exists(filepath.Join(r.Base, layoutFile))
		if err != nil {
			return nil, err
		}
		if isLayout {
			return r.fromLayout(r.Base)
		}
		return r.fromLayer(func() (io.ReadCloser, error) {
			return stoppable(ctx, piped(func(w *tar.Writer) error { return packSystem(w, r.Base, r.time()) })), nil
		})
	}
	dir := filepath.Join(scratch, "base-layout")
	found, err := unpackLayout(ctx, r.Base, dir)
	if err != nil {
		return nil, err
	}
	if found {
		return r.fromLayout(dir)
	}
	return r.fromLayer(func() (io.ReadCloser, error) {
		f, err := walk.OpenFile(r.Base)
		if err != nil {
			return nil, err
		}
		return stoppable(ctx, f), nil
	})
}

// fromLayer returns an image with one layer, a tar archive.
func (r Request) fromLayer(open tarball.Opener) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	digest, err := layer.DiffID()
	if err != nil {
		return nil, err
	}
	return mutate.Append(blank(), mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: r.time()}, CreatedBy: "base " + digest.String()}})
}

// fromLayout returns the image of a layout for the release's architecture, or the only one.
func (r Request) fromLayout(dir string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	return r.pick(index)
}

func (r Request) pick(index v1.ImageIndex) (v1.Image, error) {
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range list.Manifests {
		fits := m.Platform == nil || m.Platform.OS == "linux" && m.Platform.Architecture == r.Arch
		switch {
		case !fits:
		case m.MediaType.IsIndex():
			inner, err := index.ImageIndex(m.Digest)
			if err != nil {
				return nil, err
			}
			return r.pick(inner)
		case m.MediaType.IsImage():
			return index.Image(m.Digest)
		}
	}
	return nil, diag.Package.Hint(fmt.Errorf("the layout holds no image for linux/%s", r.Arch), "give one that does")
}

// stoppable returns a reader that fails once the context is done, since layers are hashed and packed without a
// context.
func stoppable(ctx context.Context, r io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{artifact.Stoppable(ctx, r), r}
}

// piped returns a reader of the archive that write writes.
func piped(write func(*tar.Writer) error) io.ReadCloser {
	read, w := io.Pipe()
	go func() {
		archive := tar.NewWriter(w)
		err := write(archive)
		w.CloseWithError(errors.Join(err, archive.Close()))
	}()
	return read
}

// packSystem packs a system's root directory with owners and modes, but without times, sockets, pipes and devices,
// which the container runtime provides.
func packSystem(archive *tar.Writer, dir string, at time.Time) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), ModTime: at, Mode: int64(info.Mode().Perm()) | special(info.Mode())}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			h.Uid, h.Gid = int(stat.Uid), int(stat.Gid)
		}
		return packAs(archive, h, file, d)
	})
}

// special returns the mode bits of an archive in addition to the permissions.
func special(mode fs.FileMode) (bits int64) {
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

// unpackLayout unpacks an archive with an image layout. It returns false if the archive has none.
func unpackLayout(ctx context.Context, file, dir string) (bool, error) {
	holds, err := eachEntry(ctx, file, func(h *tar.Header, _ io.Reader) (bool, error) {
		return path.Clean(h.Name) == layoutFile, nil
	})
	if err != nil || !holds {
		return false, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	root, err := walk.OpenTree(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	_, err = eachEntry(ctx, file, func(h *tar.Header, r io.Reader) (bool, error) {
		if h.Typeflag != tar.TypeReg {
			return false, nil
		}
		name := path.Clean(h.Name)
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return false, err
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return false, err
		}
		_, err = io.Copy(f, r)
		return false, errors.Join(err, f.Close())
	})
	return true, err
}

// eachEntry calls see for the entries of a tar archive, compressed or not, until see returns true.
func eachEntry(ctx context.Context, file string, see func(*tar.Header, io.Reader) (bool, error)) (bool, error) {
	f, err := walk.OpenFile(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	plain, err := unpacked(artifact.Stoppable(ctx, f))
	if err != nil {
		return false, err
	}
	archive := tar.NewReader(plain)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, diag.Package.Hint(err, "a base is a directory, a tar archive (also .gz, .zst), or an OCI image layout")
		}
		if enough, err := see(h, archive); enough || err != nil {
			return enough, err
		}
	}
}

// unpacked returns a reader that decompresses gzip and zstd, and passes other data through.
func unpacked(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	magic, err := b.Peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(b)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstd.NewReader(b, zstd.WithDecoderConcurrency(1))
	}
	return b, nil
}
