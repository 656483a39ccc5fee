package guest_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const (
	extent    = 4 << 20
	gib       = 1 << 30
	mountUnit = "/etc/systemd/system/var-lib-machines-web1.mount"
	mountedAt = "/var/lib/machines/web1"
)

// lvm imitates the volume group vg0. The content of a volume is in a directory, which is renamed to the place at which
// the volume is mounted.
type lvm struct {
	host.Units // of all units but mounts
	t          *testing.T
	h          *statetest.Host
	free       int64
	volumes    map[string]*logical // by the name in the group
	enabled    map[string]bool     // units of mounts
}

type logical struct {
	size, files int64 // of the volume and of its file system, 0 for none
	at          string
}

// volumes adds a volume group to a node.
func volumes(t *testing.T, h *statetest.Host) *lvm {
	t.Helper()
	l := &lvm{Units: h.Units, t: t, h: h, free: 8 * gib, volumes: map[string]*logical{}, enabled: map[string]bool{}}
	tools := nodeTools(h)
	for name, tool := range map[string]func([]string) (string, error){"vgs": l.vgs, "lvs": l.lvs, "lvcreate": l.create,
		"mkfs.ext4": l.format, "mount": l.mount, "umount": l.unmount, "lvchange": l.find, "lvextend": l.extend,
		"resize2fs": l.resize, "lvremove": l.remove} {
		tools[name] = func(args []string, _ string) (string, error) { return tool(args) }
	}
	for name, tool := range map[string]func([]string) (string, error){"tar": l.tar, "rm": l.rm,
		"find": func([]string) (string, error) { return "", nil },
		"tail": func([]string) (string, error) { return strings.Repeat("\x00", 1024), nil }} {
		tools[name] = func(args []string, _ string) (string, error) { return tool(args) } // no processes: tests are quick
	}
	statetest.UseTools(t, h, tools)
	h.Units = l
	l.table()
	return l
}

// tar imitates the unpacking and packing of a root file system with three files.
func (l *lvm) tar(args []string) (string, error) {
	dir := args[slices.Index(args, "--directory")+1]
	if args[0] == "--create" {
		l.put(args[2], l.h.Text(dir+"/srv/data"))
		return "", nil
	}
	l.put(dir+"/etc/os-release", "ID=debian\n")
	l.put(dir+"/etc/machine-id", idA+"\n")
	return "", nil
}

func (l *lvm) rm(args []string) (string, error) {
	return "", os.RemoveAll(l.h.Dir + args[len(args)-1])
}

func says(code int, format string, args ...any) error {
	return statetest.Code{Code: code, Text: fmt.Sprintf(format, args...)}
}

// table writes the table of mounts.
func (l *lvm) table() {
	text := plainNode
	for _, name := range slices.Sorted(maps.Keys(l.volumes)) {
		if at := l.volumes[name].at; at != "" {
			text += "40 22 253:0 / " + at + " rw - ext4 /dev/mapper/vg0-" + strings.ReplaceAll(name, "-", "--") + " rw\n"
		}
	}
	l.put("/proc/self/mountinfo", text)
}

