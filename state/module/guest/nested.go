package guest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// subvolumeInode is the inode of the root directory of each btrfs subvolume.
const subvolumeInode = 256

// nested returns the btrfs subvolumes in a tree, outermost ones only: root of a guest can make them. They are not on
// the file system of the tree, by st_dev, so tar and rm with --one-file-system leave them out.
func nested(ctx context.Context, h *host.Host, guest, dir string) (dirs []string, err error) {
	out, err := h.Tool(ctx, host.Tool{Argv: []string{"find", dir, "-xdev", "-type", "d", "(", "-path", dir, "-o", "-inum",
		strconv.Itoa(subvolumeInode), ")", "-printf", `%D %p\0`}, Limit: hour, Package: "findutils"})
	if err != nil {
		return nil, host.Failed(diag.Container, err, "finding the subvolumes of guest "+guest,
			"see whether find is that of GNU findutils")
	}
	top, _, _ := strings.Cut(out, " ") // find begins with the directory itself
	for line := range strings.SplitSeq(out, "\x00") {
		if device, found, is := strings.Cut(line, " "); is && device != top {
			dirs = append(dirs, found)
		}
	}
	return dirs, nil
}

// refuseNested returns an error if a tree has nested subvolumes.
func refuseNested(ctx context.Context, h *host.Host, guest, dir string) error {
	dirs, err := nested(ctx, h, guest, dir)
	if err != nil || len(dirs) == 0 {
		return err
	}
	return diag.Container.Hint(fmt.Errorf("the archive of guest %s would lack the btrfs subvolume %s", guest,
		strings.Join(dirs, ", ")), "on this node, copy what it has into a directory, and remove it with `btrfs subvolume "+
		"delete`")
}

// removeNested removes the subvolumes in a tree, innermost ones first. The guest is stopped, so none of its users can
// redirect the paths.
func removeNested(ctx context.Context, h *host.Host, guest, dir string) error {
	dirs, err := nested(ctx, h, guest, dir)
	if err != nil {
		return err
	}
	for _, one := range dirs {
		if err := removeNested(ctx, h, guest, one); err != nil {
			return err
		}
		_, err := h.Tool(ctx, host.Tool{Argv: []string{"btrfs", "subvolume", "delete", one}, Limit: hour,
			Package: packageOf("btrfs"), Plain: []string{one},
			Changes: host.Subject{Kind: host.KindCommand, Name: "removal of guest " + guest}})
		if err != nil {
			return host.Failed(diag.Container, err, "removing the subvolume "+one, "see `btrfs subvolume list "+dir+"`")
		}
	}
	return nil
}
