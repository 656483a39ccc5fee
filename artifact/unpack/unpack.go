// Package unpack makes a directory of an artifact.
//
// Bytes come out of a *trust.Verified and nothing else, so what is unpacked was signed. That says
// who made the archive and not that it is harmless, so every entry is admitted by rules of our own
// before anything is written: names inside the release, no name twice, nothing below a link, links
// that stay inside, no devices, no setuid, no attributes, and limits on bytes, files and depth.
// The archive library is asked only to decompress and to read headers.
//
// What is made does not depend on who packed it: files become 0644 or 0755 without their write
// bits, directories 0755, the pillar's directories 0700. Paths that the release's corpus.yaml calls
// writable keep their write bits. Nothing is durable until the caller has synced the filesystem.
package unpack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/mholt/archives"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Limits bound what an archive may unpack to. A zero field means its default.
type Limits struct {
	Bytes int64 // of all files together; 64 GiB by default
	Files int   // entries of any kind; 2 million by default
	Depth int   // path components; 64 by default
}

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 64 << 30
	}
	if l.Files == 0 {
		l.Files = 2_000_000
	}
	if l.Depth == 0 {
		l.Depth = 64
	}
	return l
}

// Summary counts what was unpacked.
type Summary struct {
	Files int   `json:"files"` // entries of any kind
	Bytes int64 `json:"bytes"` // content of regular files
}

// Hostile says that an archive holds something no release may hold.
type Hostile struct {
	Entry string
	Rule  string
}

func (h *Hostile) Error() string { return fmt.Sprintf("refused archive entry %q: %s", h.Entry, h.Rule) }

// Hint says what to do about a refused archive.
func (h *Hostile) Hint() string {
	return "pack the tree with `corpus build`, which names what it leaves out"
}

// Into unpacks a verified artifact into an empty directory. On failure the directory holds what
// was unpacked until then; the caller removes it.
func Into(ctx context.Context, v *trust.Verified, dir *os.Root, limits Limits) (Summary, error) {
	s := &sink{root: dir}
	defer s.close()
	summary, err := walk(ctx, v.Reader(), v.Release().Format, limits, s)
	if err == nil {
		err = s.seal()
	}
	if err != nil {
		return summary, fmt.Errorf("unpacking %s: %w", v.Release(), err)
	}
	return summary, nil
}

// Inspect reads an archive to its end by the same rules and writes nothing, so that a publisher
// learns what a host would refuse.
func Inspect(ctx context.Context, r io.Reader, format artifact.Format, limits Limits) (Summary, error) {
	return walk(ctx, r, format, limits, discard{})
}

// target takes the entries that were admitted.
type target interface {
	directory(e entry) error
	file(e entry, content io.Reader) error
	symlink(e entry) error
	hardlink(e entry) error
}

func walk(ctx context.Context, r io.Reader, format artifact.Format, limits Limits, to target) (Summary, error) {
	plain, err := decompress(r, format)
	if err != nil {
		return Summary{}, err
	}
	defer plain.Close()
	rules := newRules(limits.withDefaults())
	err = archives.Tar{}.Extract(ctx, plain, func(_ context.Context, f archives.FileInfo) error {
		return place(f, rules, to)
	})
	if err == nil {
		// The end of the archive is not the end of the stream: the checksum of the
		// compression comes last.
		_, err = io.Copy(io.Discard, plain)
	}
	if err == nil && rules.summary.Files == 0 {
		err = errors.New("the archive is empty")
	}
	return rules.summary, errors.Join(err, rules.checkLinks())
}

func place(f archives.FileInfo, rules *rules, to target) error {
	e, err := rules.admit(f)
	if err != nil || e.kind == skip {
		return err
	}
	switch e.kind {
	case directory:
		return to.directory(e)
	case symlink:
		return to.symlink(e)
	case hardlink:
		return to.hardlink(e)
	}
	content, err := f.Open()
	if err != nil {
		return err
	}
	return to.file(e, content)
}

// decoderMemory is the largest window a zstd stream may ask for; `corpus build` uses 8 MiB.
const decoderMemory = 128 << 20

func decompress(r io.Reader, format artifact.Format) (io.ReadCloser, error) {
	switch format {
	case artifact.TarZst:
		return archives.Zstd{DecoderOptions: []zstd.DOption{zstd.WithDecoderMaxMemory(decoderMemory), zstd.WithDecoderLowmem(true)}}.OpenReader(r)
	case artifact.TarGz:
		return archives.Gz{}.OpenReader(r)
	case artifact.TarXz:
		return archives.Xz{}.OpenReader(r)
	}
	return nil, fmt.Errorf("%s: not an archive format", format)
}

type discard struct{}

func (discard) directory(entry) error { return nil }
func (discard) symlink(entry) error   { return nil }
func (discard) hardlink(entry) error  { return nil }
func (discard) file(_ entry, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}
