package file

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// rename implements file.rename: it moves a file or directory to another path.
type rename struct {
	Name     string `sls:"name"`
	Source   string `sls:"source,required"`
	Force    bool   `sls:"force"`
	MakeDirs bool   `sls:"makedirs"`

	there bool
}

func (r *rename) Check(_ context.Context, h *host.Host) (d module.Diff, err error) {
	if r.Name, err = absolute(h, "name", r.Name); err != nil {
		return d, err
	}
	if r.Source, err = absolute(h, "source", r.Source); err != nil {
		return d, err
	}
	_, waits, err := look(h.Files.Lstat, r.Source)
	if err != nil || !waits {
		return module.Diff{Comment: r.Source + " does not exist any more"}, err
	}
	if _, r.there, err = look(h.Files.Lstat, r.Name); err != nil {
		return d, err
	}
	if r.there && !r.Force {
		return module.Diff{Comment: r.Name + " exists and is kept"}, nil
	}
	d = module.Diff{Changes: value.NewMap(r.Name, r.Source), Planned: value.NewMap(),
		Comment: fmt.Sprintf("would move %s to %s", r.Source, r.Name)}
	if !r.MakeDirs && !isDir(h, path.Dir(r.Name)) {
		d.Missing = append(d.Missing, noParent(h, r.Name))
	}
	return d, nil
}

func (r *rename) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if !isDir(h, path.Dir(r.Name)) {
		if !r.MakeDirs {
			return module.Report{}, noParent(h, r.Name)
		}
		if err := parents(h, r.Name, unchanged()); err != nil {
			return module.Report{}, err
		}
	}
	if r.there && showsAsDir(h, r.Name) { // rename(2) replaces everything but a directory
		if err := h.Files.RemoveAll(r.Name); err != nil {
			return module.Report{}, err
		}
	}
	if err := move(ctx, h, r.Source, r.Name); err != nil {
		return module.Report{}, fmt.Errorf("moving %s to %s: %w", r.Source, r.Name, err)
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("moved %s to %s", r.Source, r.Name)}, nil
}

// move renames a file or directory. If the new path is on another file system, it copies and removes the original.
func move(ctx context.Context, h *host.Host, from, to string) error {
	err := h.Files.Rename(from, to)
	if !errors.Is(err, host.ErrOtherFilesystem) {
		return err
	}
	info, err := h.Files.Lstat(from)
	if err != nil {
		return err
	}
	temp := path.Join(path.Dir(to), host.TempName("*"))
	if err := copyTree(ctx, h, from, temp, ownerOf(h, info)); err != nil {
		return errors.Join(err, h.Files.RemoveAll(temp))
	}
	if err := h.Files.Rename(temp, to); err != nil {
		return errors.Join(err, h.Files.RemoveAll(temp))
	}
	return h.Files.RemoveAll(from)
}
