// Package alternatives implements alternatives.install and the other alternatives states, which select the
// program behind a name such as editor.
//
// The choices are read from the files of update-alternatives, without a process. Changes are made by that tool.
package alternatives

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of alternatives.
func Functions() module.Table {
	return module.Table{
		"install": func() module.Resource { return &install{} },
		"remove":  func() module.Resource { return &remove{} },
		"set":     func() module.Resource { return &set{} },
		"auto":    func() module.Resource { return &auto{} },
	}
}

// tool runs update-alternatives.
func tool(ctx context.Context, h *host.Host, name string, args ...string) error {
	plain := args // the tool creates only the link, and the paths behind it are recorded as text
	if args[0] == "--install" {
		plain = args[2:]
	}
	_, err := h.Tool(ctx, host.Tool{
		Plain: plain, Argv: append([]string{"update-alternatives"}, args...),
		Changes: host.Subject{Kind: host.KindAlternative, Name: name}, Package: "dpkg, or alternatives",
	})
	return host.Failed(diag.Setting, err, "alternative "+name,
		"see `update-alternatives --display "+name+"` on the host; the target of a path must exist first")
}

func valid(name string, paths ...string) error {
	if name == "" || strings.ContainsAny(name, "/ \t\n") || name[0] == '-' || name[0] == '.' {
		return diag.Argument.Hint(fmt.Errorf("%q is not a valid name of an alternative", name),
			"it is a word such as editor, and not a path")
	}
	for _, p := range paths {
		if !path.IsAbs(p) || strings.Contains(p, "\n") {
			return fmt.Errorf("%q is not an absolute path", p)
		}
	}
	return nil
}

// install implements alternatives.install.
type install struct {
	Name     string `sls:"name"`
	Link     string `sls:"link,required"`
	Path     string `sls:"path,required"`
	Priority int    `sls:"priority,required"`
}

func (i *install) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := valid(i.Name, i.Link, i.Path); err != nil {
		return module.Diff{}, err
	}
	g, _, err := read(h, i.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if g.has(i.Path) {
		return module.Diff{Comment: fmt.Sprintf("%s is a choice for %s", i.Path, i.Name)}, nil
	}
	return module.Diff{
		Changes: value.NewMap("name", i.Name, "link", i.Link, "path", i.Path, "priority", i.Priority),
		Planned: value.NewMap(),
		Comment: fmt.Sprintf("%s would become a choice for %s", i.Path, i.Name),
	}, nil
}

func (i *install) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := tool(ctx, h, i.Name, "--install", i.Link, i.Name, i.Path, fmt.Sprint(i.Priority)); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("%s is a choice for %s", i.Path, i.Name)}, nil
}

// remove implements alternatives.remove.
type remove struct {
	Name string `sls:"name"`
	Path string `sls:"path,required"`
}

func (r *remove) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := valid(r.Name, r.Path); err != nil {
		return module.Diff{}, err
	}
	g, _, err := read(h, r.Name)
	if err != nil {
		return module.Diff{}, err
	}
	if !g.has(r.Path) {
		return module.Diff{Comment: fmt.Sprintf("%s is not a choice for %s", r.Path, r.Name)}, nil
	}
	return module.Diff{Changes: fallback(g.without(r.Path)), Planned: value.NewMap(),
		Comment: fmt.Sprintf("%s would no longer be a choice for %s", r.Path, r.Name)}, nil
}

// fallback returns changes with the path that the name leads to; nil stands for none.
func fallback(g group) *value.Map {
	if g.current == "" {
		return value.NewMap("path", nil)
	}
	return value.NewMap("path", g.current)
}

func (r *remove) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if err := tool(ctx, h, r.Name, "--remove", r.Name, r.Path); err != nil {
		return module.Report{}, err
	}
	g, _, err := read(h, r.Name)
	return module.Report{Changes: fallback(g),
		Comment: fmt.Sprintf("%s is no longer a choice for %s", r.Path, r.Name)}, err
}

// set implements alternatives.set.
type set struct {
	Name string `sls:"name"`
	Path string `sls:"path,required"`
}

func (s *set) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := valid(s.Name, s.Path); err != nil {
		return module.Diff{}, err
	}
	g, _, err := read(h, s.Name)
	d := module.Diff{Planned: value.NewMap(), Comment: fmt.Sprintf("%s would lead to %s", s.Name, s.Path)}
	switch {
	case err != nil:
		return module.Diff{}, err
	case g.current == s.Path:
		return module.Diff{Comment: fmt.Sprintf("%s leads to %s", s.Name, s.Path)}, nil
	case !g.has(s.Path):
		d.Unknown = true
		d.Comment += ", if an earlier state makes that a choice"
	default:
		d.Changes = value.NewMap("path", s.Path)
	}
	return d, nil
}

func (s *set) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	g, _, err := read(h, s.Name)
	if err != nil {
		return module.Report{}, err
	}
	if !g.has(s.Path) {
		return module.Report{}, diag.Setting.Hint(fmt.Errorf("%s is not a choice for %s", s.Path, s.Name), "%s", choices(g))
	}
	if err := tool(ctx, h, s.Name, "--set", s.Name, s.Path); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: value.NewMap("path", s.Path),
		Comment: fmt.Sprintf("%s leads to %s", s.Name, s.Path)}, nil
}

// choices returns a hint that lists the choices.
func choices(g group) string {
	if len(g.choices) == 0 {
		return "make it one in an alternatives.install state that this one requires"
	}
	paths := make([]string, len(g.choices))
	for i, c := range g.choices {
		paths[i] = c.path
	}
	return "the choices are " + strings.Join(paths, ", ")
}

// auto implements alternatives.auto.
type auto struct {
	Name string `sls:"name"`
}

func (a *auto) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := valid(a.Name); err != nil {
		return module.Diff{}, err
	}
	g, ok, err := read(h, a.Name)
	switch {
	case err != nil:
		return module.Diff{}, err
	case !ok:
		return module.Diff{Unknown: true, Planned: value.NewMap(),
				Comment: fmt.Sprintf("there is no alternative %s; if an earlier state brings it, it would be automatic", a.Name)},
			nil
	case !g.manual:
		return module.Diff{Comment: a.Name + " is automatic"}, nil
	}
	return module.Diff{Changes: a.changes(g), Planned: value.NewMap(),
		Comment: fmt.Sprintf("%s would be automatic and lead to %s", a.Name, g.best())}, nil
}

func (a *auto) changes(g group) *value.Map {
	return value.NewMap("result", fmt.Sprintf("%s is automatic and leads to %s", a.Name, g.best()))
}

func (a *auto) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	g, ok, err := read(h, a.Name)
	if err != nil {
		return module.Report{}, err
	}
	if !ok {
		return module.Report{}, diag.Setting.Hint(fmt.Errorf("there is no alternative %s", a.Name), "%s", choices(g))
	}
	if err := tool(ctx, h, a.Name, "--auto", a.Name); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: a.changes(g), Comment: a.Name + " is automatic"}, nil
}
