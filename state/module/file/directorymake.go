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
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (d *directory) Apply(ctx context.Context, h *host.Host, diff module.Diff) (module.Report, error) {
	if d.own.problem != nil {
		return module.Report{}, d.own.problem
	}
	if !d.there {
		return d.make(h, diff)
	}
	for _, p := range d.set {
		if err := ctx.Err(); err != nil {
			return module.Report{}, err
		}
		if err := p.set(h); err != nil && (p.path == d.Name || !vanished(err)) {
			return module.Report{}, err
		}
	}
	for _, p := range d.remove {
		if err := h.Files.RemoveAll(p); err != nil {
			return module.Report{}, fmt.Errorf("cleaning %s: %w", d.Name, err)
		}
	}
	return module.Report{Changes: diff.Changes, Comment: "updated " + d.Name}, nil
}

// set sets the owner and the mode of the path, or of the target of a link that is followed.
func (p ownedPath) set(h *host.Host) error {
	target := p.path
	if p.follow {
		var err error
		if target, err = h.Files.Resolve(p.path); err != nil {
			return err
		}
	}
	return h.Declared(p.path, p.perms.set(h, target, p.info))
}

func (d *directory) make(h *host.Host, diff module.Diff) (module.Report, error) {
	if err := d.way.clear(h, d.Name); err != nil {
		return module.Report{}, err
	}
	if !isDir(h, path.Dir(d.Name)) {
		if !d.MakeDirs {
			return module.Report{}, noParent(h, d.Name)
		}
		if err := parents(h, d.Name, d.own); err != nil {
			return module.Report{}, err
		}
	}
	if err := makeDir(h, d.Name, d.own); err != nil {
		return module.Report{}, err
	}
	if err := d.within.check(h, path.Join(d.Name, "file")); err != nil { // it has another owner than those above
		return module.Report{}, err
	}
	return module.Report{Changes: diff.Changes, Comment: "made " + d.Name}, nil
}

// recursion parses the recurse argument, which names the attributes of the directory that its content should have too.
func recursion(v any) ([]string, error) {
	if !value.Truth(v) {
		return nil, nil
	}
	list, ok := v.(*value.List)
	if !ok {
		return nil, diag.Argument.Hint(fmt.Errorf("recurse is a %s", value.TypeName(v)),
			"write it as a list, such as [user, group, mode]")
	}
	known := []string{"user", "group", "mode", "ignore_files", "ignore_dirs", "silent"}
	var kinds []string
	for _, item := range list.Items {
		kind := value.Str(item)
		if !slices.Contains(known, kind) {
			return nil, diag.Argument.Hint(fmt.Errorf("recurse cannot be %s", kind), "it can be %s", strings.Join(known, ", "))
		}
		kinds = append(kinds, kind)
	}
	if slices.Contains(kinds, "ignore_files") && slices.Contains(kinds, "ignore_dirs") {
		return nil, errors.New("recurse ignores both files and directories, so nothing is left")
	}
	return kinds, nil
}
