package file

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// node implements file.mknod: a named pipe, or a device with its numbers.
type node struct {
	ownership
	Name  string      `sls:"name"`
	Type  string      `sls:"ntype"` // p, b or c
	Major int         `sls:"major"`
	Minor int         `sls:"minor"`
	Mode  module.Mode `sls:"mode"`

	perms perms
	info  host.Info
	there bool
}

func (n *node) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	name, err := absolute(h, "name", n.Name)
	if err != nil {
		return module.Diff{}, err
	}
	n.Name = name
	kind, ok := map[string]fs.FileMode{"p": fs.ModeNamedPipe, "b": fs.ModeDevice,
		"c": fs.ModeDevice | fs.ModeCharDevice}[n.Type]
	if !ok {
		return module.Diff{}, diag.Argument.Hint(fmt.Errorf("ntype is %q", n.Type),
			"write p for a pipe, b for a block device or c for a character device")
	}
	if n.perms.owner, err = n.ownership.resolve(h); err != nil {
		return module.Diff{}, err
	}
	n.perms.mode = n.Mode
	if err := n.perms.check(h, name); err != nil {
		return module.Diff{}, err
	}
	if n.info, n.there, err = look(h.Files.Lstat, name); err != nil {
		return module.Diff{}, err
	}
	d := module.Diff{Warnings: n.perms.notes, Missing: n.perms.lacks()}
	if !n.there {
		d.Changes, d.Comment = value.NewMap("new", name), "would make "+name
		return d, h.Commands.Allowed("mknod " + name)
	}
	if n.info.Mode.Type() != kind {
		return d, host.WithObstacle(name, diag.Path.Hint(fmt.Errorf("%s exists and is something else", name),
			"remove it in a file.absent state that this one requires"))
	}
	d.Changes = value.NewMap()
	n.perms.note(n.info, d.Changes)
	d.Comment = name + " is as it should be"
	if d.Changes.Len() > 0 {
		d.Comment = "would update " + name
	}
	return d, nil
}

func (n *node) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if n.perms.problem != nil {
		return module.Report{}, n.perms.problem
	}
	if !n.there {
		if err := n.make(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	if err := n.perms.declared(h, n.Name, n.perms.set(h, n.Name, n.info)); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: n.Name + " is as it should be"}, nil
}

// make runs mknod and reads the metadata of the result.
func (n *node) make(ctx context.Context, h *host.Host) error {
	argv := []string{"mknod", "--", n.Name, n.Type}
	if n.Type != "p" {
		argv = append(argv, fmt.Sprint(n.Major), fmt.Sprint(n.Minor))
	}
	_, err := h.Tool(ctx, host.Tool{Argv: argv, Package: "coreutils",
		Changes: host.Subject{Kind: host.KindFile, Name: n.Name}})
	if err != nil {
		return fmt.Errorf("making %s: %w", n.Name, err)
	}
	n.info, err = h.Files.Lstat(n.Name)
	return err
}
