package mount

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// line implements mount.fstab_present: it adds an entry to fstab and mounts the file system if the entry is new.
type line struct {
	Name      string   `sls:"name"` // the device
	Place     string   `sls:"fs_file,required"`
	FSType    string   `sls:"fs_vfstype,required"`
	Opts      []string `sls:"fs_mntops"`
	Freq      int      `sls:"fs_freq"`
	Pass      int      `sls:"fs_passno"`
	MountBy   string   `sls:"mount_by"` // notation of the device: device, uuid, label, partuuid or partlabel
	Config    string   `sls:"config"`
	Mount     bool     `sls:"mount"`
	MatchOn   []string `sls:"match_on"`
	NotChange bool     `sls:"not_change"` // keep an existing entry unchanged
	FSMount   any      `sls:"fs_mount"`   // no effect on Linux

	text, what string
}

func newLine() *line { return &line{Opts: []string{"defaults"}, Config: "/etc/fstab", Mount: true} }

func (l *line) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	place := l.Place
	if len(place) > 1 {
		place = strings.TrimRight(place, "/")
	}
	device, err := writtenAs(h, l.Name, l.MountBy)
	if err != nil {
		return module.Diff{}, err
	}
	e := entry{escaped(device), escaped(place), l.FSType, escaped(strings.Join(split(l.Opts), ",")),
		fmt.Sprint(l.Freq), fmt.Sprint(l.Pass)}
	for _, field := range []string{e.device, e.name, e.fstype, e.opts} {
		if field == "" || strings.ContainsAny(field, "\n\r") {
			return module.Diff{}, fmt.Errorf("%q cannot be part of an entry", field)
		}
	}
	matches, err := criteria(e, l.MatchOn)
	if err != nil {
		return module.Diff{}, err
	}
	t, err := openTable(h, l.Config)
	if err != nil {
		return module.Diff{}, err
	}
	if l.text, l.what = t.with(e, matches, l.NotChange); l.what == "present" {
		return module.Diff{Comment: fmt.Sprintf("%s has the entry for %s", l.Config, place)}, nil
	}
	d := module.Diff{Changes: value.NewMap("persist", l.what), Planned: value.NewMap(),
		Comment: fmt.Sprintf("the entry for %s would be written to %s", place, l.Config)}
	if l.mounts() && h.Kernel.Allowed("mounting "+place) != nil {
		d.Warnings = []string{place + " is not mounted now: only a running system mounts"}
	}
	return d, nil
}

func (l *line) mounts() bool { return l.what == "new" && l.Mount && l.FSType != "swap" }

func (l *line) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.WriteText(l.Config, l.text); err != nil {
		return module.Report{}, err
	}
	report := module.Report{Changes: d.Changes, Comment: "the entry was written to " + l.Config}
	if l.mounts() && h.Kernel.Allowed("mounting "+l.Place) == nil {
		return report, run(ctx, h, l.Place, "", nil, "mount", l.Place)
	}
	return report, nil
}

// writtenAs returns the device in the notation of mount_by, according to the links of udev.
func writtenAs(h *host.Host, device, by string) (string, error) {
	if by == "" || by == "device" && path.IsAbs(device) || strings.HasPrefix(device, strings.ToUpper(by)+"=") {
		return device, nil
	}
	to := device
	for _, name := range devices(h, device) {
		if path.IsAbs(name) {
			to = real(h, name)
		}
	}
	if by == "device" {
		return to, nil
	}
	dir := "/dev/disk/by-" + strings.ToLower(by)
	names, _ := h.Files.ReadDir(dir) // udev creates the directory only if there are such names
	for _, name := range names {
		if real(h, dir+"/"+name) == to {
			return strings.ToUpper(by) + "=" + name, nil
		}
	}
	return "", diag.Mount.Hint(fmt.Errorf("nothing in %s leads to %s", dir, device),
		"mount_by is device, uuid, label, partuuid or partlabel; `blkid %s` shows which it has", device)
}

// noLine implements mount.fstab_absent.
type noLine struct {
	Name    string `sls:"name"`
	Place   string `sls:"fs_file,required"`
	MountBy string `sls:"mount_by"`
	Config  string `sls:"config"`

	text string
}

func (n *noLine) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	place := n.Place
	if len(place) > 1 {
		place = strings.TrimRight(place, "/")
	}
	device, err := writtenAs(h, n.Name, n.MountBy)
	if err != nil {
		return module.Diff{}, err
	}
	t, err := openTable(h, n.Config)
	if err != nil {
		return module.Diff{}, err
	}
	text, found := t.without(func(e entry) bool { return e.name == escaped(place) && e.device == escaped(device) })
	if !found {
		return module.Diff{Comment: fmt.Sprintf("%s has no entry for %s", n.Config, place)}, nil
	}
	n.text = text
	return module.Diff{Changes: value.NewMap("persist", "removed"), Planned: value.NewMap(),
		Comment: fmt.Sprintf("the entry for %s would be removed from %s", place, n.Config)}, nil
}

func (n *noLine) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.WriteText(n.Config, n.text); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "the entry was removed from " + n.Config}, nil
}
