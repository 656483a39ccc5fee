package unpack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zip"
	"github.com/mholt/archives"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
)

func walkTar(ctx context.Context, source io.Reader, format artifact.Format, rules *rules, to target) error {
	within, stop := context.WithCancel(ctx)
	defer stop()
	r := artifact.Awaited(within, source)
	plain, err := decompress(r, format)
	if err != nil {
		return err
	}
	defer func() {
		stop() // a decompressor that waits for the source ends too
		_ = plain.Close()
	}()
	whole := &ending{Reader: artifact.Stoppable(ctx, rules.growth.countUnpacked(plain))}
	err = archives.Tar{}.Extract(ctx, whole, func(_ context.Context, f archives.FileInfo) error {
		h, ok := f.Header.(*tar.Header)
		if !ok {
			return fmt.Errorf("entry %q has no tar header", f.NameInArchive)
		}
		return place(h, func() (io.ReadCloser, error) { return f.Open() }, rules, to)
	})
	// The end of the archive is not the end of the stream: the checksum of the compression is last, and then the digest of
	// the whole is complete. Some decompressors have a WriteTo that is wrong after a Read, so it is hidden.
	for _, rest := range []io.Reader{whole, r} {
		if err == nil {
			_, err = io.Copy(io.Discard, struct{ io.Reader }{rest})
		}
	}
	if err == nil && rules.summary.Files > 0 && whole.zeros < tarEnd {
		err = &Hostile{Entry: rules.last, Rule: "the archive ends after it without an end: it was truncated"}
	}
	var hostile *Hostile
	if errors.As(err, &hostile) {
		if hostile.Entry == "" {
			hostile.Entry = rules.last
		}
		err = hostile // drop the wrapping error, which contains the whole name of the entry
	}
	return rules.complete(ctx, err)
}

// tarEnd is the number of zero bytes at the end of a tar archive.
const tarEnd = 1024

// ending counts the zero bytes at the end of a stream. A tar reader accepts an archive that was cut between two entries
// as complete.
type ending struct {
	io.Reader
	zeros int
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	rest := bytes.TrimRight(p[:n], "\x00")
	if len(rest) > 0 {
		e.zeros = 0
	}
	e.zeros = min(tarEnd, e.zeros+n-len(rest))
	return n, err
}

func decompress(r io.Reader, format artifact.Format) (io.ReadCloser, error) {
	switch format {
	case artifact.TarZst:
		return newZstd(r)
	case artifact.TarGz:
		return archives.Gz{Multithreaded: true}.OpenReader(r)
	case artifact.TarXz:
		return archives.Xz{}.OpenReader(r)
	case artifact.Tar:
		return io.NopCloser(r), nil
	}
	return nil, fmt.Errorf("%s: not an archive format", format)
}

func walkZip(ctx context.Context, all sized, rules *rules, to target) error {
	archive, err := zip.NewReader(all, all.Size())
	if err != nil {
		return err
	}
	if len(archive.File) > rules.limits.Files {
		return &Hostile{Entry: archive.File[rules.limits.Files].Name,
			Rule: fmt.Sprintf("there are more than %d entries", rules.limits.Files)}
	}
	if err := apart(archive.File); err != nil {
		return err
	}
	for _, f := range archive.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := zipHeader(f)
		if err != nil {
			return err
		}
		open := func() (io.ReadCloser, error) {
			content, err := f.Open()
			if err != nil {
				return nil, err
			}
			return struct {
				io.Reader
				io.Closer
			}{artifact.Stoppable(ctx, rules.growth.countUnpacked(content)), content}, nil
		}
		if err := place(h, open, rules, to); err != nil {
			return err
		}
	}
	return rules.complete(ctx, nil)
}

// apart returns an error for entries that share bytes: with these a small archive could contain more than its size
// allows.
func apart(files []*zip.File) error {
	type span struct {
		name     string
		from, to int64
	}
	var spans []span
	for _, f := range files {
		at, err := f.DataOffset()
		if err != nil {
			return fmt.Errorf("reading the entry %q: %w", f.Name, err)
		}
		spans = append(spans, span{f.Name, at, at + int64(f.CompressedSize64)})
	}
	structsort.Func(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(spans); i++ {
		if before := spans[i-1]; spans[i].from < before.to || spans[i].from == before.from {
			return &Hostile{Entry: spans[i].name, Rule: fmt.Sprintf("it shares bytes with %q", before.name)}
		}
	}
	return nil
}

// zipHeader converts an entry of a zip archive to a tar header, so that the same rules apply.
func zipHeader(f *zip.File) (*tar.Header, error) {
	mode := f.Mode()
	h := &tar.Header{Name: f.Name, Mode: int64(mode.Perm()), ModTime: f.Modified, Size: int64(f.UncompressedSize64)}
	for bit, posix := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&bit != 0 {
			h.Mode |= posix
		}
	}
	switch {
	case h.Size < 0 || f.Flags&1 != 0:
		return nil, &Hostile{Entry: f.Name, Rule: "it is encrypted, or larger than anything"}
	case mode.IsDir():
		h.Typeflag, h.Size = tar.TypeDir, 0
	case mode.IsRegular():
		h.Typeflag = tar.TypeReg
	case mode&fs.ModeSymlink != 0:
		target, err := zipLink(f)
		if err != nil {
			return nil, err
		}
		h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
	case mode&fs.ModeNamedPipe != 0:
		h.Typeflag = tar.TypeFifo
	default:
		h.Typeflag = tar.TypeChar
	}
	return h, nil
}

// zipLink reads the target of a symbolic link, which is its content.
func zipLink(f *zip.File) (string, error) {
	content, err := f.Open()
	if err != nil {
		return "", fmt.Errorf("reading the link %q: %w", f.Name, err)
	}
	target, err := io.ReadAll(io.LimitReader(content, maxPath+1))
	if len(target) > maxPath {
		return "", &Hostile{Entry: f.Name, Rule: "it is a symbolic link to a name beyond all bounds"}
	}
	return string(target), errors.Join(err, content.Close())
}
