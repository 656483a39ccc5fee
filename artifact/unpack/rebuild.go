package unpack

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Rebuild makes a directory from a tree that was joined from chunks, by the same rules as Into and with the same
// result. Large files that an older release on this host has are cloned if the filesystem supports it (FICLONE), so
// that they share disk space; a clone is a separate file, unlike a hard link, and its digest is checked.
func Rebuild(ctx context.Context, t *chunk.Tree, dir *os.Root, limits Limits) (Unpacked, error) {
	rules := newRules(limits.withDefaults(), t.Release().Length)
	s := newSink(dir)
	err := rebuild(ctx, t, rules, s)
	if closed := s.close(); err == nil {
		err = closed
	}
	if err == nil {
		err = s.seal()
	}
	if err != nil {
		return Unpacked{Summary: rules.summary}, fmt.Errorf("rebuilding %s: %w", t.Release(), err)
	}
	tree := rules.tree()
	if got, want := manifest.Digest(tree.Encode()), manifest.Digest(t.List().Encode()); got != want {
		return Unpacked{}, &trust.Refused{Check: trust.CheckDigest, Of: t.Release().String(),
			Err: errors.New("its files are not those that its list names")}
	}
	return Unpacked{Summary: rules.summary, Tree: tree}, nil
}

func rebuild(ctx context.Context, t *chunk.Tree, rules *rules, s *sink) error {
	for _, listed := range t.List().Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := rules.admit(header(listed))
		if err != nil {
			return err
		}
		if e.kind != regular {
			err = put(e, s)
		} else {
			err = s.reuse(ctx, e, listed, t)
		}
		if err != nil {
			return err
		}
	}
	return rules.complete(ctx, nil)
}

// header converts an entry of a list to a tar header, so that the same rules apply.
func header(e manifest.Entry) *tar.Header {
	h := &tar.Header{Name: e.Name, Linkname: e.Link, Mode: 0o644, Size: e.Size}
	if e.Modified != 0 {
		h.ModTime = time.Unix(e.Modified, 0)
	}
	switch e.Kind {
	case manifest.File:
		h.Typeflag = tar.TypeReg
	case manifest.Executable:
		h.Typeflag, h.Mode = tar.TypeReg, 0o755
	case manifest.Directory:
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
	case manifest.Symlink:
		h.Typeflag = tar.TypeSymlink
	case manifest.Hardlink:
		h.Typeflag = tar.TypeLink
	}
	return h
}

// reuse makes a file from the file of an older release, or else from its chunks.
func (s *sink) reuse(ctx context.Context, e entry, listed manifest.Entry, t *chunk.Tree) error {
	if e.size > smallFile && !s.noClone {
		if from := t.Same(listed); from != nil {
			cloned, err := s.clone(e, from, listed.Digest)
			if err := errors.Join(err, from.Close()); err != nil {
				return err
			}
			if cloned {
				return t.Skip(e.size)
			}
		}
	}
	return s.file(e, io.LimitReader(artifact.Stoppable(ctx, t), e.size))
}

// errNoClone is the error if a file cannot be cloned: the filesystem does not support it, or the file has changed.
var errNoClone = errors.New("not cloned")

func (s *sink) clone(e entry, from *os.File, want [32]byte) (bool, error) {
	in, err := s.enter(e.name)
	if err != nil {
		return false, err
	}
	err = create(in, e, func(f *os.File) error {
		if err := unix.IoctlFileClone(int(f.Fd()), int(from.Fd())); err != nil {
			s.noClone = true
			return errNoClone
		}
		return hasSum(f, e.size, want)
	})
	if errors.Is(err, errNoClone) {
		return false, unix.Unlinkat(int(in.file.Fd()), path.Base(e.name), 0)
	}
	e.listed.Digest = want
	return err == nil, err
}

// hasSum returns errNoClone if a file has another size or SHA-256.
func hasSum(f *os.File, size int64, want [32]byte) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size+1)); err != nil {
		return err
	}
	if [32]byte(sum.Sum(nil)) != want {
		return errNoClone
	}
	return nil
}
