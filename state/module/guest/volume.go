package guest

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// volume is a logical volume of LVM with an ext4 file system, the disk of one guest. The record of the guest names its
// volume group. A unit of systemd mounts the volume at the place of the root file system, once that is complete. Until
// then it is mounted where incomplete root file systems are made.
//
// A volume is only made larger. ext4 is not made smaller while it is mounted, and resize2fs does not survive a power
// failure while it makes one smaller.
type volume struct {
	group, disk, guest string
	before             string // the unit of the guest
}

// volumeKind is what limits the size of a volume, as records have it.
const volumeKind = "LVM volume"

// volume returns the volume that has the disk of a guest, or nil if that is a directory.
func (r record) volume() *volume {
	if r.Group == "" {
		return nil
	}
	v := &volume{group: r.Group, disk: r.disk(), guest: r.Name}
	if d, err := driverNamed(r.Driver); err == nil {
		v.before = d.Unit(r.Name)
	}
	return v
}

func (v *volume) name() string    { return v.guest + "-" + v.disk }
func (v *volume) path() string    { return v.group + "/" + v.name() }
func (v *volume) device() string  { return "/dev/" + v.path() }
func (v *volume) root() string    { return path.Join(cloud.Disks, v.guest) }
func (v *volume) partial() string { return partialOf(v.disk) }
func (v *volume) unit() string    { return "var-lib-machines-" + v.guest + ".mount" }
func (v *volume) file() string    { return path.Join("/etc/systemd/system", v.unit()) }

// mapped returns the device as the table of mounts has it.
func (v *volume) mapped() string {
	doubled := strings.NewReplacer("-", "--")
	return "/dev/mapper/" + doubled.Replace(v.group) + "-" + doubled.Replace(v.name())
}

// content returns the unit that mounts the volume. A node whose volume is missing boots without it.
func (v *volume) content() string {
	return "# Written by guest.present.\n[Unit]\nDescription=Disk of guest " + v.guest + "\nBefore=" + v.before +
		"\n\n[Mount]\nWhat=" + v.device() + "\nWhere=" + v.root() + "\nType=ext4\nOptions=nodev,nofail\n" +
		"DirectoryMode=0700\n\n[Install]\nWantedBy=multi-user.target\n"
}

// checkGroup returns an error if the text is not the name of a volume group.
func checkGroup(group string) error {
	if group == "" || consists(group, alphanumeric+"+_.-") && strings.Trim(group[:1], ".-") != "" && len(group) < 64 {
		return nil
	}
	return diag.Argument.Hint(fmt.Errorf("volume_group: %q is not the name of a volume group", group),
		"write one that `vgs` shows, such as vg0")
}

// ask runs a program that only reads, and returns the words of its lines.
func (v *volume) ask(ctx context.Context, h *host.Host, argv ...string) (rows [][]string, err error) {
	out, err := h.Tool(ctx, host.Tool{Argv: argv, Env: quietLVM(), Package: packageOf(argv[0])})
	if err != nil {
		return nil, host.Failed(diag.Container, err, "reading the volume group "+v.group,
			"see `vgs`: the disk of guest "+v.guest+" belongs there; if the group is gone for good, remove "+
				recordPath(v.guest)+", and for new disks name another one in guests:volume_group of the pillar")
	}
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Fields(line))
	}
	return rows, nil
}

// quietLVM returns the variable that suppresses LVM's warnings about open files of the agent.
func quietLVM() []string { return []string{"LVM_SUPPRESS_FD_WARNINGS=1"} }

// run runs a program that changes the volume.
func (v *volume) run(ctx context.Context, h *host.Host, argv ...string) error {
	_, err := h.Tool(ctx, host.Tool{Argv: argv, Env: quietLVM(), Limit: hour, Package: packageOf(argv[0]),
		Changes: host.Subject{Kind: host.KindCommand, Name: "disk of guest " + v.guest}})
	return host.Failed(diag.Container, err, "changing the disk of guest "+v.guest,
		"see what `lvs "+v.group+"` shows of "+v.name()+", and whether something uses it")
}

// space is the size of a volume, 0 if it does not exist, with the free space of its group and the size of an extent.
type space struct{ size, free, extent int64 }

// fits returns an error if the group has no room to give the volume a size.
func (s space) fits(v *volume, bytes int64) error {
	if need := bytes - s.size; need > s.free/max(s.extent, 1)*max(s.extent, 1) {
		return diag.Container.Hint(fmt.Errorf("the volume group %s has %s free, and the disk of guest %s needs %s", v.group,
			diag.Size(s.free), v.guest, diag.Size(need)), "make room there, such as with vgextend")
	}
	return nil
}

// look returns the space of a volume. It returns an error if its group does not exist.
func (v *volume) look(ctx context.Context, h *host.Host) (s space, err error) {
	common := []string{"--noheadings", "--nosuffix", "--units", "b", "--options"}
	groups, err := v.ask(ctx, h, append(append([]string{"vgs"}, common...), "vg_free,vg_extent_size", v.group)...)
	if err != nil {
		return s, err
	}
	volumes, err := v.ask(ctx, h, append(append([]string{"lvs"}, common...), "lv_size,lv_name", v.group)...)
	if err != nil {
		return s, err
	}
	number := func(text string) (n int64) {
		if err == nil {
			n, err = strconv.ParseInt(text, 10, 64)
		}
		return n
	}
	for _, row := range groups {
		if len(row) == 2 {
			s.free, s.extent = number(row[0]), number(row[1])
		}
	}
	for _, row := range volumes {
		if len(row) == 2 && row[1] == v.name() {
			s.size = number(row[0])
		}
	}
	return s, err
}

