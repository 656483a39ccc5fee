// Package grains implements the grains states, which manage the grains in a file of the host.
//
// The file is that of grains.setval. A change takes effect at once: later states of the run see it in their
// guards and templates of files. SLS files see it in the next run.
package grains

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Keeper gives access to the grains of the host.
type Keeper interface {
	// Grain returns the grain at a path such as roles:web.
	Grain(path, delimiter string) (any, bool)
	// Call calls a function that writes the file, such as grains.set.
	Call(ctx context.Context, name string, args []any, kwargs *value.Map) (any, error)
}

// Functions returns the functions of grains.
func Functions(keeper Keeper) module.Table {
	return module.Table{
		"present":      func() module.Resource { return &present{grain: grain{keeper: keeper}} },
		"absent":       func() module.Resource { return &absent{grain: grain{keeper: keeper}} },
		"append":       func() module.Resource { return &appended{grain: grain{keeper: keeper}} },
		"list_present": func() module.Resource { return &listPresent{grain: grain{keeper: keeper}} },
		"list_absent":  func() module.Resource { return &listAbsent{grain: grain{keeper: keeper}} },
		"exists":       func() module.Resource { return &exists{grain: grain{keeper: keeper}} },
	}
}

// grain holds the arguments that the functions have in common.
type grain struct {
	Name      string `sls:"name"`
	Delimiter string `sls:"delimiter"` // separates the parts of the name; a colon by default

	keeper Keeper
}

// path returns the name with colons between its parts.
func (g *grain) path() string {
	if g.Delimiter == "" {
		return g.Name
	}
	return strings.ReplaceAll(g.Name, g.Delimiter, ":")
}

func (g *grain) now() (any, bool) { return g.keeper.Grain(g.path(), ":") }

// list returns the grain as a list; ok is false if it has another type.
func (g *grain) list() (list *value.List, ok bool) {
	now, there := g.now()
	list, ok = now.(*value.List)
	return list, ok || !there || !value.Truth(now)
}

func (g *grain) noList() error {
	return diag.Grains.Hint(fmt.Errorf("grain %s is not a valid list", g.path()),
		"name a grain that holds a list, or replace this one with grains.present")
}

// set calls grains.set and returns an error if that reports a failure.
func (g *grain) set(ctx context.Context, v any, force, destructive bool, report module.Report) (module.Report, error) {
	answer, err := g.keeper.Call(ctx, "grains.set", []any{g.path(), v},
		value.NewMap("force", force, "destructive", destructive))
	if err != nil {
		return module.Report{}, err
	}
	said, _ := answer.(*value.Map)
	if !value.Truth(said.Value("result")) {
		return module.Report{}, fmt.Errorf("the grain was not set: %s", value.Str(said.Value("comment")))
	}
	return report, nil
}

// exists implements grains.exists.
type exists struct{ grain }

func (e *exists) Check(context.Context, *host.Host) (module.Diff, error) {
	if _, there := e.now(); !there {
		return module.Diff{}, diag.Grains.Hint(fmt.Errorf("grain %s does not exist", e.path()),
			"`corpus-agent call grains.ls` lists those there are")
	}
	return module.Diff{Comment: "grain exists"}, nil
}

func (e *exists) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil
}

// present implements grains.present.
type present struct {
	grain
	Value any  `sls:"value,required"`
	Force bool `sls:"force"` // allow to replace a mapping or list, or another value by one
}

func (p *present) Check(context.Context, *host.Host) (module.Diff, error) {
	now, there := p.now()
	switch {
	case there && value.Equal(now, p.Value):
		return module.Diff{Comment: "grain is already set"}, nil
	case there && now != nil && !p.Force && (holds(now) || holds(p.Value)):
		return module.Diff{},
			diag.Grains.Hint(fmt.Errorf("grain %s is %s, and is not replaced: one of the two values is a mapping or a list",
				p.path(), value.Repr(now)),
				"give `force: True` to replace it")
	case there:
		return p.differs(value.NewMap("changed", value.NewMap(p.path(), p.Value)), "changed"), nil
	}
	return p.differs(value.NewMap("new", p.path()), "added"), nil
}

