package file

import (
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// obstacle is an existing file at the path of a directory to create; the zero value means none.
type obstacle struct {
	kind   string // File or Symlink, as Salt's changes name it
	forced bool   // it is removed
	backup string // the path to which it is moved
}

// obstacle returns the file at the path, or an error if the arguments do not allow its removal.
func (d *directory) obstacle(h *host.Host) (obstacle, error) {
	info, there, err := look(h.Files.Lstat, d.Name)
	if err != nil || !there || info.IsDir() {
		return obstacle{}, err
	}
	way := obstacle{kind: "File"}
	if info.IsLink() {
		files := h.Files
		if !d.AllowSymlink || d.Force {
			files = h.Following().Files // the link itself stays or is removed
		}
		target, alive, err := look(files.Stat, d.Name)
		switch {
		case err != nil:
			return way, err
		case alive && target.IsDir() && d.AllowSymlink && !d.Force:
			return obstacle{}, nil
		case !alive || target.IsDir():
			way.kind = "Symlink"
		}
	}
	if d.BackupName != "" {
		way.backup, err = absolute(h, "backupname", d.BackupName)
		if err != nil {
			return way, err
		}
		if _, there, err := look(h.Files.Lstat, way.backup); err != nil || there && !d.Force {
			return way, host.WithObstacle(d.Name, errors.Join(err, diag.Path.Hint(
				fmt.Errorf("%s is in the way, and so is its backup %s", d.Name, way.backup),
				"set force: True, or choose another backupname")))
		}
		return way, nil
	}
	if way.forced = d.Force; !way.forced {
		return way, host.Unlike(d.Name, info, host.ADirectory,
			"set force: True to replace it, or backupname to keep it elsewhere")
	}
	return way, nil
}

// clear removes the obstacle or moves it to the backup.
func (o obstacle) clear(h *host.Host, name string) error {
	switch {
	case o.backup != "":
		if err := h.Files.RemoveAll(o.backup); err != nil {
			return err
		}
		return h.Files.Rename(name, o.backup)
	case o.forced:
		return h.Files.Remove(name)
	}
	return nil
}
