package file

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// node is file.mknod, which is refused: the kernel makes the devices of a host nowadays.
type node struct {
	Name  string `sls:"name"`
	Type  any    `sls:"ntype"`
	Major any    `sls:"major"`
	Minor any    `sls:"minor"`
	User  any    `sls:"user"`
	Group any    `sls:"group"`
	Mode  any    `sls:"mode"`
}

func (n *node) Check(context.Context, *host.Host) (module.Diff, error) {
	return module.Diff{}, diag.WithHint(errors.New("file.mknod is not supported"), "use cmd.run with mknod or mkfifo and creates, or a tmpfiles.d entry")
}

func (n *node) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{}, nil
}
