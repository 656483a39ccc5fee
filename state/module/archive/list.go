package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// entry is an entry of an archive.
type entry struct {
	raw    string // the name in the archive
	name   string // the path below the target
	kind   kind
	mode   fs.FileMode
	native bool   // mode is from the archive
	link   string // the target of a link; of a hard link, the name of an earlier file
	uid    int    // -1 for none
	gid    int
	user   string
	group  string
	time   time.Time
	size   int64 // of a file, according to the archive
	left   rights
}

type kind int

const (
	file kind = iota
	directory
	symlink
	hardlink
)

// list reads the entries of the archive. An entry that no archive may have is an error.
func (x *extracted) list(ctx context.Context, h *host.Host) ([]entry, error) {
	var all []entry
	r := newRules(x.limits(), x.linksBelow())
	x.dotted = true
	err := x.walk(ctx, h, func(e entry, _ io.Reader) error {
		err := r.admit(&e)
		if err == nil {
			all = append(all, e)
			x.dotted = x.dotted && strings.HasPrefix(e.raw, "./")
		}
		return err
	})
	x.size = r.bytes
	if err == nil {
		err = r.complete()
	}
	return all, err
}

// walk calls visit for the selected entries, in order.
func (x *extracted) walk(ctx context.Context, h *host.Host, visit func(e entry, content io.Reader) error) error {
	limits := x.limits()
	ctx, cancel := limits.within(ctx)
	defer cancel()
	f, err := h.Files.Open(x.file())
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := h.Files.Stat(x.file())
	if err != nil {
		return err
	}
	wanted := func(e entry, content io.Reader) error {
		if e.name = x.options.place(e.raw); e.name == "" {
			return nil
		}
		if e.kind == hardlink {
			e.link = x.options.place(e.link)
		}
		if !x.Preserve && !x.options.preserve {
			e.left = e.tamed(x)
		}
		return visit(e, content)
	}
	grown := &growth{ctx: ctx, limits: limits, packed: info.Size}
	if x.format == "zip" {
		return walkZip(f, grown, x.ExtractPerms, wanted)
	}
	return walkTar(f, grown, wanted)
}

// place returns the path of an entry below the target, "" if the entry is excluded. Like tar,
// --strip-components counts the dot of ./a as a directory.
func (o options) place(raw string) string {
	name := path.Clean(raw)
	if raw == "" || name == "." {
		return ""
	}
	for _, glob := range o.exclude {
		if value.Glob(glob, name) || value.Glob(glob+"/*", name) || value.Glob("*/"+glob, name) ||
			value.Glob("*/"+glob+"/*", name) {
			return ""
		}
	}
	if o.strip == 0 {
		return name
	}
	rest := strings.TrimLeft(raw, "/")
	for range o.strip {
		_, below, ok := strings.Cut(rest, "/")
		if !ok {
			return ""
		}
		rest = strings.TrimLeft(below, "/")
	}
	if name = path.Clean(rest); rest == "" || name == "." {
		return ""
	}
	return name
}

func walkTar(f io.Reader, grown *growth, visit func(e entry, content io.Reader) error) error {
	plain, err := decompressed(f)
	if err != nil {
		return err
	}
	defer plain.Close()
	r := tar.NewReader(grown.of(plain))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if ended(err) {
			return err
		}
		if err != nil {
			return diag.Archive.Hint(fmt.Errorf("it is not a complete tar archive: %w", err),
				"look at the archive with `tar -tf`; another format is named by archive_format")
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		e, err := tarEntry(header)
		if err != nil {
			return err
		}
		if err := visit(e, r); err != nil {
			return err
		}
	}
}

