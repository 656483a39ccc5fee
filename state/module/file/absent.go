package file

import (
	"context"
	"errors"
	"path"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent implements file.absent: it removes the file, link or whole directory at a path.
type absent struct {
	Name string `sls:"name"`
}

func (a *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	name, err := absolute(h, "name", a.Name)
	if err != nil {
		return module.Diff{}, err
	}
	a.Name = name
	if path.Clean(name) == "/" {
		return module.Diff{}, diag.Argument.Hint(errors.New("/ cannot be removed"), "name the path to remove")
	}
	_, there, err := look(h.Files.Lstat, name)
	if err != nil || !there {
		return module.Diff{Comment: name + " does not exist"}, err
	}
	return module.Diff{Changes: value.NewMap("removed", name), Comment: "would remove " + name}, nil
}

func (a *absent) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.Files.RemoveAll(a.Name); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "removed " + a.Name}, nil
}
