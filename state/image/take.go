package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/accounts"
)

// Taker takes images of a host.
type Taker struct {
	Host *host.Host
	Keep Keeper // nil stores no content: the image is only for comparison

	ctx context.Context
}

// Take takes the image of a subject. The image of a subject that cannot be restored has no parts.
func (t Taker) Take(ctx context.Context, s host.Subject) (Image, error) {
	t.ctx = ctx
	switch s.Kind {
	case host.KindFile:
		p, err := t.path(s.Name)
		return Image{[]Part{p}}, err
	case host.KindTree:
		return t.tree(s.Name)
	case host.KindUser, host.KindGroup:
		return t.account(s)
	case host.KindUnit:
		return t.unit(ctx, s.Name)
	case host.KindBoot:
		return t.boot(ctx, s.Name)
	case host.KindPackage:
		return t.pack(s.Name)
	case host.KindAlternative:
		return t.alternative(s.Name)
	}
	return t.kernel(s)
}

// path describes a path itself.
func (t Taker) path(name string) (Part, error) {
	p := Part{Name: name, Type: Absent}
	info, err := t.Host.Files.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrNotDir) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.Mode, p.UID, p.GID = uint32(info.Mode), info.UID, info.GID
	switch {
	case info.IsLink():
		p.Type, p.Mode = Link, 0 // a link has no mode of its own
		p.Text, err = t.Host.Files.Readlink(name)
		return p, err
	case info.IsDir():
		p.Type = Directory
	case info.IsRegular():
		p.Type, p.Size, p.Modified = File, info.Size, nanoseconds(info.Modified)
	default:
		p.Type = Special
		return p, nil
	}
	if p.Xattrs, err = t.Host.Files.Attributes(name); err != nil {
		return p, err
	}
	if p.Type == File {
		return p, t.content(&p)
	}
	return p, nil
}

// content computes the checksum of a file and, if Keep is set, stores the content.
func (t Taker) content(p *Part) error {
	f, err := t.Host.Files.Open(p.Name)
	if err != nil {
		return err
	}
	defer f.Close()
	seen := host.Bounded(t.ctx, f)
	if hasHole(f, p.Size) {
		return t.unread(p, seen)
	}
	return t.sum(p, seen)
}

// maxHole is the size from which a sparse file is not read for its checksum. A user can create a sparse file of 100 GB
// at once, and reading it takes minutes.
const maxHole = 1 << 20

// hasHole reports whether a large file has holes.
func hasHole(f io.Reader, size int64) bool {
	seeker, ok := f.(io.Seeker)
	if !ok || size <= maxHole {
		return false
	}
	hole, err := seeker.Seek(0, unix.SEEK_HOLE)
	if _, back := seeker.Seek(0, io.SeekStart); err != nil || back != nil {
		return false // unsupported by the filesystem, or an error that the read reports
	}
	return hole < size
}

// unread uses the size and the time of the last change of a file in the place of a checksum. If Keep is set, the
// content is stored anyway, unless it is too large.
func (t Taker) unread(p *Part, f io.Reader) (err error) {
	if t.Keep != nil {
		p.Pieces, p.Lost, err = t.Keep.Keep(f, p.Size)
	}
	p.Sum = fmt.Sprintf("size %d, modified %d", p.Size, p.Modified)
	return err
}

func (t Taker) sum(p *Part, r io.Reader) error {
	hash := sha256.New()
	all := io.TeeReader(r, hash)
	if t.Keep != nil {
		var err error
		if p.Pieces, p.Lost, err = t.Keep.Keep(all, p.Size); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return err
	}
	p.Sum = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// maxTree is the maximum number of entries of a tree in an image.
const maxTree = 10000

// tree describes everything below a path, parents first.
func (t Taker) tree(top string) (Image, error) {
	var i Image
	err := t.walk(top, &i)
	if errors.Is(err, errTooMany) {
		return Image{[]Part{{Name: top, Type: Directory, Lost: fmt.Sprintf("it has more than %d files", maxTree)}}}, nil
	}
	return i, err
}

var errTooMany = errors.New("too many files")

func (t Taker) walk(name string, i *Image) error {
	if len(i.Parts) >= maxTree {
		return errTooMany
	}
	p, err := t.path(name)
	if err != nil {
		return err
	}
	i.Parts = append(i.Parts, p)
	if p.Type != Directory {
		return nil
	}
	names, err := t.Host.Files.ReadDir(name)
	if err != nil {
		return err
	}
	for _, child := range names {
		if err := t.walk(path.Join(name, child), i); err != nil {
			return err
		}
	}
	return nil
}

// account describes the lines of a user or group.
func (t Taker) account(s host.Subject) (Image, error) {
	var i Image
	for _, file := range accounts.FilesOf(s.Kind) {
		line, err := accounts.LineOf(t.Host, file, s.Name)
		if err != nil {
			return i, err
		}
		p := Part{Name: file, Type: Absent}
		if line.Text != "" {
			p.Type, p.Text, p.Size = Line, line.After, int64(len(line.Text))
			if err := t.sum(&p, strings.NewReader(line.Text)); err != nil {
				return i, err
			}
		}
		i.Parts = append(i.Parts, p)
	}
	return i, nil
}
