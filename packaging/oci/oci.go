// Package oci makes an image of a release, as an OCI image layout in a tar file, without a container engine.
//
// The image contains the release below the recipe's prefix, on top of a base that is a directory, an archive or
// another image, or without a base. It does not depend on the time and the machine of the build.
package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/packaging/installed"
)

// Request is one image.
type Request struct {
	Tree    string // the release
	Prefix  string
	Name    string
	Version string
	Arch    string // architecture as Go names it
	Content string // digest of the release's content
	Command []string
	Base    string           // the base: a directory, an archive or a layout; empty for none
	Files   []installed.File // configuration outside the prefix
	Time    time.Time
}

// ContentLabel is the label and annotation with the content digest.
const ContentLabel = "io.corpus-agent.content"

// Write makes the image. scratch is a directory for its parts.
func Write(ctx context.Context, w io.Writer, r Request, scratch string) error {
	image, err := r.image(ctx, scratch)
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	dir := filepath.Join(scratch, "oci")
	where, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	notes := map[string]string{"org.opencontainers.image.ref.name": r.Version, ContentLabel: r.Content}
	if err := where.AppendImage(image, layout.WithAnnotations(notes)); err != nil {
		return fmt.Errorf("making the image: %w", err)
	}
	archive := tar.NewWriter(w)
	return errors.Join(pack(archive, dir, "", r.time()), archive.Close())
}

func (r Request) time() time.Time {
	if r.Time.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return r.Time.UTC()
}

func (r Request) image(ctx context.Context, scratch string) (v1.Image, error) {
	base, err := r.base(ctx, scratch)
	if err != nil {
		return nil, err
	}
	layer, err := r.layer(r.Tree, r.Prefix)
	if err != nil {
		return nil, err
	}
	image := base
	history := v1.History{Created: v1.Time{Time: r.time()}, CreatedBy: "corpus build"}
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: history}); err != nil {
		return nil, err
	}
	return r.configured(image, base)
}

// configured returns an image with its configuration, including that of its base.
func (r Request) configured(image, base v1.Image) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", r.Arch, v1.Time{Time: r.time()}
	if err := r.configure(&file.Config, base); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, file)
}

// configure sets the command and the labels of the image; the environment is that of the base.
func (r Request) configure(c *v1.Config, base v1.Image) error {
	c.WorkingDir = r.Prefix
	if len(r.Command) > 0 {
		c.Cmd, c.Entrypoint = r.Command, nil
	}
	labels := map[string]string{ContentLabel: r.Content, "org.opencontainers.image.title": r.Name,
		"org.opencontainers.image.version": r.Version}
	if r.Base != "" {
		digest, err := base.Digest()
		if err != nil {
			return err
		}
		labels["org.opencontainers.image.base.digest"] = digest.String()
	}
	for name, value := range c.Labels {
		if _, ours := labels[name]; !ours {
			labels[name] = value
		}
	}
	c.Labels = labels
	return nil
}

func (r Request) layer(dir, prefix string) (v1.Layer, error) {
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return piped(func(archive *tar.Writer) error {
			return errors.Join(parents(archive, prefix, r.time()), pack(archive, dir, strings.TrimPrefix(prefix, "/"), r.time()),
				r.packFiles(archive))
		}), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// packFiles packs the configuration. Its parent directories are those of the base, or are made when the image is
// unpacked. An image has no units, and names of users have no meaning outside its base, so files belong to root.
func (r Request) packFiles(archive *tar.Writer) error {
	for _, f := range r.Files {
		if f.Unit {
			continue
		}
		h := &tar.Header{Name: strings.TrimPrefix(f.Target, "/"), Typeflag: tar.TypeReg, Mode: int64(f.Mode),
			Size: int64(len(f.Data)), ModTime: r.time()}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(f.Data); err != nil {
			return err
		}
	}
	return nil
}

// parents packs the parent directories of a prefix.
func parents(archive *tar.Writer, prefix string, at time.Time) error {
	var done string
	for part := range strings.SplitSeq(strings.Trim(path.Dir(prefix), "/"), "/") {
		if part == "" || part == "." {
			continue
		}
		done = path.Join(done, part)
		if err := archive.WriteHeader(&tar.Header{Name: done + "/", Typeflag: tar.TypeDir, Mode: 0o755,
			ModTime: at}); err != nil {
			return err
		}
	}
	return nil
}

// pack packs a directory below a prefix, in the order of names.
func pack(archive *tar.Writer, dir, prefix string, at time.Time) error {
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name := path.Join(prefix, filepath.ToSlash(rel))
		if name == "." || name == "" {
			return nil
		}
		return packOne(archive, file, name, d, at)
	})
}

func packOne(archive *tar.Writer, file, name string, d fs.DirEntry, at time.Time) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, ModTime: at, Mode: 0o644}
	if info.Mode()&0o111 != 0 {
		h.Mode = 0o755 // independent of the builder's umask
	}
	return packAs(archive, h, file, d)
}

// packAs packs an entry whose name, mode and owner are set.
func packAs(archive *tar.Writer, h *tar.Header, file string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch {
	case d.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case d.Type() == fs.ModeSymlink:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
		if h.Linkname, err = os.Readlink(file); err != nil {
			return err
		}
	case d.Type().IsRegular():
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
	default:
		return nil // in a release, the check has found it before
	}
	if err := archive.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := walk.OpenFile(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(archive, f)
	return err
}
