package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// An image has setuid programs of the guest's root. Until systemd-nspawn gives the files to the user IDs of the guest,
// they belong to the node's root, so only root may reach root file systems.
const dirMode = fs.FileMode(0o700)

// isOpen reports whether users other than root can reach the content of the directory of root file systems. It returns
// an error if another user owns the directory. found is false if there is none.
func isOpen(h *host.Host, dir string) (open, found bool, err error) {
	info, err := h.Files.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, false, nil
	case err != nil:
		return false, false, err
	}
	top, err := h.Files.Stat("/")
	if err != nil {
		return false, true, err
	}
	if !info.IsDir() || info.UID != top.UID {
		return false, true, diag.Container.Hint(fmt.Errorf("%s is not a directory of root's", dir),
			"move it away: the agent makes it with mode 0700 for the guests of this node")
	}
	return info.Mode.Perm()&0o077 != 0, true, nil
}

// open adds the directory of root file systems to changes if users other than root can reach its content.
func (p *present) open(h *host.Host, changes *value.Map) error {
	open, _, err := isOpen(h, cloud.Disks)
	if open {
		changes.Set("directory", cloud.Disks+" closed for users other than root")
	}
	return err
}

// closeDir creates the directory of root file systems, or removes the permissions of other users from it.
func closeDir(h *host.Host, dir string) error {
	open, found, err := isOpen(h, dir)
	if err != nil || found && !open {
		return err
	}
	if err := h.MkdirAll(path.Dir(dir)); err != nil {
		return err
	}
	if !found {
		return h.Files.Mkdir(dir, dirMode)
	}
	resolved, err := h.Files.Resolve(dir)
	if err != nil {
		return err
	}
	return h.Files.Chmod(resolved, dirMode)
}

// unpack makes the root file system. It gets its name only when it is complete and on the disk. If that fails, what was
// made is removed: a disk that is full has room again, for the guests that run there.
func (p *present) unpack(ctx context.Context, h *host.Host) error {
	partial := partialOf(p.disk())
	if err := errors.Join(p.ended(ctx, h), removeTree(ctx, h, p.Name, partial)); err != nil {
		return err
	}
	err := p.fill(ctx, h, partial)
	if err == nil {
		err = syncTree(h, partial)
	}
	switch {
	case err != nil && p.volume != nil:
		return errors.Join(err, p.volume.remove(ctx, h))
	case err != nil:
		return errors.Join(err, removeTree(ctx, h, p.Name, partial))
	case p.volume != nil:
		return p.volume.complete(ctx, h)
	}
	return h.Files.Rename(partial, p.root())
}

// partialOf returns the directory of a root file system that is not complete.
func partialOf(disk string) string { return path.Join(cloud.Disks, ".new-"+disk) }

// fill makes the root file system in a directory.
func (p *present) fill(ctx context.Context, h *host.Host, dir string) error {
	if err := p.emptyDir(ctx, h, dir); err != nil {
		return err
	}
	_, err := h.Tool(ctx,
		host.Tool{Argv: []string{"tar", "--extract", "--file", p.Image, "--directory", dir, "--numeric-owner",
			"--same-permissions", "--xattrs", "--xattrs-include=*", "--warning=no-timestamp",
			"--warning=no-unknown-keyword"}, Limit: p.timeToUnpack(h), Package: "tar",
			Changes: host.Subject{Kind: host.KindCommand, Name: "unpacking the image of guest " + p.Name}})
	if err != nil {
		return p.notUnpacked(err)
	}
	if err := p.restrict(ctx, h, dir); err != nil {
		return err
	}
	if err := p.settle(ctx, h, dir); err != nil {
		return err
	}
	return p.driver.Give(ctx, h, p, dir)
}

// settle configures a tree as this guest. A tree whose guest has run already has to be this guest's, and root follows
// no path in it.
func (p *present) settle(ctx context.Context, h *host.Host, dir string) error {
	if p.Moved {
		return p.recognize(h, dir)
	}
	return p.seed(ctx, h, dir)
}

// timeToUnpack returns how long tar may take.
func (p *present) timeToUnpack(h *host.Host) time.Duration {
	info, err := h.Files.Stat(p.Image)
	if err != nil {
		return hour // tar says what is wrong
	}
	return timeFor(info.Size)
}

