// Package packaging makes an artifact of a source tree.
//
// The same tree gives the same bytes for every user, machine, time and umask: names are sorted, owners and times
// are fixed, modes are 0644 or 0755, and nothing of the building machine is recorded. So a digest identifies a
// tree, two people can check each other, and a promotion points at existing bytes.
package packaging

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
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/packaging/seen"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Options configure a build. The zero value is right for most builds.
type Options struct {
	// Time is the modification time of every entry; if it is zero, none is written, and files get the time at which a
	// host unpacks them.
	Time time.Time
	// Skip is a file to leave out, such as the artifact itself.
	Skip string
	// LeaveOut has patterns of names, or of paths if they contain a slash, that are not packed.
	LeaveOut []string
	// Allow lists the files that look like secrets and may be packed; any other such file is an error.
	Allow []Allowed
	// Progress, if set, is called with the number of bytes of files that were packed, and that of all files.
	Progress func(done, total int64)
	// Checked is set if Check has scanned the tree for secrets, and the tree has not changed since, or if no scan is
	// wanted.
	Checked bool
}

// Summary counts the packed files.
type Summary struct {
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`    // content of regular files
	LeftOut []string `json:"left_out"` // names that were not packed
	// Mixed says which programs are for different architectures, so that no requirement was written; "" for none.
	Mixed string `json:"mixed,omitempty"`
}

// Build packs a tree as tar.zst. It returns an error that lists everything a host would refuse to unpack.
func Build(ctx context.Context, dir string, w io.Writer, o Options) (Summary, error) {
	tree, err := openTree(dir)
	if err != nil {
		return Summary{}, err
	}
	defer tree.Close()
	entries, summary, err := scan(ctx, dir, tree, o)
	if err == nil {
		entries, err = describe(tree, entries, &summary)
	}
	if err != nil {
		return Summary{}, err
	}
	defer process.CollectOften()()
	compressed, err := newFrames(w)
	if err != nil {
		return Summary{}, err
	}
	archive := tar.NewWriter(compressed)
	counted := &counter{Writer: archive, total: summary.Bytes, progress: o.Progress}
	err = packAll(ctx, counted, tree, entries, o.Time)
	if err == nil {
		err = archive.Close()
	}
	if closed := compressed.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return Summary{}, err
	}
	return summary, nil
}

// counter is an archive that reports how many bytes of files were written to it.
type counter struct {
	*tar.Writer
	done, total int64
	progress    func(done, total int64) // may be nil
}

// Write writes a part of a file's content.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	if c.done += int64(n); c.progress != nil && n > 0 {
		c.progress(c.done, c.total)
	}
	return n, err
}

func packAll(ctx context.Context, archive *counter, tree *seen.Tree, entries []found, at time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	files := readAhead(ctx, tree, entries)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := pack(ctx, archive, tree, e, at, files)
		if errors.Is(err, seen.ErrChanged) {
			return err // it has the name
		}
		if err != nil {
			return fmt.Errorf("packing %s: %w", e.Name, err)
		}
	}
	return nil
}

// Check returns an error that lists everything in a tree that Build would refuse, without packing it.
func Check(ctx context.Context, dir string, o Options) error {
	tree, err := openTree(dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	_, _, err = scan(ctx, dir, tree, o)
	return err
}

// Drop removes from a tree the files that patterns leave out.
func Drop(tree string, patterns []string) error {
	return filepath.WalkDir(tree, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(tree, file)
		if err != nil || name == "." || !leaves(patterns, filepath.ToSlash(name)) {
			return err
		}
		if d.IsDir() {
			if err := os.RemoveAll(file); err != nil {
				return err
			}
			return fs.SkipDir
		}
		return os.Remove(file)
	})
}

// found is one entry of a tree that will be packed.
type found struct {
	seen.Entry

	data []byte // the content of a file that is not in the tree
}

// leftOut reports whether a file or directory is left out of artifacts.
func (o Options) leftOut(name string, skipped bool) bool {
	return path.Base(name) == ".git" || skipped || leaves(o.LeaveOut, name)
}

// openTree opens a tree, which must be a directory.
func openTree(dir string) (*seen.Tree, error) {
	tree, err := seen.Open(dir)
	if errors.Is(err, syscall.ENOTDIR) {
		err = diag.Usage.Hint(fmt.Errorf("%s is not a directory", dir), "give the directory whose content is the release")
	}
	return tree, err
}

func scan(ctx context.Context, dir string, tree *seen.Tree, o Options) ([]found, Summary, error) {
	var entries []found
	var summary Summary
	var problems diag.List
	skipped := same(o.Skip)
	err := tree.Walk(func(e seen.Entry) error {
		if e.Mode.IsDir() && ctx.Err() != nil {
			return ctx.Err()
		}
		if e.Name == "." {
			return nil
		}
		if o.leftOut(e.Name, skipped(filepath.Join(dir, filepath.FromSlash(e.Name)), e)) {
			summary.LeftOut = append(summary.LeftOut, e.Name)
			if e.Mode.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if problem := refused(e); problem != "" {
			problems.Add(diag.Pos{File: e.Name}, "%s", problem)
			return nil
		}
		entries = append(entries, found{Entry: e})
		summary.Files++
		if e.Mode.IsRegular() {
			summary.Bytes += e.Size
		}
		return nil
	})
	if err == nil && !o.Checked {
		err = o.findSecrets(ctx, tree, entries, &problems)
	}
	return entries, summary, errors.Join(err, problems.Err())
}

// same returns a function that reports whether a path leads to a file.
func same(skip string) func(file string, e seen.Entry) bool {
	one, err := os.Stat(skip)
	return func(file string, e seen.Entry) bool {
		if err != nil || e.Mode.IsRegular() && e.Size != one.Size() {
			return false
		}
		other, err := os.Stat(file)
		return err == nil && os.SameFile(one, other)
	}
}

// refused returns the reason why hosts would refuse an entry, or "".
func refused(e seen.Entry) string {
	switch {
	case e.Mode.IsRegular(), e.Mode.IsDir():
		return ""
	case e.Mode&fs.ModeSymlink != 0:
		return linkProblem(e.Name, e.Link)
	}
	return fmt.Sprintf("it is a %s, and only files, directories and links can be released", kindName(e.Mode))
}

func linkProblem(name, link string) string {
	switch {
	case path.IsAbs(link):
		return fmt.Sprintf("it links to %q, and only relative links can be released", link)
	case strings.HasPrefix(path.Join(path.Dir(name), link)+"/", "../"):
		return fmt.Sprintf("it links to %q, which leaves the tree", link)
	}
	return ""
}

func kindName(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeNamedPipe != 0:
		return "fifo"
	}
	return "device"
}

func pack(ctx context.Context, archive *counter, tree *seen.Tree, e found, at time.Time, files *ahead) error {
	h := &tar.Header{Name: e.Name, ModTime: at, Mode: 0o644}
	if at.IsZero() {
		h.ModTime = time.Unix(0, 0)
	}
	switch {
	case e.Mode.IsDir():
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, e.Name+"/", 0o755
	case e.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Link, 0o777
	default:
		h.Typeflag, h.Size = tar.TypeReg, e.Size
		if e.Mode&0o111 != 0 {
			h.Mode = 0o755
		}
	}
	if err := archive.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	if e.data != nil {
		_, err := archive.Write(e.data)
		return err
	}
	if e.small() {
		data, err := files.next(ctx, h.Size)
		if err != nil {
			return err
		}
		_, err = archive.Write(data)
		return err
	}
	return packFile(ctx, archive, tree, e.Entry)
}

// copySize is the number of bytes of a large file that are read at once.
const copySize = 1 << 20

// packFile copies exactly the number of bytes in the header. It returns an error if the file changes meanwhile.
func packFile(ctx context.Context, archive *counter, tree *seen.Tree, e seen.Entry) error {
	f, err := tree.Open(e)
	if err != nil {
		return err
	}
	defer f.Close()
	content := io.LimitReader(artifact.Stoppable(ctx, f), e.Size)
	_, err = io.CopyBuffer(archive, content, make([]byte, min(e.Size, copySize)))
	return complete(f, err)
}
