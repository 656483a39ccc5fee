package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// imagePresent is docker_image.present: pulled, built or loaded.
type imagePresent struct {
	Name             string `sls:"name"`
	Tag              string `sls:"tag"`
	Build            string `sls:"build"` // a directory to build it from
	Dockerfile       string `sls:"dockerfile"`
	Load             string `sls:"load"`  // a file that has it
	Force            bool   `sls:"force"` // in every run
	InsecureRegistry any    `sls:"insecure_registry"`
	ClientTimeout    any    `sls:"client_timeout"`
	SLS              any    `sls:"sls"`
}

// reference is the image's name with its tag.
func reference(name, tag string) string {
	if tag != "" {
		return name + ":" + tag
	}
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") || strings.Contains(name, "@") {
		return name
	}
	return name + ":latest"
}

func (i *imagePresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if i.SLS != nil {
		return module.Diff{}, diag.WithHint(errors.New("images are not built from SLS files here"), "build it from a Dockerfile (build)")
	}
	if i.Build != "" && i.Load != "" {
		return module.Diff{}, diag.WithHint(errors.New("both build and load are set"), "keep one of them")
	}
	ref := reference(i.Name, i.Tag)
	if d, ok, err := ready(h, "get the image "+ref); !ok || err != nil {
		return d, err
	}
	there, err := inspect(ctx, h, "image", ref, &struct{}{})
	if err != nil {
		return unanswered(err, "get the image "+ref)
	}
	if there && !i.Force {
		return module.Diff{Comment: "the image " + ref + " is there"}, nil
	}
	d := module.Diff{Changes: i.changes(ref), Comment: "would get the image " + ref}
	if i.Force && there { // it may be the same again
		d = module.Diff{Unknown: true, Planned: value.NewMap(), Comment: d.Comment}
	}
	return d, nil
}

func (i *imagePresent) changes(ref string) *value.Map {
	status := "pulled"
	switch {
	case i.Build != "":
		status = "built"
	case i.Load != "":
		status = "loaded"
	}
	return value.NewMap("Image", ref, "Status", status)
}

func (i *imagePresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	ref := reference(i.Name, i.Tag)
	if there, err := program().Ready(h); err != nil || !there {
		return module.Report{}, errors.Join(err, program().Missing())
	}
	var before, after struct {
		ID string `json:"Id"`
	}
	if _, err := inspect(ctx, h, "image", ref, &before); err != nil {
		return module.Report{}, err
	}
	args := []string{"pull", "--quiet", ref}
	switch {
	case i.Build != "":
		args = []string{"build", "--quiet", "--tag", ref}
		if i.Dockerfile != "" {
			args = append(args, "--file", i.Build+"/"+i.Dockerfile)
		}
		args = append(args, i.Build)
	case i.Load != "":
		args = []string{"load", "--quiet", "--input", i.Load}
	}
	if _, err := do(ctx, h, args...); err != nil {
		return module.Report{}, diag.WithHint(err, "look at the name of the image, and at who may pull it (docker login)")
	}
	there, err := inspect(ctx, h, "image", ref, &after)
	if err != nil || !there {
		return module.Report{}, errors.Join(err, fmt.Errorf("there is still no image %s", ref))
	}
	if before.ID == after.ID {
		return module.Report{Changes: value.NewMap(), Comment: "the image " + ref + " is the same as before"}, nil
	}
	return module.Report{Changes: i.changes(ref), Comment: "got the image " + ref}, nil
}

// imageAbsent is docker_image.absent.
type imageAbsent struct {
	Name   string `sls:"name"`
	Images any    `sls:"images"`
	Force  bool   `sls:"force"`
}

