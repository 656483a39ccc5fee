package host

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// absent implements host.absent.
type absent struct {
	edit
	Name string   `sls:"name"`
	IP   []string `sls:"ip,required"`
}

func (a *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := oneName(a.Name); err != nil {
		return module.Diff{}, err
	}
	f, err := read(h)
	if err != nil {
		return module.Diff{}, err
	}
	a.text = f.text
	for _, ip := range a.IP {
		if f.has(ip, a.Name) {
			a.text = without(a.text, ip, a.Name)
		}
	}
	if a.text == f.text {
		return module.Diff{Comment: fmt.Sprintf("%s does not have %s", path, a.Name)}, nil
	}
	a.done = fmt.Sprintf("%s was removed from %s", a.Name, path)
	return module.Diff{
		Changes: value.NewMap("host", a.Name), Planned: value.NewMap(),
		Comment: fmt.Sprintf("%s would be removed from %s", a.Name, path),
	}, nil
}
