package guest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// present implements guest.present: a guest has a root file system that was made from an image, or from the archive of
// its disk on another node, and settings.
type present struct {
	Name     string     `sls:"name"`
	ID       string     `sls:"id,required"`    // the guest's machine ID
	Image    string     `sls:"image,required"` // tar archive on the node
	Disk     string     `sls:"disk"`           // ID of the guest's disk; empty for the guest's ID
	Moved    bool       `sls:"moved"`          // Image is the archive of its disk: it is awaited, and unpacked as it is
	Hostname string     `sls:"hostname,required"`
	Driver   string     `sls:"driver"`
	Bridge   string     `sls:"bridge"`       // a bridge of the node; empty for no network
	UIDs     int        `sls:"uids"`         // the first of the node's user IDs for the guest
	Copies   *value.Map `sls:"copies"`       // files of the guest, and the files of the node to copy to them
	Contents *value.Map `sls:"contents"`     // files of the guest, and their texts
	Enable   []string   `sls:"enable"`       // units of the guest that start at boot
	Binds    *value.Map `sls:"binds"`        // paths of the node that the guest may read, and their paths in the guest
	Mounts   []string   `sls:"mounts"`       // directories of the node, each as cloud.Mount writes it
	Size     string     `sls:"size"`         // of its disk, such as 5GiB, where it can be limited; empty for no limit
	Group    string     `sls:"volume_group"` // of LVM, in which a new disk is a volume; empty for a directory

	driver driver
	binds  paths
	mounts []mounted
	volume *volume // nil for a directory
	kind   string  // of the quota; empty for none
	quota  quota   // nil for none
	bytes  int64   // the limit to set
	other  record  // of another guest that has the name on this node; zero for none
	kept   bool    // its disk was put aside
}

// paths maps absolute paths to absolute paths.
type paths map[string]string

// Keys returns the paths that are mapped to others.
func (p paths) Keys() func(func(string) bool) { return maps.Keys(p) }

// Valid returns an error for arguments that are not safe as parts of paths and settings.
func (p *present) Valid() error {
	errs := []error{checkName(p.Name), checkID(p.ID), checkID(p.disk())}
	var err error
	if p.driver, err = driverNamed(p.Driver); err != nil {
		errs = append(errs, err)
	}
	for what, text := range map[string]string{"hostname": p.Hostname, "bridge": p.Bridge} {
		if !isLabel(text) && text != "" {
			errs = append(errs, diag.Argument.Hint(fmt.Errorf("%s is %q", what, text), "write letters, digits and hyphens"))
		}
	}
	if p.UIDs < usersOfGuest || p.UIDs%usersOfGuest != 0 || p.UIDs > lastUIDs {
		errs = append(errs, diag.Argument.Hint(
			fmt.Errorf("uids is %d", p.UIDs), "write a multiple of %d up to %d, such as %d",
			usersOfGuest, lastUIDs, 8*usersOfGuest))
	}
	for _, unit := range p.Enable {
		if !isUnit(unit) {
			errs = append(errs, diag.Argument.Hint(fmt.Errorf("%q is not a unit", unit), "write its name with its ending"))
		}
	}
	copies, err := pathsOf("copies", p.Copies)
	errs = append(errs, err)
	p.binds, err = pathsOf("binds", p.Binds)
	errs = append(errs, err, checkPath("image", p.Image), checkGroup(p.Group))
	if p.Group != "" && p.Size == "" {
		errs = append(errs, diag.Argument.Hint(fmt.Errorf("volume_group is %s without a size", p.Group),
			"write the size of the disk, such as size: 5GiB"))
	}
	p.mounts, err = p.parseMounts()
	errs = append(errs, err)
	if p.Size != "" {
		errs = append(errs, cloud.CheckSize(p.Size))
	}
	for target := range copies {
		errs = append(errs, checkPath("copies", target))
	}
	if p.Contents != nil {
		for target := range p.Contents.All() {
			errs = append(errs, checkPath("contents", value.Str(target)))
		}
	}
	return errors.Join(errs...)
}