// differs returns the diff, whose dry run is in Salt's words.
func (p *present) differs(dry *value.Map, how string) module.Diff {
	return module.Diff{Changes: value.NewMap(p.path(), p.Value), Planned: dry,
		Comment: fmt.Sprintf("grain %s is set to be %s", p.path(), how)}
}

func (p *present) Apply(ctx context.Context, _ *host.Host, d module.Diff) (module.Report, error) {
	done := module.Report{Changes: d.Changes, Comment: fmt.Sprintf("set grain %s to %s", p.path(), value.Str(p.Value))}
	return p.set(ctx, p.Value, p.Force, false, done)
}

// holds reports whether a value is a mapping or a list.
func holds(v any) bool {
	switch v.(type) {
	case *value.Map, *value.List:
		return true
	}
	return false
}

func planned(changes *value.Map, format string, args ...any) module.Diff {
	return module.Diff{Changes: changes, Comment: fmt.Sprintf(format, args...)}
}

// absent implements grains.absent.
type absent struct {
	grain
	Destructive bool `sls:"destructive"` // remove the grain instead of setting it to null
	Force       bool `sls:"force"`       // allow to remove a mapping or list
}

func (a *absent) Check(context.Context, *host.Host) (module.Diff, error) {
	now, there := a.now()
	switch {
	case !there:
		return module.Diff{Comment: fmt.Sprintf("grain %s does not exist", a.path())}, nil
	case now == nil && !a.Destructive:
		return module.Diff{Comment: fmt.Sprintf("grain %s has no value", a.path())}, nil
	case holds(now) && !a.Force:
		return module.Diff{}, diag.Grains.Hint(fmt.Errorf("grain %s is a mapping or a list, and is not removed", a.path()),
			"give `force: True` to remove it")
	case a.Destructive:
		return planned(value.NewMap("deleted", a.path()), "grain %s is set to be deleted", a.path()), nil
	}
	return planned(value.NewMap("changed", value.NewMap(a.path(), nil)),
		"the value of grain %s is set to be deleted (None)", a.path()), nil
}

func (a *absent) Apply(ctx context.Context, _ *host.Host, d module.Diff) (module.Report, error) {
	comment := fmt.Sprintf("the value of grain %s was set to None", a.path())
	if a.Destructive {
		comment = fmt.Sprintf("grain %s was deleted", a.path())
	}
	return a.set(ctx, nil, a.Force, a.Destructive, module.Report{Changes: d.Changes, Comment: comment})
}

// appended implements grains.append.
type appended struct {
	grain
	Value   any  `sls:"value,required"`
	Convert bool `sls:"convert"` // convert a grain that is not a list
}

func (a *appended) Check(context.Context, *host.Host) (module.Diff, error) {
	now, there := a.now()
	list, isList := now.(*value.List)
	switch {
	case !there:
		return module.Diff{}, diag.Grains.Hint(fmt.Errorf("grain %s does not exist", a.path()),
			"use grains.list_present, which makes the list")
	case !isList && !a.Convert:
		return module.Diff{}, diag.Grains.Hint(a.noList(), "give `convert: True` to make a list of it")
	case isList && value.Contains(list.Items, a.Value):
		return module.Diff{Comment: fmt.Sprintf("value %s is already in the list for grain %s",
			value.Str(a.Value), a.path())}, nil
	}
	return planned(value.NewMap("added", a.Value),
		"value %s is set to be added to grain %s", value.Str(a.Value), a.path()), nil
}

func (a *appended) Apply(ctx context.Context, _ *host.Host, d module.Diff) (module.Report, error) {
	now, _ := a.now()
	wanted := value.NewList()
	switch now := now.(type) {
	case *value.List:
		wanted.Items = slices.Clone(now.Items)
	case nil:
	default:
		wanted.Append(now)
	}
	wanted.Append(a.Value)
	done := module.Report{Changes: d.Changes,
		Comment: fmt.Sprintf("value %s was added to grain %s", value.Str(a.Value), a.path())}
	return a.set(ctx, wanted, true, false, done)
}
