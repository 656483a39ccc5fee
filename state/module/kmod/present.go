package kmod

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// present implements kmod.present.
type present struct {
	selection
	edit
}

func (p *present) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	names, err := p.modules()
	if err != nil {
		return module.Diff{}, err
	}
	all := strings.Join(names, ", ")
	unknown, err := p.plan(ctx, h, names)
	var refused *host.ToolError
	if errors.As(err, &refused) {
		return module.Diff{Unknown: true, Planned: value.NewMap(),
			Comment: fmt.Sprintf("%s is not to be found; if an earlier state brings it, it would be loaded", unknown)}, nil
	}
	if err != nil {
		return module.Diff{}, err
	}
	return p.diff(h, all+" would be loaded", all+" is loaded"), nil
}

// plan determines the modules to load and the changes of the list. If modprobe fails, it returns the name of the
// unknown module with the error.
func (p *present) plan(ctx context.Context, h *host.Host, names []string) (unknown string, err error) {
	p.changes, p.todo = value.NewMap(), nil
	have, err := loaded(h)
	if err != nil {
		return "", err
	}
	if p.list, err = openList(h); err != nil {
		return "", err
	}
	p.was = p.list.text
	live := h.Kernel.Allowed("loading kernel modules") == nil
	own := builtin(h)
	for _, name := range names {
		if live && !have[plain(name)] && !own[plain(name)] {
			if err := p.load(ctx, h, name, have); err != nil {
				return name, err
			}
		}
		if p.Persist && !p.list.has(name) {
			p.list = p.list.with(name)
			p.changes.Set(plain(name), "loaded")
		}
	}
	if !live && !p.Persist {
		return "", h.Kernel.Allowed("loading the kernel module " + p.Name)
	}
	return "", nil
}

// load records a module and the dependencies that modprobe would load.
func (p *present) load(ctx context.Context, h *host.Host, name string, have map[string]bool) error {
	out, err := h.Tool(ctx,
		host.Tool{Argv: append([]string{"modprobe", "-n", "-v"}, strings.Fields(name)...), Package: "kmod"})
	if err != nil {
		return err
	}
	p.todo = append(p.todo, name)
	for l := range strings.Lines(out) {
		f := strings.Fields(l)
		if len(f) < 2 || f[0] != "insmod" {
			continue
		}
		file, _, _ := strings.Cut(path.Base(f[1]), ".ko")
		if m := plain(file); !have[m] {
			have[m] = true
			p.changes.Set(m, "loaded")
		}
	}
	p.changes.Set(plain(name), "loaded")
	return nil
}

func (p *present) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	names, err := p.modules()
	if err != nil {
		return module.Report{}, err
	}
	if unknown, err := p.plan(ctx, h, names); err != nil {
		return module.Report{}, host.Failed(diag.Setting, err, "loading the kernel module "+unknown,
			"install the package that has it for the running kernel, in a state that this one requires")
	}
	done := value.NewMap()
	for _, name := range p.todo {
		if err := tool(ctx, h, name, append([]string{"modprobe"}, strings.Fields(name)...)...); err != nil {
			return module.Report{Changes: done}, host.Failed(diag.Setting, err, "loading the kernel module "+name,
				"`dmesg` on the host may show why")
		}
		done.Set(plain(name), "loaded")
	}
	if err := p.write(h); err != nil {
		return module.Report{Changes: done}, err
	}
	return module.Report{Changes: p.changes, Comment: strings.Join(names, ", ") + " is loaded"}, nil
}