// mounted reports whether the volume is mounted at a directory. It returns an error if another file system is.
func (v *volume) mounted(h *host.Host, dir string) (bool, error) {
	mounts, err := host.ParsedTable(h, "/proc/self/mountinfo", walk.Mounts)
	if err != nil {
		return false, fmt.Errorf("finding the file system of %s: %w", dir, err)
	}
	device := ""
	for _, m := range mounts { // of several mounts on one directory, the last one is visible
		if walk.MountWord(m.Place) == dir {
			device = walk.MountWord(m.Device)
		}
	}
	if device == "" || device == v.mapped() {
		return device != "", nil
	}
	return false, diag.Container.Hint(fmt.Errorf("%s is mounted at %s, the place of the disk of guest %s", device, dir,
		v.guest), "unmount it: the disk is %s", v.device())
}

// placed reports whether the volume is mounted for its guest, now and at boot.
func (v *volume) placed(h *host.Host) (bool, error) {
	mounted, err := v.mounted(h, v.root())
	if err != nil || !mounted {
		return false, err
	}
	return hasContent(h, v.file(), v.content())
}

// place mounts the volume for its guest, now and at boot, unless it is.
func (v *volume) place(ctx context.Context, h *host.Host) error {
	is, err := v.placed(h)
	if err != nil || is {
		return err
	}
	if err := v.run(ctx, h, "lvchange", "--activate", "y", v.path()); err != nil {
		return err
	}
	if err := (setting{v.file(), v.content()}).write(h); err != nil {
		return err
	}
	if err := h.Units.SetBoot(ctx, host.Enable, v.unit(), false); err != nil {
		return err // the next run does this again, since the volume is not mounted
	}
	if err := h.Units.Act(ctx, host.Start, v.unit(), true); err != nil {
		return fmt.Errorf("mounting the disk of guest %s: %w", v.guest, err)
	}
	h.ForgetTables()
	return nil
}

// unmount unmounts the volume from a directory, if it is mounted there, and removes the directory, which is empty.
func (v *volume) unmount(ctx context.Context, h *host.Host, dir string) error {
	mounted, err := v.mounted(h, dir)
	if err != nil {
		return err
	}
	if mounted {
		if err := v.run(ctx, h, "umount", dir); err != nil {
			return err
		}
		h.ForgetTables()
	}
	return removeFile(h, dir)
}

// make makes the volume, and mounts it where incomplete root file systems are made. Root of the guest could not use the
// blocks that mkfs.ext4 reserves for root of the node, nor read the directory lost+found.
func (v *volume) make(ctx context.Context, h *host.Host, bytes int64) error {
	for _, argv := range [][]string{
		{"lvcreate", "--yes", "--wipesignatures", "y", "--size", inBytes(bytes), "--name", v.name(), v.group},
		{"mkfs.ext4", "-q", "-F", "-m", "0", v.device()},
	} {
		if err := v.run(ctx, h, argv...); err != nil {
			return err
		}
	}
	if err := h.Files.Mkdir(v.partial(), dirMode); err != nil {
		return err
	}
	if err := v.run(ctx, h, "mount", "-t", "ext4", "-o", "nodev", v.device(), v.partial()); err != nil {
		return err
	}
	h.ForgetTables()
	return removeFile(h, path.Join(v.partial(), "lost+found"))
}

// complete gives the root file system, which is complete and on the disk, its place.
func (v *volume) complete(ctx context.Context, h *host.Host) error {
	if err := v.unmount(ctx, h, v.partial()); err != nil {
		return err
	}
	return v.place(ctx, h)
}

// grow makes the volume as large as bytes, while its guest may run, and returns its size. That is larger if the volume
// was larger.
func (v *volume) grow(ctx context.Context, h *host.Host, bytes int64) (int64, error) {
	s, err := v.look(ctx, h)
	if err != nil {
		return 0, err
	}
	if s.size < bytes {
		if err := v.run(ctx, h, "lvextend", "--size", inBytes(bytes), v.path()); err != nil {
			return 0, err
		}
	}
	if s.size >= bytes+s.extent { // a size is rounded up to whole extents
		bytes = s.size
	}
	return bytes, v.run(ctx, h, "resize2fs", v.device()) // also after a run that ended between the two
}

func inBytes(bytes int64) string { return strconv.FormatInt(bytes, 10) + "b" }

// remove removes the volume and its mounts. A run before may have removed some of them.
func (v *volume) remove(ctx context.Context, h *host.Host) error {
	unit, err := h.Units.Unit(ctx, v.unit(), "")
	if err != nil {
		return err
	}
	if unit.Boot == "enabled" {
		if err := h.Units.SetBoot(ctx, host.Disable, v.unit(), false); err != nil {
			return err
		}
	}
	for _, dir := range []string{v.root(), v.partial()} {
		if err := v.unmount(ctx, h, dir); err != nil {
			return err
		}
	}
	if err := removeFile(h, v.file()); err != nil {
		return err
	}
	s, err := v.look(ctx, h)
	if err != nil || s.size == 0 {
		return err
	}
	return v.run(ctx, h, "lvremove", "--yes", v.path())
}
