package docker

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

// networkPresent implements docker_network.present. An existing network cannot be changed.
type networkPresent struct {
	Name       string      `sls:"name"`
	Driver     string      `sls:"driver"`
	DriverOpts any         `sls:"driver_opts"`
	Options    any         `sls:"options"` // an alias of driver_opts
	Subnet     string      `sls:"subnet"`
	Gateway    string      `sls:"gateway"`
	IPRange    string      `sls:"iprange"`
	IPAMPools  *value.List `sls:"ipam_pools"`
	Internal   bool        `sls:"internal"`
	Attachable bool        `sls:"attachable"`
	EnableIPv6 bool        `sls:"enable_ipv6"`
	Labels     any         `sls:"labels"`
	Containers any         `sls:"containers"` // containers to connect
	Reconnect  any         `sls:"reconnect"`
	Validate   any         `sls:"validate_ip_addrs"`

	join []string
	make bool
}

// network is the output of docker network inspect.
type network struct {
	Driver   string
	Internal bool
	IPAM     struct {
		Config []struct{ Subnet, Gateway string }
	}
	Containers map[string]struct{ Name string }
}

func (n *networkPresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	would := "make the network " + n.Name
	if d, ok, err := ready(h, would); !ok || err != nil {
		return d, err
	}
	var now network
	there, err := inspect(ctx, h, "network", n.Name, &now)
	if err != nil {
		return unanswered(err, would)
	}
	n.make, n.join = !there, nil
	for _, name := range list(n.Containers) {
		inside := false
		for _, c := range now.Containers {
			inside = inside || c.Name == name
		}
		if !inside {
			n.join = append(n.join, name)
		}
	}
	if there {
		if err := n.same(now); err != nil {
			return module.Diff{}, err
		}
	}
	if there && len(n.join) == 0 {
		return module.Diff{Comment: "the network " + n.Name + " is there"}, nil
	}
	changes := value.NewMap()
	if n.make {
		changes.Set("created", true)
	}
	if len(n.join) > 0 {
		changes.Set("connected", value.Strings(n.join...))
	}
	return module.Diff{Changes: changes, Comment: "would " + strings.TrimPrefix(would, "would ")}, nil
}

// same returns an error for declared properties that an existing network does not have.
func (n *networkPresent) same(now network) error {
	var differs []string
	if n.Driver != "" && n.Driver != now.Driver {
		differs = append(differs, "driver")
	}
	if n.Internal && !now.Internal {
		differs = append(differs, "internal")
	}
	for _, pool := range n.pools() {
		if !slices.ContainsFunc(now.IPAM.Config, func(c struct{ Subnet, Gateway string }) bool {
			return c.Subnet == pool[0] && (pool[1] == "" || c.Gateway == pool[1])
		}) {
			differs = append(differs, "subnet")
		}
	}
	if len(differs) == 0 {
		return nil
	}
	return diag.Container.Hint(fmt.Errorf("the network %s has another %s than was declared, and cannot be changed",
		n.Name, strings.Join(differs, ", ")),
		"remove it with docker_network.absent first, when its containers can do without it")
}

// pools returns the declared subnets with their gateways and ranges.
func (n *networkPresent) pools() (pools [][3]string) {
	if n.Subnet != "" {
		pools = append(pools, [3]string{n.Subnet, n.Gateway, n.IPRange})
	}
	if n.IPAMPools == nil {
		return pools
	}
	for _, item := range n.IPAMPools.Items {
		if m, ok := item.(*value.Map); ok {
			pool := [3]string{}
			for i, key := range []string{"subnet", "gateway", "iprange"} {
				if v := m.Value(key); v != nil {
					pool[i] = value.Str(v)
				}
			}
			pools = append(pools, pool)
		}
	}
	return pools
}

func (n *networkPresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	d, err := again(ctx, h, d, n.Check)
	if err != nil || d.Empty() {
		return module.Report{Comment: d.Comment}, err
	}
	if n.make {
		if err := do(ctx, h, n.args()...); err != nil {
			return module.Report{}, err
		}
	}
	for _, name := range n.join {
		if err := do(ctx, h, "network", "connect", n.Name, name); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: "the network " + n.Name + " is there"}, nil
}

func (n *networkPresent) args() []string {
	args := []string{"network", "create"}
	if n.Driver != "" {
		args = append(args, "--driver="+n.Driver)
	}
	for _, f := range []struct {
		option string
		on     bool
	}{{"--internal", n.Internal}, {"--attachable", n.Attachable}, {"--ipv6", n.EnableIPv6}} {
		if f.on {
			args = append(args, f.option)
		}
	}
	for _, v := range append(list(n.DriverOpts), list(n.Options)...) {
		args = append(args, "--opt="+v)
	}
	for _, v := range list(n.Labels) {
		args = append(args, "--label="+v)
	}
	for _, pool := range n.pools() {
		for i, option := range []string{"--subnet=", "--gateway=", "--ip-range="} {
			if pool[i] != "" {
				args = append(args, option+pool[i])
			}
		}
	}
	return append(args, n.Name)
}

// networkAbsent implements docker_network.absent. It disconnects the containers in the network first.
type networkAbsent struct {
	Name string `sls:"name"`

	inside []string
}

func (n *networkAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if d, ok, err := ready(h, "remove the network "+n.Name); !ok || err != nil {
		return d, err
	}
	var now network
	there, err := inspect(ctx, h, "network", n.Name, &now)
	if err != nil {
		return unanswered(err, "remove the network "+n.Name)
	}
	if !there {
		return module.Diff{Comment: "there is no network " + n.Name}, nil
	}
	n.inside = nil
	for _, c := range now.Containers {
		n.inside = append(n.inside, c.Name)
	}
	slices.Sort(n.inside)
	changes := value.NewMap("removed", true)
	if len(n.inside) > 0 {
		changes.Set("disconnected", value.Strings(n.inside...))
	}
	return module.Diff{Changes: changes, Comment: "would remove the network " + n.Name}, nil
}

func (n *networkAbsent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	d, err := again(ctx, h, d, n.Check)
	if err != nil || d.Empty() {
		return module.Report{Comment: d.Comment}, err
	}
	for _, name := range n.inside {
		if err := do(ctx, h, "network", "disconnect", "--force", n.Name, name); err != nil {
			return module.Report{}, err
		}
	}
	if err := do(ctx, h, "network", "rm", n.Name); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "removed the network " + n.Name}, nil
}
