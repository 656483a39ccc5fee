package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (r *running) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := r.unsupported(); err != nil {
		return module.Diff{}, err
	}
	would := "run " + r.Name
	if d, ok, err := ready(h, would); !ok || err != nil {
		return d, err
	}
	var image struct {
		ID string `json:"Id"`
	}
	if _, err := inspect(ctx, h, "image", r.Image, &image); err != nil {
		return unanswered(err, would)
	}
	r.image = image.ID
	var err error
	if r.there, err = inspect(ctx, h, "container", r.Name, &r.now); err != nil {
		return unanswered(err, would)
	}
	if r.there {
		r.why = r.differences()
	}
	switch {
	case r.there && len(r.why) == 0 && (r.now.state() == "running" || !r.Start):
		return module.Diff{Comment: r.Name + " is up"}, nil
	case r.there && len(r.why) == 0:
		return module.Diff{Changes: value.NewMap("state", value.NewMap("old", r.now.state(), "new", "running")),
			Comment: "would start " + r.Name}, nil
	case r.there:
		return module.Diff{Unknown: true, Planned: value.NewMap("container", value.Strings(r.why...)),
			Comment: fmt.Sprintf("would replace %s, since another %s was declared", r.Name, strings.Join(r.why, ", "))}, nil
	}
	return module.Diff{Unknown: true, Planned: value.NewMap(),
		Comment: fmt.Sprintf("would make the container %s of %s", r.Name, r.Image)}, nil
}

// differences returns the arguments in which the container differs from its declaration.
func (r *running) differences() []string {
	if r.Force {
		return []string{"force"}
	}
	var why []string
	if r.image == "" || r.now.Image != r.image {
		why = append(why, "image")
	}
	if made := r.now.Config.Labels[label]; made != "" {
		if made != r.hash() {
			why = append(why, "declaration")
		}
		return why
	}
	for _, v := range append(list(r.Environment), list(r.EnvShort)...) {
		if !slices.Contains(r.now.Config.Env, v) {
			why = append(why, "environment")
			break
		}
	}
	for _, v := range list(r.Binds) {
		if !slices.ContainsFunc(r.now.HostConfig.Binds, func(b string) bool {
			return strings.TrimSuffix(b, ":rw") == strings.TrimSuffix(v, ":rw")
		}) {
			why = append(why, "binds")
			break
		}
	}
	for _, v := range list(r.PortBindings) {
		if !r.published(v) {
			why = append(why, "port_bindings")
			break
		}
	}
	policy, _, _ := strings.Cut(r.RestartPolicy, ":")
	if policy != "" && policy != r.now.HostConfig.RestartPolicy.Name {
		why = append(why, "restart_policy")
	}
	if words := r.command(); words != nil && !slices.Equal(words, r.now.Config.Cmd) {
		why = append(why, "command")
	}
	if n := r.network(); n != "" && n != r.now.HostConfig.NetworkMode {
		why = append(why, "network_mode")
	}
	return why
}

// published reports whether a port is published as declared: [[ip:]port:]port[/protocol].
func (r *running) published(binding string) bool {
	text, protocol, ok := strings.Cut(binding, "/")
	if !ok {
		protocol = "tcp"
	}
	parts := strings.Split(text, ":")
	outside, ip := "", ""
	if len(parts) > 1 {
		outside = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		ip = strings.Join(parts[:len(parts)-2], ":")
	}
	for _, b := range r.now.HostConfig.PortBindings[parts[len(parts)-1]+"/"+protocol] {
		if (outside == "" || b.HostPort == outside) && (ip == "" || b.HostIp == ip) {
			return true
		}
	}
	return false
}