// ended returns an error for the archive of a disk that lacks the blocks of zeros with which an archive ends. tar does
// not notice that if the archive was cut between two files.
func (p *present) ended(ctx context.Context, h *host.Host) error {
	if !p.Moved {
		return nil
	}
	const size = 1024
	out, err := h.Tool(ctx, host.Tool{Argv: []string{"tail", "--bytes=" + strconv.Itoa(size), p.Image},
		Package: "coreutils"})
	if err != nil {
		return host.Failed(diag.Container, err, "reading "+p.Image, "see whether it is a file")
	}
	if out == strings.Repeat("\x00", size) {
		return nil
	}
	return p.cut("")
}

// cut is the error of the archive of a disk that is not complete.
func (p *present) cut(why string) error {
	return diag.Container.Hint(fmt.Errorf("%s is cut: it lacks the end of a tar archive%s", p.Image, why),
		"copy it again from the node before")
}

// notUnpacked returns the error of an image, or of the archive of a disk, that tar did not unpack.
func (p *present) notUnpacked(err error) error {
	hint := "see whether it is a tar archive of a root file system"
	if isFull(err) {
		hint = "make room in " + cloud.Disks + " or, if its size is too small for it, enlarge the disk of the guest"
	} else if p.Moved && strings.Contains(err.Error(), "Unexpected EOF") {
		return p.cut(" (" + err.Error() + ")")
	}
	return host.Failed(diag.Container, err, "unpacking "+p.Image, hint)
}

// recognize returns an error unless a disk that came from another node is that of the guest.
func (p *present) recognize(h *host.Host, dir string) error {
	root, err := h.Files.Beneath(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	id, err := root.ReadFile("/etc/machine-id")
	if err == nil && strings.TrimSpace(string(id)) == p.ID {
		return nil
	}
	return errors.Join(err, diag.Container.Hint(
		fmt.Errorf("%s has no /etc/machine-id with %s, the ID of guest %s", p.Image, p.ID, p.Name),
		"copy the archive of this guest from the node before"))
}

// emptyDir makes the directory of a new root file system, with its limit unless its content comes from another node.
func (p *present) emptyDir(ctx context.Context, h *host.Host, dir string) error {
	if p.volume != nil {
		return p.volume.make(ctx, h, p.bytes)
	}
	if p.quota == nil {
		return h.Files.Mkdir(dir, dirMode)
	}
	if err := p.quota.Prepare(ctx, h, p, dir); err != nil || p.Moved {
		return err
	}
	return p.quota.Limit(ctx, h, p, dir, p.bytes)
}

// syncTree writes a tree to the disk.
func syncTree(h *host.Host, dir string) error {
	root, err := h.Files.Beneath(dir)
	if err != nil {
		return err
	}
	return errors.Join(root.SyncAll(), root.Close())
}

// restrict removes the device nodes of an image, through which a guest could use the devices of the node; a guest gets
// its own /dev. Devices 0:0 of a disk that comes from another node stay: overlayfs marks deleted files with them. If
// the image has no entry for the root directory, or one with mode 0700, restrict sets the mode 0755.
func (p *present) restrict(ctx context.Context, h *host.Host, dir string) error {
	argv := []string{"find", dir, "-xdev", "(", "-type", "b", "-o", "-type", "c", ")"}
	if p.Moved {
		argv = append(argv, "!", "-exec", "sh", "-c", `test "$(stat -c %t:%T -- "$1")" = 0:0`, "sh", "{}", ";")
	}
	_, err := h.Tool(ctx,
		host.Tool{Argv: append(argv, "-delete"), Limit: hour, Package: "findutils",
			Changes: host.Subject{Kind: host.KindCommand, Name: "removing the device nodes of guest " + p.Name}})
	if err != nil {
		return host.Failed(diag.Container, err, "removing the device nodes of "+p.Image,
			"see whether find is that of GNU findutils")
	}
	info, err := h.Files.Lstat(dir)
	if err != nil || info.Mode.Perm() != dirMode {
		return err
	}
	return h.Files.Chmod(dir, 0o755)
}
