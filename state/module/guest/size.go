package guest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// quota limits the sizes of root file systems on one file system.
type quota interface {
	// Prepare makes the empty directory of a new root file system, whose size can then be limited.
	Prepare(ctx context.Context, h *host.Host, p *present, dir string) error
	// Limit sets the size of a root file system. The guest may run.
	Limit(ctx context.Context, h *host.Host, p *present, dir string, bytes int64) error
	// Used returns the size of the content of a root file system.
	Used(ctx context.Context, h *host.Host, p *present) (int64, error)
}

// The kinds of quotas, as records have them.
const (
	btrfsKind   = "btrfs quota"
	projectKind = "project quota"
)

// quotaBelow returns the kind of quota that the file system of a directory has, "" for none. The directory may be a
// link.
func quotaBelow(h *host.Host, link string) (kind string, q quota, err error) {
	dir, err := h.Files.Resolve(link)
	if err != nil {
		return "", nil, fmt.Errorf("finding the file system of %s: %w", link, err)
	}
	mounts, err := host.ParsedTable(h, "/proc/self/mountinfo", walk.Mounts)
	if err != nil {
		return "", nil, fmt.Errorf("finding the file system of %s: %w", dir, err)
	}
	longest := 0
	for _, m := range mounts { // of several mounts on one directory, the last one is visible
		point := walk.MountWord(m.Place)
		if len(point) < longest || point != "/" && dir != point && !strings.HasPrefix(dir, point+"/") {
			continue
		}
		longest, kind, q = len(point), "", nil
		options := strings.Split(m.SuperBlock, ",")
		switch {
		case m.Type == "btrfs":
			kind, q = btrfsKind, btrfs{}
		case (m.Type == "ext4" || m.Type == "xfs") && slices.Contains(options, "prjquota"):
			kind, q = projectKind, projects{point}
		}
	}
	return kind, q, nil
}

// sized adds the limit that the disk of a guest needs to changes. A guest that was made without a limit has none, nor
// is one set below what the guest uses; the comment says so.
func (p *present) sized(ctx context.Context, h *host.Host, r record, changes *value.Map) (comment string, err error) {
	made := r.Step == ready
	p.bytes, p.kind, p.quota = 0, "", nil
	if p.Size == "" {
		return "", nil
	}
	if p.volume != nil {
		return p.sizedVolume(ctx, h, r, changes)
	}
	if p.kind, p.quota, err = quotaBelow(h, cloud.Disks); err != nil {
		return "", err
	}
	if p.quota == nil || made && r.Quota != p.kind {
		p.quota = nil
		p.kind = ""
		return "; nothing limits the size of its disk", nil
	}
	bytes, _ := cloud.ParseSize(p.Size) // checked by Valid
	if made {
		lost, err := p.limitIsLost(ctx, h, r)
		if err != nil {
			return p.unlimited(err)
		}
		if lost {
			r.Size = 0
		}
	}
	if made && r.Size == bytes {
		return "", nil
	}
	if made && (bytes < r.Size || r.Size == 0) {
		used, err := p.quota.Used(ctx, h, p)
		if err != nil {
			return p.unlimited(err)
		}
		if used > bytes {
			return "; " + keeps(r, used), nil
		}
	}
	p.bytes = bytes
	changes.Set("size", p.Size+" ("+p.kind+")")
	return "", nil
}

// limitIsLost reports whether the disk of a guest lacks the limit that its record has: btrfs forgets limits when its
// quotas are switched off.
func (p *present) limitIsLost(ctx context.Context, h *host.Host, r record) (bool, error) {
	b, is := p.quota.(btrfs)
	if !is || r.Size == 0 {
		return false, nil
	}
	limit, err := b.limit(ctx, h, p)
	return limit == "none", err
}

// unlimited returns a comment in place of an error that says that the quotas are switched off: the guest has no limit
// until they are on again.
func (p *present) unlimited(err error) (comment string, _ error) {
	for _, off := range []string{"quotas not enabled", "quota not enabled", "no quota enabled"} {
		if strings.Contains(err.Error(), off) {
			return fmt.Sprintf("; nothing limits the size of its disk: quotas are switched off (%v); a run sets the limit "+
				"when they are on", err), nil
		}
	}
	return "", err
}

// keeps says that a guest keeps its limit.
func keeps(r record, used int64) string {
	if r.Size == 0 {
		return fmt.Sprintf("its disk has no limit yet, since it uses %s", diag.Size(used))
	}
	return fmt.Sprintf("its disk keeps the size of %s, since it uses %s", diag.Size(r.Size), diag.Size(used))
}

// fit limits the disk of a guest that is being made. A disk that comes from another node may use more than the limit:
// it has none until it fits.
func (p *present) fit(ctx context.Context, h *host.Host, r *record) error {
	if p.Moved {
		if used, err := p.quota.Used(ctx, h, p); err != nil || used > p.bytes {
			return err
		}
	}
	r.Size = p.bytes
	return p.quota.Limit(ctx, h, p, p.root(), p.bytes)
}

// resize limits the disk of a guest that was made before, and then records the limit.
func (p *present) resize(ctx context.Context, h *host.Host) error {
	r, _, err := readRecord(h, p.Name)
	if err != nil {
		return err
	}
	if p.volume != nil {
		return p.enlarge(ctx, h, r)
	}
	if err := p.quota.Limit(ctx, h, p, p.root(), p.bytes); err != nil {
		return err
	}
	r.Size = p.bytes
	return r.write(h)
}

