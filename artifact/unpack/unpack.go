// Package unpack makes a directory from an artifact.
//
// The bytes come only from a *trust.Verified, or from a *chunk.Tree, whose every chunk is verified, so everything that
// is unpacked was signed. A signature says who made an archive, not that it is harmless, so every entry is checked by
// this package's own rules before anything is written: names inside the release, no duplicate names, nothing below a
// link, links that stay inside, no devices, no setuid, no attributes, and limits on bytes, files and depth.
// The archive libraries only decompress and parse headers. Decompression runs concurrently with writing, small files
// are written by several workers, and memory is limited by a constant plus the list of names.
//
// The result does not depend on who packed the archive: files become 0644 or 0755 without their write bits, directories
// 0755, the pillar's directories 0700. Paths that the release's corpus.yaml declares writable keep their write bits.
// Nothing is durable until the caller has synced the filesystem.
package unpack

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Limits are limits of the unpacked tree. A zero field means its default.
type Limits struct {
	Bytes int64 // total size of all files; 64 GiB by default
	Files int   // entries of any kind, and directories above them; 2 million by default
	Depth int   // path components; 64 by default
	Ratio int   // unpacked bytes, including headers, per byte of the artifact, beyond 64 MiB; 1,000 by default
}

// ratioFloor is the size up to which Ratio is not checked: small trees of zeros are harmless.
const ratioFloor = 64 << 20

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
	if l.Ratio == 0 {
		l.Ratio = 1000
	}
	return l
}

// Summary counts the unpacked entries and bytes.
type Summary struct {
	Files int   `json:"files"` // entries of any kind
	Bytes int64 `json:"bytes"` // content of regular files
}

// Unpacked is the result of unpacking.
type Unpacked struct {
	Summary
	Tree *manifest.Manifest // every name, and the digest of every file
}

// Hostile is the error for an archive with an entry that is not allowed.
type Hostile struct {
	Entry string
	Rule  string
}

func (h *Hostile) Error() string {
	return fmt.Sprintf("refused archive entry %q: %s", clipped(h.Entry), clipped(h.Rule))
}

// clipped shortens a text for a message.
func clipped(text string) string {
	const most = 400
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// Hint returns a hint to pack the tree again.
func (h *Hostile) Hint() string {
	return diag.Tree.Coded("pack the tree with `corpus build`, which names what it leaves out")
}

// Into unpacks a verified artifact into an empty directory. On failure the directory contains the entries that were
// unpacked so far, and the caller must remove it. An artifact that is still being downloaded is unpacked as it arrives,
// and Into fails at the end if its length or digest is not the signed one. Into also returns when its context ends
// while it waits for bytes.
func Into(ctx context.Context, v *trust.Verified, dir *os.Root, limits Limits) (Unpacked, error) {
	rules := newRules(limits.withDefaults(), v.Release().Length)
	err := fill(dir, func(to target) error {
		if v.Release().Format == artifact.Zip {
			whole, err := v.Whole(ctx)
			if err != nil {
				return err
			}
			return walkZip(ctx, whole, rules, to)
		}
		return walkTar(ctx, v.Reader(), v.Release().Format, rules, to)
	})
	if err != nil {
		return Unpacked{Summary: rules.summary}, fmt.Errorf("unpacking %s: %w", v.Release(), err)
	}
	return Unpacked{Summary: rules.summary, Tree: rules.tree()}, nil
}

// fill writes a release into a directory: its entries, and then the modes that can only be set after the last one.
func fill(dir *os.Root, walk func(target) error) error {
	s := newSink(dir)
	err := walk(s)
	if closed := s.close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return s.seal()
}

// sized is a reader with random access, which formats with a directory at their end
// need.
type sized interface {
	io.ReaderAt
	Size() int64
}

// Inspect reads an archive to its end by the same rules without writing anything. A zip archive must be read from a
// *bytes.Reader or an *io.SectionReader.
func Inspect(ctx context.Context, r io.Reader, format artifact.Format, limits Limits) (Summary, error) {
	rules := newRules(limits.withDefaults(), 0)
	if format != artifact.Zip {
		err := walkTar(ctx, rules.growth.countPacked(r), format, rules, discard{})
		return rules.summary, err
	}
	all, ok := r.(sized)
	if !ok {
		return Summary{}, errors.New("a zip archive cannot be read from its start to its end")
	}
	rules.growth.packed = all.Size()
	err := walkZip(ctx, all, rules, discard{})
	return rules.summary, err
}

// target receives the admitted entries.
type target interface {
	directory(e entry) error
	file(e entry, content io.Reader) error
	symlink(e entry) error
	hardlink(e entry) error
}

// place admits an entry and passes it on. open returns a regular file's content.
func place(h *tar.Header, open func() (io.ReadCloser, error), rules *rules, to target) error {
	e, err := rules.admit(h)
	if err != nil {
		return err
	}
	if e.kind != regular {
		return put(e, to)
	}
	content, err := open()
	if err != nil {
		return err
	}
	return errors.Join(to.file(e, content), content.Close())
}

// put passes on an entry without content.
func put(e entry, to target) error {
	switch e.kind {
	case directory:
		return to.directory(e)
	case symlink:
		return to.symlink(e)
	case hardlink:
		return to.hardlink(e)
	}
	return nil
}

// complete makes the checks that are only possible after the last entry.
func (r *rules) complete(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	if r.summary.Files == 0 {
		return errors.New("the archive is empty")
	}
	return r.checkLinks(ctx)
}

type discard struct{}

func (discard) directory(entry) error { return nil }
func (discard) symlink(entry) error   { return nil }
func (discard) hardlink(entry) error  { return nil }
func (discard) file(_ entry, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}
