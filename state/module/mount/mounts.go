package mount

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// mounted is a mounted file system.
type mounted struct {
	place, root, fstype, device string
	opts, superopts             []string
}

// active returns the mounted file systems by mount point. If several have the same mount point, it returns the last of
// them, which hides the others.
func active(h *host.Host) (map[string]mounted, error) {
	data, err := h.Files.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	all := map[string]mounted{}
	for _, l := range walk.Mounts(string(data)) {
		m := mounted{place: walk.MountWord(l.Place), root: walk.MountWord(l.Root), fstype: l.Type,
			device: walk.MountWord(l.Device)}
		m.opts, m.superopts = strings.Split(l.Options, ","), strings.Split(l.SuperBlock, ",")
		all[m.place] = m
	}
	return all, err
}

// swaps returns the devices and files in use as swap space.
func swaps(h *host.Host) (map[string][]string, error) {
	data, err := h.Files.ReadFile("/proc/swaps")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	all := map[string][]string{}
	for l := range strings.Lines(string(data)) {
		if f := strings.Fields(l); len(f) == 5 && f[0] != "Filename" {
			all[walk.MountWord(f[0])] = f[1:]
		}
	}
	return all, err
}

// real resolves links in a path. It returns the path itself if that does not exist.
func real(h *host.Host, p string) string {
	to, err := h.Files.Resolve(p)
	if err != nil {
		return p
	}
	return path.Clean(to) // udev creates links such as ../../sda1
}

// devices returns the names of the declared device: as declared, with links resolved and, for a tag such as
// UUID= or LABEL=, according to the links of udev.
func devices(h *host.Host, device string) []string {
	names := []string{device}
	for _, tag := range [][2]string{{"UUID=", "/dev/disk/by-uuid/"}, {"LABEL=", "/dev/disk/by-label/"},
		{"PARTUUID=", "/dev/disk/by-partuuid/"}, {"PARTLABEL=", "/dev/disk/by-partlabel/"}} {
		if len(device) > len(tag[0]) && strings.EqualFold(device[:len(tag[0])], tag[0]) {
			device = tag[1] + strings.Trim(device[len(tag[0]):], `"`)
		}
	}
	if path.IsAbs(device) {
		names = append(names, device, real(h, device))
	}
	if _, of, ok := strings.Cut(device, "#"); ok { // FUSE: sshfs#host:dir
		names = append(names, of)
	}
	if group, volume, ok := strings.Cut(strings.TrimPrefix(device, "/dev/"), "/"); ok && strings.HasPrefix(device,
		"/dev/") && !strings.Contains(volume, "/") {
		names = append(names, "/dev/mapper/"+strings.ReplaceAll(group, "-", "--")+"-"+strings.ReplaceAll(volume, "-", "--"))
	}
	return names
}
