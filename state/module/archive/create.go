package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zip"
	"github.com/mholt/archives"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Make describes an archive to create from files of the host.
type Make struct {
	File        string   // path of the archive
	Zip         bool     // zip instead of tar
	Compression string   // of tar: gz, bz2, xz or ""
	Sources     []string // paths and glob patterns, relative to Dir unless absolute
	Dir         string
}

// Write creates the archive and returns the names in it. Directories are added with their content. tar keeps
// links, owners and modes; zip follows links. Links that an unprivileged user controls are not followed.
func (m Make) Write(ctx context.Context, h *host.Host) ([]string, error) {
	paths, err := m.paths(h)
	if err != nil {
		return nil, err
	}
	if err := h.Announce(m.File); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	b := &builder{ctx: ctx, h: h, make: m, names: []string{}}
	go func() { _ = w.CloseWithError(b.build(w, paths)) }()
	err = h.Files.Write(m.File, host.NewFile{Content: r, UID: -1, GID: -1})
	_ = r.Close()
	if err != nil {
		return nil, err
	}
	return b.names, nil
}

// paths returns the sources with patterns expanded.
func (m Make) paths(h *host.Host) ([]string, error) {
	var all []string
	for _, source := range m.Sources {
		full := source
		if !path.IsAbs(full) {
			full = path.Join(m.Dir, full)
		}
		if !path.IsAbs(full) {
			return nil, diag.Argument.Hint(fmt.Errorf("source %s is not an absolute path", source),
				"name its directory with cwd")
		}
		found := []string{full}
		if strings.ContainsAny(path.Base(full), "*?[") {
			names, err := h.Files.ReadDir(path.Dir(full))
			if err != nil {
				return nil, err
			}
			found = nil
			for _, name := range names {
				if value.Glob(path.Base(full), name) {
					found = append(found, path.Join(path.Dir(full), name))
				}
			}
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, diag.Argument.Hint(errors.New("there is nothing to put into the archive"),
			"give sources: paths, separated by commas")
	}
	return all, nil
}

// builder writes an archive.
type builder struct {
	ctx   context.Context
	h     *host.Host
	make  Make
	names []string
	level int // depth of the current directory below its source
	tar   *tar.Writer
	zip   *zip.Writer
}

func (b *builder) build(w io.Writer, paths []string) (err error) {
	if b.make.Zip {
		b.zip = zip.NewWriter(w)
		return errors.Join(b.addAll(paths), b.zip.Close())
	}
	out, err := compressed(w, b.make.Compression)
	if err != nil {
		return err
	}
	b.tar = tar.NewWriter(out)
	return errors.Join(b.addAll(paths), b.tar.Close(), out.Close())
}

// compressed returns a writer that compresses to w.
func compressed(w io.Writer, kind string) (io.WriteCloser, error) {
	switch kind {
	case "gz":
		return gzip.NewWriter(w), nil
	case "bz2":
		return archives.Bz2{}.OpenWriter(w)
	case "xz":
		return archives.Xz{}.OpenWriter(w)
	case "":
		return plainWriter{w}, nil
	}
	return nil, fmt.Errorf("the compression %s is not known", kind)
}

type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }

func (b *builder) addAll(paths []string) error {
	for _, p := range paths {
		if err := b.add(p); err != nil {
			return err
		}
	}
	return nil
}

// add adds a file, link or directory to the archive.
func (b *builder) add(p string) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	info, err := b.h.Files.Lstat(p)
	if err == nil && b.make.Zip && info.Mode&fs.ModeSymlink != 0 {
		info, err = b.h.Files.Stat(p)
	}
	switch {
	case err != nil:
		return err
	case p == b.make.File:
		return nil
	case info.IsDir():
		return b.directory(p, info)
	case info.IsRegular():
		return b.file(p, info)
	case info.Mode&fs.ModeSymlink != 0:
		return b.link(p, info)
	}
	return host.WithObstacle(p, fmt.Errorf("%s is neither a file, a directory nor a link", p))
}

