package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// only implements host.only: it sets the names of an address and removes all others.
type only struct {
	edit
	Name  string   `sls:"name"` // the address
	Names []string `sls:"hostnames,required"`
}

func (o *only) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := addresses([]string{o.Name}); err != nil {
		return module.Diff{}, err
	}
	f, err := read(h)
	if err != nil {
		return module.Diff{}, err
	}
	var before string
	if e, ok := f.at[o.Name]; ok {
		before = strings.Join(e.names, " ")
	}
	names := make([]string, len(o.Names))
	for i, name := range o.Names {
		names[i] = strings.TrimSpace(name)
		if err := oneName(names[i]); err != nil {
			return module.Diff{}, err
		}
	}
	after := strings.Join(names, " ")
	if before == after {
		return module.Diff{Comment: fmt.Sprintf("the names of %s are as declared", o.Name)}, nil
	}
	o.text = replaced(f.text, o.Name, after)
	o.done = fmt.Sprintf("the names of %s were set in %s", o.Name, path)
	return module.Diff{
		Changes: value.NewMap(o.Name, value.NewMap("old", before, "new", after)), Planned: value.NewMap(),
		Comment: fmt.Sprintf("the names of %s would become %q instead of %q", o.Name, after, before),
	}, nil
}
