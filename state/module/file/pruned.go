package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/descent"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// pruned implements file.pruned: it removes a directory if it is empty, and with recurse all empty directories
// in it.
type pruned struct {
	Name         string `sls:"name"`
	Recurse      bool   `sls:"recurse"`
	IgnoreErrors bool   `sls:"ignore_errors"` // a directory that cannot be removed is not an error

	gone []string // directories to remove, each before those in it
}

func (p *pruned) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	name, err := absolute(h, "name", p.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if p.Name = path.Clean(name); p.Name == "/" {
		return module.Diff{}, diag.Argument.Hint(errors.New("/ cannot be removed"), "name the path to remove")
	}
	info, there, err := look(h.Files.Lstat, p.Name)
	switch {
	case err != nil:
		return module.Diff{}, err
	case !there:
		return module.Diff{Comment: p.Name + " does not exist"}, nil
	case !info.IsDir():
		return module.Diff{}, host.Unlike(p.Name, info, host.ADirectory, "file.absent removes it")
	}
	empty, err := p.look(ctx, h, p.Name, 0)
	switch {
	case err != nil:
		return module.Diff{}, err
	case !empty && !p.Recurse && !p.IgnoreErrors:
		return module.Diff{}, host.Unsuitable(p.Name, diag.Path.Hint(fmt.Errorf("%s is not empty", p.Name),
			"set recurse: True to remove the empty directories in it, or remove all of it with file.absent"))
	case len(p.gone) == 0:
		return module.Diff{Comment: "no directory is empty"}, nil
	}
	slices.Sort(p.gone)
	return module.Diff{Changes: value.NewMap("deleted", value.Strings(p.gone...)),
		Comment: "would remove " + strings.Join(p.gone, ", ")}, nil
}

// look reports whether a directory is empty or contains only directories that are removed.
func (p *pruned) look(ctx context.Context, h *host.Host, dir string, level int) (empty bool, err error) {
	if err := descent.Enter(ctx, dir, level); err != nil {
		return false, err
	}
	names, err := h.Files.ReadDir(dir)
	if err != nil {
		return false, err
	}
	empty = true
	for _, name := range names {
		place := path.Join(dir, name)
		info, there, err := look(h.Files.Lstat, place)
		if err != nil {
			return false, err
		}
		if !there {
			continue // see vanished
		}
		if !info.IsDir() || !p.Recurse {
			empty = false
			continue
		}
		below, err := p.look(ctx, h, place, level+1)
		if vanished(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		empty = empty && below
	}
	if empty {
		p.gone = append(p.gone, dir)
	}
	return empty, nil
}

func (p *pruned) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	for _, dir := range slices.Backward(p.gone) { // subdirectories first
		if err := h.Files.Remove(dir); err != nil && !p.IgnoreErrors {
			return module.Report{}, fmt.Errorf("removing %s: %w", dir, err)
		}
	}
	return module.Report{Changes: d.Changes, Comment: "removed " + strings.Join(p.gone, ", ")}, nil
}