// link adds a symbolic link without following it.
func (b *builder) link(p string, info host.Info) error {
	target, err := b.h.Files.Readlink(p)
	if err != nil {
		return err
	}
	return b.header(p, info, &tar.Header{Typeflag: tar.TypeSymlink, Linkname: target})
}

func (b *builder) directory(p string, info host.Info) error {
	if err := b.header(p, info, &tar.Header{Typeflag: tar.TypeDir}); err != nil {
		return err
	}
	if err := descent.Enter(b.ctx, p, b.level); err != nil {
		return err
	}
	b.level++
	defer func() { b.level-- }()
	names, err := b.h.Files.ReadDir(p)
	for _, name := range names {
		if err == nil {
			err = b.add(path.Join(p, name))
		}
	}
	return err
}

// name returns the name of a path in the archive: relative to Dir or to the root.
func (b *builder) name(p string) string {
	if below, ok := strings.CutPrefix(p, strings.TrimRight(b.make.Dir, "/")+"/"); ok && b.make.Dir != "" && b.relative(p) {
		return below
	}
	return strings.TrimLeft(p, "/")
}

// relative reports whether a path comes from a relative source.
func (b *builder) relative(p string) bool {
	return !slices.ContainsFunc(b.make.Sources, func(source string) bool {
		return path.IsAbs(source) && (p == source || strings.HasPrefix(p, strings.TrimRight(source, "/")+"/") ||
			value.Glob(source, p))
	})
}

// header starts an entry.
func (b *builder) header(p string, info host.Info, header *tar.Header) error {
	name := b.name(p)
	if name == "" {
		return nil
	}
	if header.Typeflag == tar.TypeDir {
		name += "/"
	}
	if b.make.Zip {
		if header.Typeflag == tar.TypeDir {
			_, err := b.zip.CreateHeader(b.zipHeader(name, info))
			return err
		}
		return nil
	}
	return b.tarHeader(name, info, header)
}

// tarHeader adds the metadata of a file to the header of a tar entry and writes the header.
func (b *builder) tarHeader(name string, info host.Info, header *tar.Header) error {
	b.names = append(b.names, name)
	header.Name, header.Mode, header.ModTime = name, int64(info.Mode.Perm()), info.Modified
	header.Uid, header.Gid, header.Format = info.UID, info.GID, tar.FormatPAX
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if info.Mode&flag != 0 {
			header.Mode |= bit
		}
	}
	return b.tar.WriteHeader(header)
}

func (b *builder) zipHeader(name string, info host.Info) *zip.FileHeader {
	b.names = append(b.names, name)
	header := &zip.FileHeader{Name: name, Modified: info.Modified, Method: zip.Deflate}
	header.SetMode(info.Mode)
	if info.IsDir() {
		header.Method = zip.Store
	}
	return header
}

func (b *builder) file(p string, info host.Info) error {
	in, err := b.h.Files.Open(p)
	if err != nil {
		return err
	}
	defer in.Close()
	if b.make.Zip {
		out, err := b.zip.CreateHeader(b.zipHeader(b.name(p), info))
		if err == nil {
			_, err = io.Copy(out, host.Bounded(b.ctx, in))
		}
		return err
	}
	if err := b.header(p, info, &tar.Header{Typeflag: tar.TypeReg, Size: info.Size}); err != nil {
		return err
	}
	n, err := io.Copy(b.tar, io.LimitReader(host.Bounded(b.ctx, in), info.Size))
	if err == nil && n < info.Size {
		err = fmt.Errorf("%s became shorter while it was read", p)
	}
	return err
}

// Encrypted reports whether a zip archive contains an encrypted file.
func Encrypted(h *host.Host, file string) (bool, error) {
	f, err := h.Files.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	at, size, err := random(f)
	if err != nil {
		return false, err
	}
	r, err := zip.NewReader(at, size)
	if err != nil {
		return false, fmt.Errorf("%s is not a complete zip archive: %w", file, err)
	}
	return slices.ContainsFunc(r.File, func(f *zip.File) bool { return f.Flags&1 != 0 }), nil
}
