package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// symlink implements file.symlink: a symbolic link with a target and an owner.
type symlink struct {
	ownership
	unsupported
	Name       string      `sls:"name"`
	Target     string      `sls:"target,required"`
	Force      bool        `sls:"force"`
	BackupName string      `sls:"backupname"`
	MakeDirs   bool        `sls:"makedirs"`
	Mode       module.Mode `sls:"mode"` // the mode of directories that are created
	Atomic     bool        `sls:"atomic"`
	Copy       any         `sls:"disallow_copy_and_unlink"` // no effect: a backup is always made by renaming
	Inherit    bool        `sls:"inherit_user_and_group"`

	own    perms
	info   host.Info
	there  bool
	same   bool // the link has the declared target
	backup string
}

func (s *symlink) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	d := module.Diff{Warnings: s.unsupported.warnings()}
	name, err := absolute(h, "name", s.Name)
	if err != nil {
		return d, err
	}
	s.Name = name
	if s.info, s.there, err = look(h.Files.Lstat, name); err != nil {
		return d, err
	}
	if err := s.resolve(h); err != nil {
		return d, err
	}
	switch {
	case !s.there:
		d = s.foretell(h, d, "new")
	case !s.info.IsLink():
		if err := s.displace(h); err != nil {
			return d, err
		}
		d = s.foretell(h, d, "")
	default:
		d, err = s.compare(h, d)
	}
	d.Warnings = append(d.Warnings, s.own.notes...)
	return d, err
}

// resolve resolves the owner: root by default, unless inherit_user_and_group keeps that of an existing link.
func (s *symlink) resolve(h *host.Host) error {
	who := s.ownership
	if h.Files.CanChown() && !(s.Inherit && s.there && s.info.IsLink()) {
		who = who.orRoot(h)
	}
	var err error
	s.own.owner, err = who.resolve(h)
	s.own.mode = s.Mode
	return err
}

func (s *symlink) foretell(h *host.Host, d module.Diff, planned string) module.Diff {
	d.Comment = fmt.Sprintf("would link %s to %s", s.Name, s.Target)
	d.Changes = value.NewMap("new", s.Name)
	if s.backup == "" || s.Force {
		d.Planned = value.NewMap()
		if planned != "" {
			d.Planned.Set(planned, s.Name)
		}
	}
	if !s.MakeDirs && !isDir(h, path.Dir(s.Name)) {
		d.Missing = append(d.Missing, noParent(h, s.Name))
	}
	return d
}

// displace returns an error if a file or directory at the path must not be replaced. With backupname it sets the path
// of the backup.
func (s *symlink) displace(h *host.Host) error {
	if s.BackupName == "" {
		if s.Force || s.Atomic && !s.info.IsDir() {
			return nil
		}
		return host.Unlike(s.Name, s.info, host.ALink, "set force: True to replace it, or backupname to keep it")
	}
	s.backup = s.BackupName
	if !path.IsAbs(s.backup) {
		if s.backup != path.Base(s.backup) {
			return diag.Argument.Hint(fmt.Errorf("backupname %s is neither a file name nor an absolute path", s.backup),
				"write it as one of them")
		}
		s.backup = path.Join(path.Dir(path.Clean(s.Name)), s.backup)
	}
	if _, there, err := look(h.Files.Lstat, s.backup); err != nil || there && !s.Force {
		return host.WithObstacle(s.Name, errors.Join(err, diag.Path.Hint(
			fmt.Errorf("%s is in the way, and so is its backup %s", s.Name, s.backup),
			"set force: True, or choose another backupname")))
	}
	return nil
}

// compare returns the diff for an existing link.
func (s *symlink) compare(h *host.Host, d module.Diff) (module.Diff, error) {
	target, err := h.Files.Readlink(s.Name)
	if err != nil {
		return d, err
	}
	if s.same = path.Clean(target) == path.Clean(s.Target); !s.same {
		return s.foretell(h, d, "change"), nil
	}
	user, group := s.own.differs(s.info)
	if !user && !group {
		d.Comment = s.Name + " is as it should be"
		return d, nil
	}
	d.Comment = "would give " + s.Name + " another owner"
	uid, gid := keep(s.own.uid, s.info.UID), keep(s.own.gid, s.info.GID)
	d.Changes = value.NewMap("ownership", ownerText(h, uid, gid))
	d.Planned = value.NewMap("ownership", ownerText(h, s.info.UID, s.info.GID))
	return d, nil
}

// ownerText returns user:group, with a number for an account without a name.
func ownerText(h *host.Host, uid, gid int) string {
	user, group := strconv.Itoa(uid), strconv.Itoa(gid)
	if u, ok, err := h.Accounts.UserByID(uid); ok && err == nil {
		user = u.Name
	}
	if g, ok, err := h.Accounts.GroupByID(gid); ok && err == nil {
		group = g.Name
	}
	return user + ":" + group
}

func (s *symlink) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if s.own.problem != nil {
		return module.Report{}, s.own.problem
	}
	if !s.same {
		if err := s.make(h); err != nil {
			return module.Report{}, err
		}
	}
	r := module.Report{Changes: d.Changes, Comment: fmt.Sprintf("linked %s to %s", s.Name, s.Target)}
	uid, gid := s.own.ids()
	if uid < 0 && gid < 0 {
		return r, nil
	}
	return r, h.Files.Chown(s.Name, uid, gid)
}

func (s *symlink) make(h *host.Host) error {
	if !isDir(h, path.Dir(s.Name)) {
		if !s.MakeDirs {
			return noParent(h, s.Name)
		}
		if err := parents(h, s.Name, s.own); err != nil {
			return err
		}
	}
	switch {
	case s.backup != "":
		if err := h.Files.RemoveAll(s.backup); err != nil {
			return err
		}
		if err := h.Files.Rename(s.Name, s.backup); err != nil {
			return err
		}
	case s.there && s.info.IsDir(): // the new link replaces everything but a directory atomically
		if err := h.Files.RemoveAll(s.Name); err != nil {
			return err
		}
	}
	return h.Files.Symlink(s.Target, s.Name)
}