// quotaTool runs a program that changes the limit of a guest, or makes it possible.
func (p *present) quotaTool(ctx context.Context, h *host.Host, argv ...string) error {
	_, err := h.Tool(ctx, host.Tool{Argv: argv, Limit: hour, Package: packageOf(argv[0]),
		Changes: host.Subject{Kind: host.KindCommand, Name: "size of guest " + p.Name}})
	return host.Failed(diag.Container, err, "limiting the disk of guest "+p.Name,
		"see whether the file system has "+p.kind)
}

func packageOf(program string) string {
	return map[string]string{"btrfs": "btrfs-progs", "chattr": "e2fsprogs", "setquota": "quota", "repquota": "quota",
		"mkfs.ext4": "e2fsprogs", "resize2fs": "e2fsprogs", "mount": "mount", "umount": "mount",
		"vgs": "lvm2", "lvs": "lvm2", "lvcreate": "lvm2", "lvextend": "lvm2", "lvchange": "lvm2", "lvremove": "lvm2",
	}[program]
}

// btrfs gives each guest a subvolume with a quota group.
type btrfs struct{}

func (btrfs) Prepare(ctx context.Context, h *host.Host, p *present, dir string) error {
	if err := p.quotaTool(ctx, h, "btrfs", "quota", "enable", cloud.Disks); err != nil {
		return err
	}
	if err := p.quotaTool(ctx, h, "btrfs", "subvolume", "create", dir); err != nil {
		return err
	}
	return h.Files.Chmod(dir, dirMode)
}

// Limit names the quota group and the directory above the subvolume: btrfs changes nothing by way of a full subvolume.
func (b btrfs) Limit(ctx context.Context, h *host.Host, p *present, dir string, bytes int64) error {
	group, _, err := b.group(ctx, h, p, dir)
	if err != nil {
		return err
	}
	return p.quotaTool(ctx, h, "btrfs", "qgroup", "limit", strconv.FormatInt(bytes, 10), group, cloud.Disks)
}

func (b btrfs) Used(ctx context.Context, h *host.Host, p *present) (int64, error) {
	_, used, err := b.group(ctx, h, p, p.root())
	return used, err
}

// limit returns the limit of the guest's subvolume in bytes, as btrfs prints it: "none" if there is none.
func (btrfs) limit(ctx context.Context, h *host.Host, p *present) (string, error) {
	out, err := h.Tool(ctx, host.Tool{Argv: []string{"btrfs", "qgroup", "show", "-r", "--raw", "-f", p.root()},
		Package: packageOf("btrfs")})
	if err != nil {
		return "", host.Failed(diag.Container, err, "reading the size of guest "+p.Name, "see `btrfs qgroup show`")
	}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 3 && strings.HasPrefix(words[0], "0/") {
			return words[3], nil
		}
	}
	return "", nil // another version of btrfs: the record has the limit
}

// group returns the quota group of a subvolume, and how much it uses. For a plain directory btrfs would show the group
// of the subvolume around it, whose limit is that of all guests.
func (btrfs) group(ctx context.Context, h *host.Host, p *present, dir string) (id string, used int64, err error) {
	_, err = h.Tool(ctx, host.Tool{Argv: []string{"btrfs", "subvolume", "show", dir}, Package: packageOf("btrfs")})
	if err != nil {
		return "", 0, host.Failed(diag.Container, err, "limiting the disk of guest "+p.Name,
			"stop the guest, and copy its disk into a subvolume of the same name")
	}
	out, err := h.Tool(ctx, host.Tool{Argv: []string{"btrfs", "qgroup", "show", "--raw", "-f", dir},
		Package: packageOf("btrfs")})
	if err != nil {
		return "", 0, host.Failed(diag.Container, err, "reading the size of guest "+p.Name, "see `btrfs qgroup show`")
	}
	return row(out, "0/", 1)
}

// projects gives each guest a project of the quotas of ext4 or xfs.
type projects struct{ point string }

// id returns the project of a guest. No two guests of a node have the same user IDs.
func (projects) id(p *present) string { return strconv.Itoa(p.UIDs / usersOfGuest) }

func (q projects) Prepare(ctx context.Context, h *host.Host, p *present, dir string) error {
	if err := h.Files.Mkdir(dir, dirMode); err != nil {
		return err
	}
	return p.quotaTool(ctx, h, "chattr", "+P", "-p", q.id(p), dir)
}

func (q projects) Limit(ctx context.Context, h *host.Host, p *present, _ string, bytes int64) error {
	return p.quotaTool(ctx, h, "setquota", "-P", q.id(p), "0", strconv.FormatInt(bytes>>10, 10), "0", "0", q.point)
}

func (q projects) Used(ctx context.Context, h *host.Host, p *present) (int64, error) {
	out, err := h.Tool(ctx, host.Tool{Argv: []string{"repquota", "-P", "-n", q.point}, Package: packageOf("repquota")})
	if err != nil {
		return 0, host.Failed(diag.Container, err, "reading the size of guest "+p.Name, "see `repquota -P "+q.point+"`")
	}
	_, kib, err := row(out, "#"+q.id(p), 2)
	return kib << 10, err
}

// row returns the first word that is the given one, or begins with it if that ends in a slash, and a number in its
// line.
func row(out, first string, column int) (word string, number int64, err error) {
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) <= column {
			continue
		}
		if words[0] == first || strings.HasSuffix(first, "/") && strings.HasPrefix(words[0], first) {
			number, err = strconv.ParseInt(words[column], 10, 64)
			return words[0], number, err
		}
	}
	return "", 0, diag.Container.Hint(fmt.Errorf("the quota program prints no line of %s", first),
		"see what it prints: %q", out)
}