// put and rename change the files of the host without the counting of stopAt.
func (l *lvm) put(file, text string) {
	err := os.MkdirAll(path.Dir(l.h.Dir+file), 0o755)
	if err == nil {
		err = os.WriteFile(l.h.Dir+file, []byte(text), 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lvm) rename(from, to string) {
	if err := os.Rename(l.h.Dir+from, l.h.Dir+to); err != nil {
		l.t.Fatal(err)
	}
}

// volume returns the volume of the last argument, a path or a device.
func (l *lvm) volume(args []string) (name string, v *logical, err error) {
	name = strings.TrimPrefix(strings.TrimPrefix(args[len(args)-1], "/dev/"), "vg0/")
	if v = l.volumes[name]; v == nil {
		err = says(5, "Failed to find logical volume %q", args[len(args)-1])
	}
	return name, v, err
}

func (l *lvm) vgs(args []string) (string, error) {
	if group := args[len(args)-1]; group != "vg0" {
		return "", says(5, "Volume group %q not found", group)
	}
	return fmt.Sprintf("  %d %d\n", l.free, extent), nil
}

func (l *lvm) lvs(args []string) (out string, err error) {
	for name, v := range l.volumes {
		out += fmt.Sprintf("  %d %s\n", v.size, name)
	}
	return out, err
}

// take takes the size of the option --size from the group, in whole extents.
func (l *lvm) take(args []string, v *logical) error {
	bytes, err := strconv.ParseInt(strings.TrimSuffix(args[slices.Index(args, "--size")+1], "b"), 10, 64)
	size := (bytes + extent - 1) / extent * extent
	switch {
	case err != nil:
		return err
	case size <= v.size:
		return says(5, "New size (%d) matches or is below the existing size", size)
	case size-v.size > l.free:
		return says(5, "insufficient free space")
	}
	l.free -= size - v.size
	v.size = size
	return nil
}

func (l *lvm) create(args []string) (string, error) {
	name := args[slices.Index(args, "--name")+1]
	if l.volumes[name] != nil {
		return "", says(5, "Logical Volume %q already exists", name)
	}
	v := &logical{}
	if err := l.take(args, v); err != nil {
		return "", err
	}
	l.volumes[name] = v
	return "", nil
}

func (l *lvm) format(args []string) (string, error) {
	name, v, err := l.volume(args)
	if err == nil {
		v.files = v.size
		err = os.MkdirAll(l.h.Dir+"/lv/"+name+"/lost+found", 0o755)
	}
	return "", err
}

func (l *lvm) mount(args []string) (string, error) {
	at := args[len(args)-1]
	name, v, err := l.volume(args[:len(args)-1])
	switch {
	case err != nil:
		return "", err
	case v.files == 0 || v.at != "":
		return "", says(32, "wrong fs type, or mounted at %s", v.at)
	}
	if err := os.Remove(l.h.Dir + at); err != nil { // an empty directory
		return "", says(32, "mount point: %v", err)
	}
	l.rename("/lv/"+name, at)
	v.at = at
	l.table()
	return "", nil
}

func (l *lvm) unmount(args []string) (string, error) {
	at := args[len(args)-1]
	for name, v := range l.volumes {
		if v.at == at {
			l.rename(at, "/lv/"+name)
			v.at = ""
			l.table()
			return "", os.Mkdir(l.h.Dir+at, 0o700)
		}
	}
	return "", says(32, "%s: not mounted.", at)
}

func (l *lvm) find(args []string) (string, error) {
	_, _, err := l.volume(args)
	return "", err
}

func (l *lvm) extend(args []string) (string, error) {
	_, v, err := l.volume(args)
	if err == nil {
		err = l.take(args, v)
	}
	return "", err
}

func (l *lvm) resize(args []string) (string, error) {
	_, v, err := l.volume(args)
	if err == nil {
		v.files = v.size
	}
	return "", err
}

func (l *lvm) remove(args []string) (string, error) {
	name, v, err := l.volume(args)
	switch {
	case err != nil:
		return "", err
	case v.at != "":
		return "", says(5, "Logical volume %s contains a filesystem in use.", name)
	}
	l.free += v.size
	delete(l.volumes, name)
	return "", os.RemoveAll(l.h.Dir + "/lv/" + name)
}

// Unit, Act and SetBoot have the units of mounts.
func (l *lvm) Unit(ctx context.Context, name, process string) (host.Unit, error) {
	if !strings.HasSuffix(name, ".mount") {
		return l.Units.Unit(ctx, name, process)
	}
	u := host.Unit{Name: name, Active: "inactive", Boot: "disabled"}
	if l.enabled[name] {
		u.Boot = "enabled"
	}
	return u, nil
}

func (l *lvm) Act(ctx context.Context, verb host.UnitVerb, name string, wait bool) error {
	if !strings.HasSuffix(name, ".mount") {
		return l.Units.Act(ctx, verb, name, wait)
	}
	data, err := os.ReadFile(l.h.Dir + "/etc/systemd/system/" + name)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(data), "What=")
	device, rest, _ := strings.Cut(rest, "\nWhere=")
	at, _, _ := strings.Cut(rest, "\n")
	if err := os.MkdirAll(l.h.Dir+at, 0o700); err != nil {
		return err
	}
	_, err = l.mount([]string{device, at})
	return err
}

func (l *lvm) SetBoot(ctx context.Context, verb host.BootVerb, name string, runtime bool) error {
	if !strings.HasSuffix(name, ".mount") {
		return l.Units.SetBoot(ctx, verb, name, runtime)
	}
	l.enabled[name] = verb == host.Enable
	return nil
}

// off unmounts all volumes, as a power failure does.
func (l *lvm) off() {
	for _, v := range l.volumes {
		if v.at != "" {
			if _, err := l.unmount([]string{v.at}); err != nil {
				l.t.Fatal(err)
			}
		}
	}
	l.h.ForgetTables()
}

// only returns an error unless the group has exactly one volume, of web1, which is mounted.
func (l *lvm) only(disk string, size int64) error {
	v := l.volumes["web1-"+disk]
	if v == nil || len(l.volumes) != 1 || v.at != mountedAt || v.size != size || v.files != size {
		return fmt.Errorf("the group has %d volumes, and that of web1 is %+v", len(l.volumes), v)
	}
	return nil
}

func onVolume(size string) *value.Map {
	args := sized(size)
	args.Set("volume_group", "vg0")
	return args
}

// nodeWithVolumes returns a node with a volume group.
func nodeWithVolumes(t *testing.T) (*statetest.Host, *lvm) {
	t.Helper()
	h := statetest.NewHost(t)
	node(t, h)
	return h, volumes(t, h)
}

// TestVolumesAreMadeEnlargedAndRemoved makes a guest on a volume, enlarges it while it runs, refuses to make it smaller
// or larger than its group, and removes it.
func TestVolumesAreMadeEnlargedAndRemoved(t *testing.T) {
	h, l := nodeWithVolumes(t)
	converge := func(size string) {
		t.Helper()
		hosttest.Converge(t, h.Host, guest.Functions(), "present", onVolume(size))
	}
	converge("1GiB")
	if err := l.only(idA, gib); err != nil || h.Text(mountedAt+"/etc/machine-id") != idA+"\n" ||
		!l.enabled[path.Base(mountUnit)] {
		t.Fatalf("a new guest: %v, enabled: %v", err, l.enabled)
	}
	if _, err := h.Files.Lstat(mountedAt + "/lost+found"); err == nil {
		t.Error("root of the guest would find a directory of the node's root")
	}
	_, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", onVolume("2GiB"))
	if diff.Changes.Len() > 0 || diff.Planned.Len() != 1 {
		t.Errorf("a larger size restarts the guest: %v", diff.Changes.Names())
	}
	converge("2GiB")
	if err := l.only(idA, 2*gib); err != nil {
		t.Error(err)
	}
	for size, want := range map[string]string{"1GiB": "keeps the size of 2.0 GiB: a volume is not made smaller",
		"20GiB": "has 6.0 GiB free, and the disk of guest web1 needs 18"} {
		_, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", onVolume(size))
		if !diff.Empty() || !strings.Contains(diff.Comment, want) {
			t.Errorf("with the size %s: %+v", size, diff)
		}
	}
	hosttest.Converge(t, h.Host, guest.Functions(), "only", value.NewMap("name", "x", "guests", value.NewList()))
	if err := l.only(idA, 2*gib); err != nil {
		t.Errorf("a guest that left the node: %v", err)
	}
	hosttest.Converge(t, h.Host, guest.Functions(), "only", value.NewMap("name", "x", "deleted", value.NewList(idA)))
	names, _ := h.Files.ReadDir("/var/lib/machines")
	if len(l.volumes) > 0 || l.free != 8*gib || len(names) > 0 || h.Text(mountUnit) != "" {
		t.Errorf("a deleted guest left %v, %v", l.volumes, names)
	}
}

// TestInterruptedVolumesAreFinished stops the creation, the enlarging and the removal of a guest at each step: at odd
// ones by a signal, and at even ones by a power failure.
func TestInterruptedVolumesAreFinished(t *testing.T) {
	drop := value.NewMap("name", "guests", "deleted", value.NewList(idA))
	for _, c := range []struct {
		first, function string
		args            *value.Map
		steps           int
	}{{"", "present", onVolume("1GiB"), 14}, {"1GiB", "present", onVolume("2GiB"), 4}, {"1GiB", "only", drop, 6}} {
		for step, more := 0, true; more; step++ {
			h, l := nodeWithVolumes(t)
			if c.first != "" {
				hosttest.Converge(t, h.Host, guest.Functions(), "present", onVolume(c.first))
			}
			if more = stopAt(t, h, step, c.function, c.args); !more && step < c.steps {
				t.Errorf("%s from %q has only %d steps", c.function, c.first, step)
			}
			if step%2 == 0 {
				l.off()
			}
			if c.function == "only" {
				hosttest.Converge(t, h.Host, guest.Functions(), "only", c.args)
				if names, _ := h.Files.ReadDir("/var/lib/machines"); len(l.volumes)+len(names) > 0 {
					t.Errorf("stopped at step %d of the removal: %v, %v", step, l.volumes, names)
				}
			}
			hosttest.Converge(t, h.Host, guest.Functions(), "present", onVolume("2GiB"))
			if err := l.only(idA, 2*gib); err != nil || h.Text(mountedAt+"/etc/machine-id") != idA+"\n" ||
				!l.enabled[path.Base(mountUnit)] {
				t.Errorf("%s from %q stopped at step %d: %v", c.function, c.first, step, err)
			}
			leftovers(t, h, step)
		}
	}
}

// TestVolumesThatAreNotMountedAreMountedAndNotMadeAgain starts a node whose volume is not mounted: it has the data of
// the guest after the next run, also in the archive of a move. Without the volume or its group the run fails.
func TestVolumesThatAreNotMountedAreMountedAndNotMadeAgain(t *testing.T) {
	h, l := nodeWithVolumes(t)
	hosttest.Converge(t, h.Host, guest.Functions(), "present", onVolume("1GiB"))
	h.Put(data, "orders")
	l.off()
	report := hosttest.Converge(t, h.Host, guest.Functions(), "present", sized("1GiB")) // the pillar lacks the group now
	if err := l.only(idA, gib); err != nil || h.Text(data) != "orders" || report.Changes.Len() > 0 {
		t.Errorf("%v: the guest has %q, and the changes are %v", err, h.Text(data), report.Changes)
	}
	l.off()
	hosttest.Converge(t, h.Host, guest.Functions(), "archived",
		value.NewMap("name", "web1", "disk", idA, "file", archive))
	if !strings.Contains(h.Text(archive), "orders") {
		t.Error("the archive lacks the data of the guest")
	}
	for step, more := 0, true; more; step++ {
		l.off()
		clear(l.enabled)
		more = stopAt(t, h, step, "present", onVolume("1GiB"))
		hosttest.Converge(t, h.Host, guest.Functions(), "present", onVolume("1GiB"))
		if !l.enabled[path.Base(mountUnit)] {
			t.Errorf("stopped at step %d of the mount: it is not made at boot", step)
		}
	}
	l.off()
	delete(l.volumes, "web1-"+idA)
	l.table()
	resource, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", onVolume("1GiB"))
	if _, err := resource.Apply(t.Context(), h.Host, diff); err == nil || len(l.volumes) > 0 ||
		!strings.Contains(err.Error(), "Failed to find logical volume") {
		t.Errorf("a volume that is missing: %v", err)
	}
}

// TestDisksStayWhereTheyAre gives the node of a guest in a directory a volume group.
func TestDisksStayWhereTheyAre(t *testing.T) {
	h, l := nodeWithVolumes(t)
	hosttest.Converge(t, h.Host, guest.Functions(), "present", web1("nspawn"))
	hosttest.Converge(t, h.Host, guest.Functions(), "present", onVolume("1GiB"))
	if len(l.volumes) > 0 || h.Text(mountedAt+"/etc/machine-id") == "" {
		t.Errorf("the volumes are %v", l.volumes)
	}
}

// TestVolumesOfOthersStay makes guests on nodes where a volume or a mount of another has the place of their disks, or
// there is no room.
func TestVolumesOfOthersStay(t *testing.T) {
	for want, c := range map[string]struct {
		size  string
		setup func(*lvm)
	}{
		"no record says that it is a guest's": {"1GiB", func(l *lvm) { l.volumes["web1-"+idA] = &logical{size: gib} }},
		"vg0 has 8.0 GiB free":                {"9GiB", func(*lvm) {}},
	} {
		h, l := nodeWithVolumes(t)
		c.setup(l)
		before := len(l.volumes)
		resource, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", onVolume(c.size))
		_, err := resource.Apply(t.Context(), h.Host, diff)
		if err == nil || !strings.Contains(err.Error(), want) || len(l.volumes) != before {
			t.Errorf("the error is %v, want %q; there are %d volumes", err, want, len(l.volumes))
		}
	}
	for _, group := range []string{"-x", "a/b", ".", "a b"} {
		args := onVolume("1GiB")
		args.Set("volume_group", group)
		resource := hosttest.Resource(t, guest.Functions(), "present", args)
		_, err := resource.Check(t.Context(), statetest.NewHost(t).Host)
		if err == nil || !strings.Contains(err.Error(), "is not the name of a volume group") {
			t.Errorf("the group %q: %v", group, err)
		}
	}
}

// TestMovedDisksGetVolumesThatHaveRoomForThem moves a disk whose content is larger than its size, and stops its arrival
// at each step.
func TestMovedDisksGetVolumesThatHaveRoomForThem(t *testing.T) {
	args := moved("nspawn")
	args.Set("size", "1MiB")
	args.Set("volume_group", "vg0")
	for step, more := 0, true; more; step++ {
		h, l := nodeWithVolumes(t)
		arrive(t, h)
		more = stopAt(t, h, step, "present", args)
		l.off()
		hosttest.Converge(t, h.Host, guest.Functions(), "present", args)
		if err := l.only(idB, 68<<20); err != nil || h.Text(archive) != "" || h.Text(mountedAt+"/etc/os-release") == "" {
			t.Errorf("stopped at step %d: %v", step, err)
		}
	}
}
