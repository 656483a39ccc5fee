package kmod

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent implements kmod.absent.
type absent struct {
	selection
	Comment bool `sls:"comment"` // comment the module out in the list instead of deleting its line
	edit
}

func (a *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	names, err := a.modules()
	if err != nil {
		return module.Diff{}, err
	}
	if err := a.plan(h, names); err != nil {
		return module.Diff{}, err
	}
	all := strings.Join(names, ", ")
	return a.diff(h, all+" would be removed", all+" is not loaded"), nil
}

func (a *absent) plan(h *host.Host, names []string) (err error) {
	a.changes, a.todo = value.NewMap(), nil
	have, err := loaded(h)
	if err != nil {
		return err
	}
	if a.list, err = openList(h); err != nil {
		return err
	}
	a.was = a.list.text
	live := h.Kernel.Allowed("removing kernel modules") == nil
	for _, name := range names {
		if live && have[plain(name)] {
			a.todo = append(a.todo, name)
			a.changes.Set(plain(name), "removed")
		}
		if a.Persist && a.list.has(name) {
			a.list = a.list.without(name, a.Comment)
			a.changes.Set(plain(name), "removed")
		}
	}
	if !live && !a.Persist {
		return h.Kernel.Allowed("removing the kernel module " + a.Name)
	}
	return nil
}

func (a *absent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	done := value.NewMap()
	for _, name := range a.todo {
		if err := tool(ctx, h, name, "rmmod", plain(name)); err != nil {
			return module.Report{Changes: done}, host.Failed(diag.Setting, err, "removing the kernel module "+name,
				"see in `lsmod` what uses it, and stop that first")
		}
		done.Set(plain(name), "removed")
	}
	if err := a.write(h); err != nil {
		return module.Report{Changes: done}, err
	}
	return module.Report{Changes: d.Changes, Comment: strings.Join(d.Changes.Names(), ", ") + " was removed"}, nil
}