// lastUIDs is the largest multiple of usersOfGuest with which systemd lets the user IDs of a container begin.
const lastUIDs = 0x6fff0000

// The characters of names and paths. No expression is compiled for them: a node has tens of guests, each with several.
const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	alphanumeric = lowerLetters + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// consists reports whether a text has no other characters than these.
func consists(text, of string) bool { return strings.Trim(text, of) == "" }

// isLabel reports whether a text is a part of a DNS name.
func isLabel(text string) bool {
	return text != "" && len(text) <= 63 && consists(text, alphanumeric+"-") && strings.Trim(text, "-") == text
}

// isUnit reports whether a text is the name of a unit, with its ending.
func isUnit(text string) bool {
	at := strings.LastIndex(text, ".")
	return at > 0 && at <= 201 && len(text) > at+1 && consists(text[at+1:], lowerLetters) &&
		consists(text, alphanumeric+"@_.-") && consists(text[:1], alphanumeric)
}

func checkPath(what, text string) error {
	if path.IsAbs(text) && consists(text, alphanumeric+"/@._+-") && path.Clean(text) == text {
		return nil
	}
	return diag.Argument.Hint(fmt.Errorf("%s: %q is not an absolute path", what, text),
		"write it from / on, of letters, digits and @._+-")
}

func pathsOf(what string, m *value.Map) (paths, error) {
	all, errs := paths{}, []error(nil)
	if m == nil {
		return all, nil
	}
	for key, v := range m.All() {
		errs = append(errs, checkPath(what, value.Str(key)), checkPath(what, value.Str(v)))
		all[value.Str(key)] = value.Str(v)
	}
	return all, errors.Join(errs...)
}

func (p *present) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := errors.Join(p.Valid(), h.Kernel.Allowed("making guests")); err != nil {
		return module.Diff{}, err
	}
	changes := value.NewMap()
	r, known, err := readRecord(h, p.Name)
	if err != nil {
		return module.Diff{}, err
	}
	there, err := exists(h, p.root())
	if err == nil {
		r, known, there, err = p.own(h, r, known, there)
	}
	if err == nil {
		err = p.contradicts(r, known, there)
	}
	p.volume = p.stored(r, known, there)
	switch {
	case err != nil:
		return module.Diff{}, err
	case p.kept:
		changes.Set("guest", "its disk comes back from "+asidePath(p.Name, p.disk()))
	case !known || r.Step == creating:
		if waits, err := p.awaits(h, there && r.Group == ""); waits || err != nil {
			return module.Diff{Comment: "guest " + p.Name + " waits for its disk: " + p.Image}, err
		}
		changes.Set("guest", "created from "+p.Image)
	case p.Moved:
		if err := p.spent(h, changes); err != nil {
			return module.Diff{}, err
		}
	}
	if err := errors.Join(p.open(h, changes), p.unmounted(h, r, changes), p.unbound(h, changes)); err != nil {
		return module.Diff{}, err
	}
	comment := ""
	if !p.kept { // the next run sees its size
		if comment, err = p.sized(ctx, h, r, changes); err != nil {
			return module.Diff{}, err
		}
	}
	settings, err := p.differing(h)
	if len(settings) > 0 {
		changes.Set("settings", strings.Join(slices.Sorted(maps.Keys(settings)), ", "))
	}
	if changes.Len() == 0 {
		return module.Diff{Comment: "guest " + p.Name + " is there" + comment}, err
	}
	return module.Diff{Changes: restarting(changes), Planned: changes,
		Comment: "guest " + p.Name + " would be made, or its settings changed"}, err
}

