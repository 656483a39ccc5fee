package file

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// job is the creation or update of one file whose content is known.
type job struct {
	validation
	perms
	family   *family
	name     string
	content  content
	show     bool
	release  bool // the release has all lines of the content
	follow   bool
	makeDirs bool
	dirMode  module.Mode
	backup   string

	there  bool
	target string    // the path to write: name, or the target of the link there
	info   host.Info // metadata of target
	link   bool      // name is a link to be replaced
	write  bool      // the content must be written
}

// look reads the metadata of the file at the path. It returns an error if there is anything but a regular file.
func (j *job) look(h *host.Host) error {
	info, there, err := look(h.Files.Lstat, j.name)
	if _, refused := host.Unsafe(err); refused {
		return err // the error names the path
	}
	if err != nil {
		return fmt.Errorf("looking at %s: %w", j.name, err)
	}
	j.target, j.info, j.there = j.name, info, there
	if there && info.IsLink() {
		if err := masked(h, j.name); err != nil && j.follow {
			return err
		}
		if j.target, err = h.Files.Resolve(j.name); err != nil {
			return err
		}
		if j.info, j.there, err = look(h.Files.Stat, j.target); err != nil {
			return err
		}
		j.link = !j.follow
	}
	switch {
	case !j.there:
	case j.info.IsDir():
		return host.Unlike(j.name, j.info, host.AFile, "remove it, or manage a file below it")
	case !j.info.IsRegular():
		return host.Unlike(j.name, j.info, host.AFile, "")
	}
	return nil
}

// unitDirs is part of the path of every systemd unit file.
const unitDirs = "/systemd/system/"

// masked returns an error if name is the unit file of a unit that systemctl masked, by a link to /dev/null.
func masked(h *host.Host, name string) error {
	if to, err := h.Files.Readlink(name); err == nil && to == "/dev/null" && strings.Contains(name, unitDirs) {
		unit := path.Base(name)
		return fmt.Errorf("%s is masked, by a link to /dev/null in the place of %s; if it is to run again: "+
			"systemctl unmask %s", unit, name, unit)
	}
	return nil
}

// check compares the file on the host with the wanted one.
func (j *job) check(ctx context.Context, h *host.Host, d module.Diff) (module.Diff, error) {
	j.keepMode()
	var err error
	if !j.there {
		d = j.checkNew(h, d)
	} else if d, err = j.checkOld(ctx, h, d); err != nil {
		return d, err
	}
	d.Warnings = append(d.Warnings, j.perms.notes...)
	d.Missing = append(d.Missing, j.perms.lacks()...)
	if j.write && j.validation.wanted() {
		if err := h.Commands.Allowed("check_cmd of " + j.name); err != nil {
			return module.Diff{Warnings: d.Warnings}, err
		}
	}
	return d, nil
}

// keepMode resolves mode: keep to the mode of the source, if the source has one.
func (j *job) keepMode() {
	if !j.mode.Keep {
		return
	}
	j.mode, j.kept = module.Mode{}, true
	if j.content.mode != 0 {
		j.mode = module.Mode{Given: true, Bits: j.content.mode & permBits}
	}
}

func (j *job) checkOld(ctx context.Context, h *host.Host, d module.Diff) (module.Diff, error) {
	d.Changes = value.NewMap()
	diff, err := j.family.compare(ctx, h, j.target, j.info, j.content, j.show, j.readers(h))
	if host.Leased(err) { // a lease prevents reading, but not replacing
		d.Warnings = append(d.Warnings, fmt.Sprintf("it could not be compared, so it is replaced: %v", err))
		diff, err = hiddenDiff, nil
	}
	if err != nil {
		return d, fmt.Errorf("comparing %s: %w", j.name, err)
	}
	replaced := j.link && j.content.given
	j.write = diff != "" || replaced
	if diff == "" && replaced {
		diff = linkReplaced
	}
	if diff != "" {
		d.Changes.Set("diff", diff)
	}
	j.perms.note(j.info, d.Changes)
	d.Comment = j.name + " is as it should be"
	if d.Changes.Len() == 0 {
		return d, nil
	}
	d.Comment = "would update " + j.name
	j.write = j.write || j.content.given && j.takesOver()
	return d, h.Changeable(j.target, j.info)
}

