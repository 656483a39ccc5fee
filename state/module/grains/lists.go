package grains

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// listPresent implements grains.list_present.
type listPresent struct {
	grain
	Value any `sls:"value,required"` // a value or a list of values
}

func (l *listPresent) Check(context.Context, *host.Host) (module.Diff, error) {
	list, ok := l.list()
	switch {
	case !ok:
		return module.Diff{}, l.noList()
	case len(l.lacking(list)) == 0:
		return module.Diff{Comment: fmt.Sprintf("value %s is already in grain %s", value.Str(l.Value), l.path())}, nil
	}
	diff := module.Diff{Changes: value.NewMap("new", value.NewMap(l.path(), l.wanted(list))),
		Planned: value.NewMap("new", l.Value)}
	diff.Comment = fmt.Sprintf("grain %s is set to be added", l.path())
	if list != nil {
		diff.Planned = value.NewMap("new", list)
		diff.Comment = fmt.Sprintf("value %s is set to be appended to grain %s", value.Str(l.Value), l.path())
	}
	return diff, nil
}

// wanted returns the list with all values.
func (l *listPresent) wanted(list *value.List) *value.List {
	wanted := value.NewList()
	if list != nil {
		wanted.Items = slices.Clone(list.Items)
	}
	wanted.Items = append(wanted.Items, l.lacking(list)...)
	return wanted
}

// lacking returns the values that are missing in the list.
func (l *listPresent) lacking(list *value.List) (lacking []any) {
	for _, v := range several(l.Value) {
		if list == nil || !value.Contains(list.Items, v) {
			lacking = append(lacking, v)
		}
	}
	return lacking
}

func several(v any) []any {
	if list, ok := v.(*value.List); ok {
		return list.Items
	}
	return []any{v}
}

func (l *listPresent) Apply(ctx context.Context, _ *host.Host, d module.Diff) (module.Report, error) {
	list, _ := l.list()
	done := module.Report{Changes: d.Changes,
		Comment: fmt.Sprintf("append value %s to grain %s", value.Str(l.Value), l.path())}
	return l.set(ctx, l.wanted(list), true, false, done)
}

// listAbsent implements grains.list_absent.
type listAbsent struct {
	grain
	Value any `sls:"value,required"` // a value or a list of values
}

func (l *listAbsent) Check(context.Context, *host.Host) (module.Diff, error) {
	list, ok := l.list()
	if !ok {
		return module.Diff{}, l.noList()
	}
	if list == nil {
		return module.Diff{Comment: fmt.Sprintf("grain %s does not exist", l.path())}, nil
	}
	comments, deleted := make([]string, 0, 1), value.NewList()
	for _, v := range several(l.Value) {
		if value.Contains(list.Items, v) {
			deleted.Append(v)
			comments = append(comments, fmt.Sprintf("value %s in grain %s is set to be deleted", value.Str(v), l.path()))
		} else {
			comments = append(comments, fmt.Sprintf("value %s is absent from grain %s", value.Str(v), l.path()))
		}
	}
	diff := module.Diff{Comment: strings.Join(comments, "\n")}
	if len(deleted.Items) > 0 {
		diff.Changes = value.NewMap("deleted", deleted)
	}
	return diff, nil
}

func (l *listAbsent) Apply(ctx context.Context, _ *host.Host, d module.Diff) (module.Report, error) {
	list, _ := l.list()
	gone := several(l.Value)
	kept := value.NewList(slices.DeleteFunc(slices.Clone(list.Items), func(v any) bool {
		return value.Contains(gone, v)
	})...)
	done := module.Report{Changes: d.Changes,
		Comment: strings.ReplaceAll(d.Comment, "is set to be deleted", "was deleted")}
	return l.set(ctx, kept, true, false, done)
}
