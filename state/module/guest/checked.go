package guest

import (
	"context"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// checked implements guest.checked: it fails if the data of the cloud is not as corpus publishes it, such as if two
// guests have the same address, port, name or ID. It changes nothing.
type checked struct {
	Name string `sls:"name"`
	Data string `sls:"data,required"` // the cloud's data, as YAML or JSON
}

func (c *checked) Check(context.Context, *host.Host) (module.Diff, error) {
	if _, err := cloud.Parse(cloud.Name, []byte(c.Data)); err != nil {
		return module.Diff{}, err
	}
	return module.Diff{Comment: "the cloud has no contradictions"}, nil
}

func (c *checked) Apply(context.Context, *host.Host, module.Diff) (module.Report, error) {
	return module.Report{Comment: "the cloud has no contradictions"}, nil
}
