package docker

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// volumePresent implements docker_volume.present.
type volumePresent struct {
	Name       string `sls:"name"`
	Driver     string `sls:"driver"`
	DriverOpts any    `sls:"driver_opts"`
	Force      bool   `sls:"force"` // replace a volume with another driver, and lose its content

	replace bool
}

func (v *volumePresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	would := "make the volume " + v.Name
	if d, ok, err := ready(h, would); !ok || err != nil {
		return d, err
	}
	var now struct{ Driver string }
	there, err := inspect(ctx, h, "volume", v.Name, &now)
	switch {
	case err != nil:
		return unanswered(err, would)
	case there && (v.Driver == "" || v.Driver == now.Driver):
		return module.Diff{Comment: "the volume " + v.Name + " is there"}, nil
	case there && !v.Force:
		return module.Diff{},
			diag.Container.Hint(fmt.Errorf("the volume %s has the driver %s, and not %s", v.Name, now.Driver, v.Driver),
				"set force: True to replace it, with all that is in it")
	}
	v.replace = there
	changes := value.NewMap("created", v.Name)
	if there {
		changes.Set("removed", v.Name)
	}
	return module.Diff{Changes: changes, Comment: "would " + would}, nil
}

func (v *volumePresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	d, err := again(ctx, h, d, v.Check)
	if err != nil || d.Empty() {
		return module.Report{Comment: d.Comment}, err
	}
	if v.replace {
		if err := do(ctx, h, "volume", "rm", v.Name); err != nil {
			return module.Report{}, err
		}
	}
	args := []string{"volume", "create"}
	if v.Driver != "" {
		args = append(args, "--driver="+v.Driver)
	}
	for _, option := range list(v.DriverOpts) {
		args = append(args, "--opt="+option)
	}
	if err := do(ctx, h, append(args, v.Name)...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "made the volume " + v.Name}, nil
}

// volumeAbsent implements docker_volume.absent.
type volumeAbsent struct {
	Name   string `sls:"name"`
	Driver any    `sls:"driver"`
}

func (v *volumeAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if d, ok, err := ready(h, "remove the volume "+v.Name); !ok || err != nil {
		return d, err
	}
	there, err := inspect(ctx, h, "volume", v.Name, &struct{}{})
	switch {
	case err != nil:
		return unanswered(err, "remove the volume "+v.Name)
	case !there:
		return module.Diff{Comment: "there is no volume " + v.Name}, nil
	}
	return module.Diff{Changes: value.NewMap("removed", v.Name), Comment: "would remove the volume " + v.Name}, nil
}

func (v *volumeAbsent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	d, err := again(ctx, h, d, v.Check)
	if err != nil || d.Empty() {
		return module.Report{Comment: d.Comment}, err
	}
	if err := do(ctx, h, "volume", "rm", v.Name); err != nil {
		return module.Report{}, diag.Container.Hint(err, "remove the containers that use it first")
	}
	return module.Report{Changes: d.Changes, Comment: "removed the volume " + v.Name}, nil
}