// contradicts returns an error if the record of a guest, or its disk, is another's or is missing. there says that the
// root file system exists.
func (p *present) contradicts(r record, known, there bool) error {
	switch {
	case known && (r.ID != p.ID || r.disk() != p.disk()):
		return diag.Container.Hint(fmt.Errorf("%s has another guest named %s, with the ID %s", cloud.Disks, p.Name,
			r.disk()), "guest.only removes guests that were deleted from the cloud: let it run before this state")
	case known && r.Step == deleting:
		return diag.Container.Hint(fmt.Errorf("the removal of guest %s has begun", p.Name), "let guest.only finish it")
	case known && r.Driver != p.Driver:
		return diag.Container.Hint(fmt.Errorf("guest %s was made for the driver %s, and not for %s", p.Name, r.Driver,
			p.Driver), "give the node the driver %s, or move the guest to a node with the driver %s", r.Driver, p.Driver)
	case known && r.Step == ready && r.Group == "" && !there:
		return missing(r)
	case !known && there:
		return diag.Container.Hint(fmt.Errorf("%s exists, and no record says that it is a guest's", p.root()),
			"move it away, or give the guest another name")
	}
	return nil
}

// missing is the error of a guest that has lost its root file system.
func missing(r record) error {
	return diag.Container.Hint(fmt.Errorf("the disk of guest %s is missing: there is no %s", r.Name,
		path.Join(cloud.Disks, r.Name)), "mount the file system that has it, or restore it; to make the guest from its "+
		"image again, remove %s", recordPath(r.Name))
}

// restarting returns the changes after which a guest has to start again. Only these are reported: a service that
// watches the guest restarts it for each change.
func restarting(changes *value.Map) *value.Map {
	some := value.NewMap()
	for _, key := range []string{"guest", "settings", "mounts"} {
		if v, is := changes.Get(key); is {
			some.Set(key, v)
		}
	}
	return some
}

// disk returns the ID of the guest's disk.
func (p *present) disk() string { return cmp.Or(p.Disk, p.ID) }

// awaits reports whether the archive of a guest that moves here has not arrived. complete says that its root file
// system is there.
func (p *present) awaits(h *host.Host, complete bool) (bool, error) {
	if !p.Moved || complete {
		return false, nil
	}
	arrived, err := exists(h, p.Image)
	return !arrived, err
}

// spent adds the removal of the archive that the guest was made from to changes, if it is still there.
func (p *present) spent(h *host.Host, changes *value.Map) error {
	is, err := exists(h, p.Image)
	if is {
		changes.Set("archive", p.Image+" removed")
	}
	return err
}

func (p *present) root() string { return path.Join(cloud.Disks, p.Name) }

// hasContent reports whether a file exists and has the given content.
func hasContent(h *host.Host, file, content string) (bool, error) {
	data, err := h.Files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return string(data) == content, err
}

func (p *present) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	report := module.Report{Changes: d.Changes, Comment: "guest " + p.Name + " is there"}
	if d.Changes.Len() == 0 {
		report.Comment += "; changed without a restart: " + value.Str(d.Planned)
	}
	if err := closeDir(h, cloud.Disks); err != nil {
		return module.Report{}, err
	}
	if _, create := d.Changes.Get("guest"); create {
		if err := p.create(ctx, h); err != nil {
			return module.Report{}, fmt.Errorf("creating guest %s: %w", p.Name, err)
		}
	} else if err := p.adjust(ctx, h); err != nil {
		return module.Report{}, err
	}
	if text := p.putAsideText(); text != "" {
		report.Warnings = []string{text}
	}
	return report, p.finish(h)
}

// finish removes the archive from which the guest was made, mounts directories for it, and writes its settings.
func (p *present) finish(h *host.Host) error {
	if p.Moved {
		if err := removeFile(h, p.Image); err != nil {
			return err
		}
	}
	if err := p.bind(h); err != nil {
		return err
	}
	return p.configure(h)
}

// adjust mounts the disk of a guest that was made before, and gives it its size.
func (p *present) adjust(ctx context.Context, h *host.Host) error {
	if p.volume != nil {
		if err := p.volume.place(ctx, h); err != nil {
			return err
		}
	}
	if p.bytes == 0 {
		return nil
	}
	return p.resize(ctx, h)
}