func tarEntry(header *tar.Header) (entry, error) {
	e := entry{raw: strings.TrimSuffix(header.Name, "/"), link: header.Linkname,
		mode: fs.FileMode(header.Mode) & 0o777, native: true,
		uid: header.Uid, gid: header.Gid, user: header.Uname, group: header.Gname, time: header.ModTime, size: header.Size}
	for bit, flag := range map[int64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if header.Mode&bit != 0 {
			e.mode |= flag
		}
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir:
		e.kind = directory
	case tar.TypeSymlink:
		e.kind = symlink
	case tar.TypeLink:
		e.kind = hardlink
	default:
		return e, refused(e.raw, "it is neither a file, a directory nor a link")
	}
	return e, nil
}

// decompressed recognizes the compression by the first bytes and decompresses f.
func decompressed(f io.Reader) (io.ReadCloser, error) {
	r := bufio.NewReaderSize(f, 64<<10)
	start, _ := r.Peek(6) // a shorter file is refused later
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return archives.Gz{}.OpenReader(r)
	case bytes.HasPrefix(start, []byte("BZh")):
		return archives.Bz2{}.OpenReader(r)
	case bytes.HasPrefix(start, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return archives.Xz{}.OpenReader(r)
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return archives.Zstd{DecoderOptions: []zstd.DOption{zstd.WithDecoderMaxMemory(decoderMemory),
			zstd.WithDecoderLowmem(true)}}.OpenReader(r)
	}
	return io.NopCloser(r), nil
}

// decoderMemory is the maximal window of a zstd stream in bytes.
const decoderMemory = 128 << 20

// maxInMemory is the maximal size of a zip archive that cannot be read at random offsets.
const maxInMemory = 1 << 30

func walkZip(f io.Reader, grown *growth, permissions bool, visit func(e entry, content io.Reader) error) error {
	at, size, err := random(f)
	if err != nil {
		return err
	}
	r, err := zip.NewReader(at, size)
	if err != nil {
		return diag.Archive.Hint(fmt.Errorf("it is not a complete zip archive: %w", err),
			"look at the archive with `unzip -l`; another format is named by archive_format")
	}
	if err := grown.limits.count(len(r.File)); err != nil {
		return err
	}
	for _, f := range r.File {
		if grown.ctx.Err() != nil {
			return context.Cause(grown.ctx)
		}
		if err := zipEntry(f, grown, permissions, visit); err != nil {
			return err
		}
	}
	return nil
}

func zipEntry(f *zip.File, grown *growth, permissions bool, visit func(e entry, content io.Reader) error) error {
	e := entry{raw: f.Name, uid: -1, gid: -1, time: f.Modified, mode: 0o644, size: int64(f.UncompressedSize64)}
	mode := f.Mode()
	if f.Flags&1 != 0 {
		return diag.Archive.Hint(fmt.Errorf("entry %s is encrypted", f.Name),
			"extract it with unzip in a cmd.run state with creates")
	}
	switch {
	case e.size < 0:
		return refused(f.Name, "it is larger than any file")
	case mode.IsDir():
		e.kind, e.mode = directory, 0o755
	case mode&fs.ModeSymlink != 0:
		e.kind = symlink
	case !mode.IsRegular():
		return refused(f.Name, "it is neither a file, a directory nor a link")
	}
	if unix := f.CreatorVersion>>8 == 3; unix && permissions && mode.Perm() != 0 {
		e.mode, e.native = mode.Perm(), true
	}
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if e.kind == symlink {
		target, err := io.ReadAll(io.LimitReader(content, maxLink+1))
		if err != nil {
			return err
		}
		e.link = string(target)
	}
	return visit(e, grown.of(content))
}

// random returns a reader at random offsets. It reads f into memory if that is not possible otherwise.
func random(f io.Reader) (io.ReaderAt, int64, error) {
	if at, ok := f.(interface {
		io.ReaderAt
		io.Seeker
	}); ok {
		size, err := at.Seek(0, io.SeekEnd)
		return at, size, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxInMemory+1))
	if err == nil && len(data) > maxInMemory {
		err = errors.New("it is too big to be read")
	}
	return bytes.NewReader(data), int64(len(data)), err
}
