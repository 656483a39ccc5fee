package file

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// obstacle is something that is where a directory shall be; the zero obstacle is none.
type obstacle struct {
	kind   string // File or Symlink, as changes call it
	forced bool   // it is removed
	backup string // it is moved there
}

// obstacle finds what is in the way, or says why it has to stay there.
func (d *directory) obstacle(h *host.Host) (obstacle, error) {
	info, there, err := look(h.Files.Lstat, d.Name)
	if err != nil || !there || info.IsDir() {
		return obstacle{}, err
	}
	way := obstacle{kind: "File"}
	if info.IsLink() {
		files := h.Files
		if !d.AllowSymlink || d.Force {
			files = h.Following().Files // the link stays or goes itself
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
			return way, diag.WithHint(fmt.Errorf("%s is in the way, and so is its backup %s", d.Name, way.backup), "set force: True, or choose another backupname")
		}
		return way, nil
	}
	if way.forced = d.Force; !way.forced {
		what := "a file"
		if info.IsLink() {
			what = "a link"
		}
		return way, diag.WithHint(fmt.Errorf("%s is %s", d.Name, what), "set force: True to replace it, or backupname to keep it elsewhere")
	}
	return way, nil
}

// clear takes the obstacle away.
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
