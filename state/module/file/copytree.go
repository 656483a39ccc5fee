package file

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
)

// copyTree copies a file, a symbolic link, or a directory with all its content, modes included. Nothing may
// exist at to. own is the owner of the copy.
func copyTree(ctx context.Context, h *host.Host, from, to string, own owner) error {
	return copyBelow(ctx, h, from, to, own, 0)
}

func copyBelow(ctx context.Context, h *host.Host, from, to string, own owner, level int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := h.Files.Lstat(from)
	if err != nil {
		return err
	}
	if err := copyOne(ctx, h, from, to, info, own); err != nil || !info.IsDir() {
		return err
	}
	if err := descent.Enter(ctx, from, level); err != nil {
		return err
	}
	names, err := h.Files.ReadDir(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyBelow(ctx, h, path.Join(from, name), path.Join(to, name), own, level+1); err != nil {
			return err
		}
	}
	return nil
}

func copyOne(ctx context.Context, h *host.Host, from, to string, info host.Info, own owner) error {
	uid, gid := own.ids()
	mode := copiedMode(info, uid, gid)
	switch {
	case info.IsLink():
		if err := copyLink(h, from, to); err != nil {
			return err
		}
	case info.IsDir():
		if err := h.Files.Mkdir(to, mode); err != nil {
			return err
		}
	case info.IsRegular():
		return copyContent(ctx, h, from, to, host.NewFile{Mode: &mode, UID: uid, GID: gid})
	default:
		return host.WithObstacle(from, errors.New(from+" is neither a file, a link nor a directory"))
	}
	if uid < 0 && gid < 0 {
		return nil
	}
	return h.Files.Own(to, uid, gid, &mode)
}

// copyLink makes a symbolic link with the target of another one.
func copyLink(h *host.Host, from, to string) error {
	target, err := h.Files.Readlink(from)
	if err != nil {
		return err
	}
	return h.Files.Symlink(target, to)
}

// copiedMode returns the mode of a copy. It drops the setuid or setgid bit if the copy has another owner or
// group, since the program would run as another user.
func copiedMode(info host.Info, uid, gid int) fs.FileMode {
	mode := info.Mode & permBits
	if info.IsDir() {
		return mode
	}
	if info.UID != cmp.Or(max(uid, 0), os.Geteuid()) {
		mode &^= fs.ModeSetuid
	}
	if info.GID != cmp.Or(max(gid, 0), os.Getegid()) {
		mode &^= fs.ModeSetgid
	}
	return mode
}

func copyContent(ctx context.Context, h *host.Host, from, to string, f host.NewFile) error {
	source, err := h.Files.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	f.Content = host.Bounded(ctx, source)
	return h.Files.Write(to, f)
}

// ownerOf returns the owner of a file. It is settable only if the process may change owners.
func ownerOf(h *host.Host, info host.Info) owner {
	return owner{uid: info.UID, gid: info.GID, settable: h.Files.CanChown()}
}