// create makes the root file system. It first removes what an interrupted run left, unless that is complete.
func (p *present) create(ctx context.Context, h *host.Host) error {
	if err := p.putAside(ctx, h); err != nil {
		return err
	}
	if p.kept {
		return p.bringBack(h)
	}
	r := record{Name: p.Name, ID: p.ID, Disk: p.Disk, Driver: p.Driver, Step: creating, Quota: p.kind}
	if !p.Moved {
		r.Size = p.bytes
	}
	before, known, err := readRecord(h, p.Name)
	if err == nil {
		err = p.prepareVolume(ctx, h, before, &r)
	}
	if err != nil {
		return err
	}
	complete, err := exists(h, p.root())
	if err != nil {
		return err
	}
	if !known || before != r {
		if err := r.write(h); err != nil {
			return err
		}
	}
	if complete { // unpack renames the tree to this path when it is complete, and bringBack a disk that was put aside
		err = removeFile(h, asideRecord(p.Name, p.disk()))
	} else {
		err = p.unpack(ctx, h)
	}
	if err == nil && p.quota != nil && (complete || p.Moved) { // the size may be another one since
		err = p.fit(ctx, h, &r)
	}
	if err != nil {
		return err
	}
	r.Step, r.Made = ready, time.Now().UTC().Format(time.RFC3339)
	return r.write(h)
}

// seed writes the files that configure the tree as this guest, without following a link of the image.
func (p *present) seed(ctx context.Context, h *host.Host, dir string) error {
	root, err := h.Files.Beneath(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	texts := map[string]string{"/etc/machine-id": p.ID + "\n", "/etc/hostname": p.Hostname + "\n"}
	if p.Contents != nil {
		for target, text := range p.Contents.All() {
			texts[value.Str(target)] = value.Str(text)
		}
	}
	for _, target := range slices.Sorted(maps.Keys(texts)) {
		if err := put(root, target, strings.NewReader(texts[target]), 0o644); err != nil {
			return err
		}
	}
	copies, err := pathsOf("copies", p.Copies)
	if err != nil {
		return err
	}
	for _, target := range slices.Sorted(copies.Keys()) {
		if err := copyTo(h, root, copies[target], target); err != nil {
			return err
		}
	}
	return p.enable(ctx, h, dir)
}

// enable makes units of the tree start at boot.
func (p *present) enable(ctx context.Context, h *host.Host, dir string) error {
	for _, unit := range p.Enable {
		_, err := h.Tool(ctx, host.Tool{Argv: []string{"systemctl", "--root=" + dir, "enable", unit}, Package: "systemd",
			Changes: host.Subject{Kind: host.KindCommand, Name: "enabling " + unit + " in guest " + p.Name}})
		if err != nil {
			return host.Failed(diag.Container, err, "enabling "+unit, "see whether the image has this unit")
		}
	}
	return nil
}

func copyTo(h *host.Host, root host.Files, source, target string) error {
	info, err := h.Files.Stat(source)
	if err != nil {
		return fmt.Errorf("copying %s: %w", source, err)
	}
	data, err := h.Files.ReadFile(source)
	if err != nil {
		return fmt.Errorf("copying %s: %w", source, err)
	}
	return put(root, target, bytes.NewReader(data), info.Mode.Perm())
}

// put writes a file below a root and creates the missing directories above it. It replaces a link at the path.
func put(root host.Files, target string, content io.Reader, mode fs.FileMode) error {
	dir := path.Dir(target)
	for above := "/"; ; {
		rest := strings.TrimPrefix(strings.TrimPrefix(dir, above), "/")
		if rest == "" {
			break
		}
		first, _, _ := strings.Cut(rest, "/")
		above = path.Join(above, first)
		if _, err := root.Lstat(above); errors.Is(err, fs.ErrNotExist) {
			err = root.Mkdir(above, 0o755)
			if err != nil {
				return fmt.Errorf("making %s in the guest: %w", above, err)
			}
		}
	}
	err := root.Write(target, host.NewFile{Content: content, Mode: &mode, UID: 0, GID: 0, ReplaceLink: true})
	if err != nil {
		return fmt.Errorf("writing %s in the guest: %w", target, err)
	}
	return nil
}