func (i *imageAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if d, ok, err := ready(h, "remove images"); !ok || err != nil {
		return d, err
	}
	names := []string{i.Name}
	if i.Images != nil {
		names = list(i.Images)
	}
	var gone []string
	for _, name := range names {
		ref := reference(name, "")
		there, err := inspect(ctx, h, "image", ref, &struct{}{})
		if err != nil {
			return unanswered(err, "remove images")
		}
		if there {
			gone = append(gone, ref)
		}
	}
	if len(gone) == 0 {
		return module.Diff{Comment: "there is no image " + strings.Join(names, ", ")}, nil
	}
	return module.Diff{Changes: value.NewMap("removed", value.Strings(gone...)), Comment: "would remove " + strings.Join(gone, ", ")}, nil
}

func (i *imageAbsent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	d, err := again(ctx, h, d, i.Check)
	if err != nil || d.Empty() {
		return module.Report{Comment: d.Comment}, err
	}
	args := []string{"image", "rm"}
	if i.Force {
		args = append(args, "--force")
	}
	for _, v := range d.Changes.Value("removed").(*value.List).Items {
		args = append(args, value.Str(v))
	}
	if _, err := do(ctx, h, args...); err != nil {
		return module.Report{}, diag.WithHint(err, "remove the containers that use it first, or set force: True")
	}
	return module.Report{Changes: d.Changes, Comment: "removed images"}, nil
}

// networkPresent is docker_network.present. What a network is cannot be changed while it is there.
type networkPresent struct {
	Name       string      `sls:"name"`
	Driver     string      `sls:"driver"`
	DriverOpts any         `sls:"driver_opts"`
	Options    any         `sls:"options"` // another name of it
	Subnet     string      `sls:"subnet"`
	Gateway    string      `sls:"gateway"`
	IPRange    string      `sls:"iprange"`
	IPAMPools  *value.List `sls:"ipam_pools"`
	Internal   bool        `sls:"internal"`
	Attachable bool        `sls:"attachable"`
	EnableIPv6 bool        `sls:"enable_ipv6"`
	Labels     any         `sls:"labels"`
	Containers any         `sls:"containers"` // those that shall be in it
	Reconnect  any         `sls:"reconnect"`
	Validate   any         `sls:"validate_ip_addrs"`

	join []string
	make bool
}

// network is what docker says of one.
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

// same finds what a network that is there has otherwise.
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
	return diag.WithHint(fmt.Errorf("the network %s has another %s than was declared, and cannot be changed", n.Name, strings.Join(differs, ", ")),
		"remove it with docker_network.absent first, when its containers can do without it")
}

// pools are subnets with their gateways and ranges.
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
		if _, err := do(ctx, h, n.args()...); err != nil {
			return module.Report{}, err
		}
	}
	for _, name := range n.join {
		if _, err := do(ctx, h, "network", "connect", n.Name, name); err != nil {
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

// networkAbsent is docker_network.absent. Containers that are in it are taken out of it.
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
		if _, err := do(ctx, h, "network", "disconnect", "--force", n.Name, name); err != nil {
			return module.Report{}, err
		}
	}
	if _, err := do(ctx, h, "network", "rm", n.Name); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "removed the network " + n.Name}, nil
}

// volumePresent is docker_volume.present.
type volumePresent struct {
	Name       string `sls:"name"`
	Driver     string `sls:"driver"`
	DriverOpts any    `sls:"driver_opts"`
	Force      bool   `sls:"force"` // replace one that has another driver, with all that is in it

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
		return module.Diff{}, diag.WithHint(fmt.Errorf("the volume %s has the driver %s, and not %s", v.Name, now.Driver, v.Driver),
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
		if _, err := do(ctx, h, "volume", "rm", v.Name); err != nil {
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
	if _, err := do(ctx, h, append(args, v.Name)...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "made the volume " + v.Name}, nil
}

// volumeAbsent is docker_volume.absent.
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
	if _, err := do(ctx, h, "volume", "rm", v.Name); err != nil {
		return module.Report{}, diag.WithHint(err, "remove the containers that use it first")
	}
	return module.Report{Changes: d.Changes, Comment: "removed the volume " + v.Name}, nil
}