// readers says who may read the file, before and after the change.
func (j *job) readers(h *host.Host) readers { return readers{h, j.target, j.mode, j.release} }

// takesOver reports whether a user who can write to the file now cannot do so after the change of owner and mode.
// Such a user may have the file open, so it is replaced by a new file even if its content stays the same.
func (j *job) takesOver() bool {
	uid, gid := j.ids()
	mode := j.info.Mode
	if j.mode.Given {
		mode = j.mode.Bits
	}
	return uid >= 0 && uid != j.info.UID && j.info.UID != 0 || j.info.Mode&^mode&0o022 != 0 ||
		j.info.Mode&0o020 != 0 && gid >= 0 && gid != j.info.GID
}

// checkNew predicts the creation of a file. Salt creates it with a private mode first and reports a change of
// mode if the final mode differs.
func (j *job) checkNew(h *host.Host, d module.Diff) module.Diff {
	usual := 0o666 &^ h.Files.Umask()
	first := usual
	if j.mode.Given || j.content.copied {
		first = 0o600
	}
	switch {
	case !j.mode.Given:
		j.mode = module.Mode{Given: true, Bits: usual}
	case !j.dirMode.Given:
		j.dirMode = module.Mode{Given: true, Bits: searchable(j.mode.Bits)}
	}
	j.write = true
	d.Changes = value.NewMap("diff", newFile)
	if !j.content.given {
		d.Changes = value.NewMap("new", "file "+j.name+" created")
	}
	j.perms.note(birth(h, j.target, first), d.Changes)
	d.Planned = value.NewMap("newfile", j.name)
	d.Comment = "would make " + j.name
	if !j.makeDirs && !isDir(h, path.Dir(j.target)) {
		d.Missing = append(d.Missing, noParent(h, j.target))
	}
	return d
}

func (j *job) apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if j.problem != nil {
		return module.Report{}, j.problem
	}
	if err := j.place(h); err != nil {
		return module.Report{}, err
	}
	r := module.Report{Changes: d.Changes, Comment: "updated " + j.name}
	if !j.there {
		r.Comment = "made " + j.name
	}
	if !j.write {
		return r, j.declared(h, j.name, j.perms.set(h, j.target, j.info))
	}
	if err := j.put(ctx, h); err != nil {
		return module.Report{}, err
	}
	return r, nil
}

// place creates the directory of the file if it is missing and makedirs is set.
func (j *job) place(h *host.Host) error {
	if j.there || isDir(h, path.Dir(j.target)) {
		return nil
	}
	if !j.makeDirs {
		return noParent(h, j.target)
	}
	if err := h.Announce(j.target); err != nil {
		return err
	}
	return parents(h, j.target, perms{owner: j.owner, mode: j.dirMode})
}

// put writes the file after check_cmd has accepted it.
func (j *job) put(ctx context.Context, h *host.Host) error {
	f := j.newFile()
	content, err := j.content.reader(ctx, j.family)
	if err != nil {
		return err
	}
	defer content.Close()
	f.Content = content
	if j.validation.wanted() {
		checked, done, err := j.validate(ctx, h, j.family, j.name, f)
		if err != nil {
			return err
		}
		defer done()
		f.Content = checked
	}
	if err := j.family.backUp(ctx, h, j.backup, j.target); err != nil {
		return err
	}
	return j.declared(h, j.name, h.Files.Write(j.name, f))
}

func (j *job) newFile() host.NewFile {
	uid, gid := j.ids()
	f := host.NewFile{UID: uid, GID: gid, ReplaceLink: j.link}
	if j.mode.Given {
		f.Mode = &j.mode.Bits
	}
	if j.link && j.there { // the new file keeps the metadata of the link's target
		mode := j.info.Mode & permBits
		if uid == 0 && j.settable {
			mode = j.info.Closed() & permBits
		}
		if f.Mode == nil {
			f.Mode = &mode
		}
		if j.settable {
			f.UID, f.GID = keep(uid, j.info.UID), keep(gid, j.info.GID)
		}
	}
	return f
}

func keep(wanted, old int) int {
	if wanted >= 0 {
		return wanted
	}
	return old
}
