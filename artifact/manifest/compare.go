package manifest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact"
)

func (a *audit) trusts(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return a.Trusted == nil || !ok || slices.Contains(a.Trusted, s.Uid)
}

// cache reports whether a name is Python's bytecode cache of a program that the agent ran, and belongs to a trusted
// user.
func (a *audit) cache(name string, info fs.FileInfo) bool {
	return a.Trusted != nil && a.trusts(info) && slices.Contains(strings.Split(name, "/"), "__pycache__")
}

// change fills in the owner and the times of a file.
func change(name, what string, info fs.FileInfo) Change {
	c := Change{Name: name, What: what, Modified: info.ModTime().UTC()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		c.Owner = fmt.Sprint(s.Uid)
		c.Changed = time.Unix(s.Ctim.Unix()).UTC()
	}
	return c
}

// compare returns the difference of a name in words, or "".
func (a *audit) compare(ctx context.Context, e Entry, known bool, name string, info fs.FileInfo) (string, error) {
	free := a.mayChange(name)
	switch {
	case !known && free:
		return "", nil
	case !known:
		return wasAdded, nil
	case kindOf(info) != e.Kind.plain():
		return "is of another kind", nil
	case free:
		return "", nil
	case e.Kind == Directory:
		if mode := octal(info.Mode()); !a.anyMode && !a.modeOf(e, name).Fits(mode) {
			return fmt.Sprintf(hasMode+"%04o", mode), nil
		}
		return "", nil
	case e.Kind == Symlink:
		target, err := a.root.Readlink(name)
		if err == nil && target != e.Link {
			return fmt.Sprintf("links to %q, not to %q", target, e.Link), nil
		}
		return "", err
	}
	if e.Kind == Hardlink {
		e = a.listed[e.Link]
	}
	what, err := a.content(ctx, e, name, info)
	if mode := octal(info.Mode()); !a.modeFits(e, name, mode) {
		also := fmt.Sprintf(hasMode+"%04o", mode)
		if what != "" {
			also += " and " + what
		}
		what = also
	}
	return what, err
}

// capabilities is the attribute with the capabilities that a program gets for every user.
const capabilities = "security.capability"

func (a *audit) content(ctx context.Context, e Entry, name string, info fs.FileInfo) (string, error) {
	if info.Size() != e.Size {
		return fmt.Sprintf("has %d bytes, not %d", info.Size(), e.Size), nil
	}
	// The file may have been replaced by a named pipe since, which a blocking open would wait for.
	f, err := a.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if gone(err) || errors.Is(err, syscall.ELOOP) {
		return "changed while it was read", nil
	}
	if err != nil {
		return "", err
	}
	if now, err := f.Stat(); err != nil || !now.Mode().IsRegular() {
		return "changed while it was read", errors.Join(err, f.Close())
	}
	if size, err := unix.Fgetxattr(int(f.Fd()), capabilities, nil); err == nil && size > 0 {
		return "has capabilities (setcap), which unpacking never gives", f.Close()
	}
	sum := sha256.New()
	_, err = io.Copy(sum, io.LimitReader(artifact.Stoppable(ctx, f), e.Size+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if [32]byte(sum.Sum(nil)) != e.Digest {
		return "has other content", nil
	}
	return "", nil
}
