package file

import (
	"context"
	"fmt"
	"path"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hardlink implements file.hardlink: a hard link to a file.
type hardlink struct {
	ownership
	Name     string      `sls:"name"`
	Target   string      `sls:"target,required"`
	Force    bool        `sls:"force"`
	MakeDirs bool        `sls:"makedirs"`
	DirMode  module.Mode `sls:"dir_mode"`

	own   perms // the owner and mode of directories that are created
	there bool
}

func (l *hardlink) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	var d module.Diff
	var err error
	if l.Name, err = absolute(h, "name", l.Name); err != nil {
		return d, err
	}
	if l.Target, err = absolute(h, "target", l.Target); err != nil {
		return d, err
	}
	if l.own.owner, err = l.ownership.resolve(h); err != nil {
		return d, err
	}
	l.own.mode = l.DirMode
	target, there, err := look(h.Files.Stat, l.Target)
	switch {
	case err != nil:
		return d, err
	case !there:
		return d, lackingFile(fmt.Errorf("the target %s does not exist", l.Target), l.Target)
	case target.IsDir():
		return d, host.Unlike(l.Target, target, host.AFile, "a directory has one name only; name a file as the target")
	}
	return l.compare(h, d)
}

func (l *hardlink) compare(h *host.Host, d module.Diff) (module.Diff, error) {
	info, there, err := look(h.Files.Lstat, l.Name)
	if err != nil {
		return d, err
	}
	target, err := h.Files.Lstat(l.Target)
	if err != nil {
		return d, err
	}
	l.there = there
	d.Comment = fmt.Sprintf("would link %s to %s", l.Name, l.Target)
	d.Changes = value.NewMap("new", l.Name)
	switch {
	case !there:
		if !l.MakeDirs && !isDir(h, path.Dir(l.Name)) {
			d.Missing = append(d.Missing, noParent(h, l.Name))
		}
	case info.IsDir():
		return module.Diff{}, host.Unlike(l.Name, info, host.AFile, "remove it first")
	case info.ID() == target.ID():
		return module.Diff{Comment: l.Name + " is as it should be"}, nil
	case info.Links > 1:
		d.Planned = value.NewMap("change", l.Name)
	case l.Force:
		d.Changes = value.NewMap("forced", "File for hard link was forcibly replaced", "new", l.Name)
		d.Planned = value.NewMap()
	default:
		return module.Diff{}, host.WithObstacle(l.Name, diag.Path.Hint(fmt.Errorf("%s exists and is another file", l.Name),
			"set force: True to replace it"))
	}
	return d, nil
}

func (l *hardlink) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if l.own.problem != nil {
		return module.Report{}, l.own.problem
	}
	if !isDir(h, path.Dir(l.Name)) {
		if !l.MakeDirs {
			return module.Report{}, noParent(h, l.Name)
		}
		if err := parents(h, l.Name, l.own); err != nil {
			return module.Report{}, err
		}
	}
	if err := l.link(h); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("linked %s to %s", l.Name, l.Target)}, nil
}

// link creates the link at a temporary path and renames it, so that the name always exists.
func (l *hardlink) link(h *host.Host) error {
	if !l.there {
		return h.Files.Link(l.Target, l.Name)
	}
	temp := path.Join(path.Dir(l.Name), host.TempName("*"))
	if err := h.Files.Link(l.Target, temp); err != nil {
		return err
	}
	if err := h.Files.Rename(temp, l.Name); err != nil {
		_ = h.Files.Remove(temp)
		return err
	}
	return nil
}
