// Package docker implements the docker_ states for containers, images, networks and volumes of Docker.
//
// They run the docker program, which finds the daemon and checks access, and parse its JSON output. A container
// cannot be changed after its creation, so one that differs from its declaration is replaced. A label stores
// the hash of the declaration for comparison. For containers without the label, the image and the most common
// arguments are compared.
package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Tables returns the functions by state.
func Tables() module.Registry {
	return module.Registry{
		"docker_container": {
			"running": func() module.Resource { return &running{Start: true} },
			"stopped": func() module.Resource { return &stopped{ErrorOnAbsent: true} },
			"absent":  func() module.Resource { return &containerAbsent{} },
		},
		"docker_image": {
			"present": func() module.Resource { return &imagePresent{} },
			"absent":  func() module.Resource { return &imageAbsent{} },
		},
		"docker_network": {
			"present": func() module.Resource { return &networkPresent{} },
			"absent":  func() module.Resource { return &networkAbsent{} },
		},
		"docker_volume": {
			"present": func() module.Resource { return &volumePresent{} },
			"absent":  func() module.Resource { return &volumeAbsent{} },
		},
	}
}

func docker() program.Program {
	return program.Program{Name: "docker", Package: "docker.io", Dir: "/", Limit: time.Hour, Remote: true}
}

// errNoDaemon is wrapped by errors for a Docker daemon that does not respond.
var errNoDaemon = errors.New("the Docker daemon does not answer")

// ask runs a docker command that only reads.
func ask(ctx context.Context, h *host.Host, args ...string) (string, error) {
	out, err := docker().Ask(ctx, h, args...)
	return out, explain(err)
}

// do runs a docker command that changes something.
func do(ctx context.Context, h *host.Host, args ...string) error {
	_, err := docker().Do(ctx, h, args...)
	return explain(err)
}

func explain(err error) error {
	var failed *program.Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "Cannot connect to the Docker daemon") {
		return diag.Server.Hint(fmt.Errorf("%w: %w", errNoDaemon, err),
			"start docker, in a service.running state that this one requires")
	}
	return err
}

// inspect decodes the description of an object of a kind into v; ok is false if it does not exist.
func inspect(ctx context.Context, h *host.Host, kind, name string, v any) (ok bool, err error) {
	out, err := ask(ctx, h, kind, "inspect", "--", name)
	var failed *program.Error
	if errors.As(err, &failed) && !errors.Is(err, errNoDaemon) {
		said := strings.ToLower(failed.Stderr)
		if strings.Contains(said, "no such") || strings.Contains(said, "not found") {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) == 0 {
		return false, fmt.Errorf("inspecting the %s %s: %w", kind,
			name, errors.Join(err, errors.New("its output is empty")))
	}
	return true, json.Unmarshal(all[0], v)
}

// ready reports whether docker is installed; if not, d is the diff for that.
func ready(h *host.Host, would string) (d module.Diff, ok bool, err error) {
	there, err := docker().Ready(h)
	if err != nil || there {
		return d, err == nil, err
	}
	return module.Awaits("docker", would), false, nil
}

// unanswered returns the diff for a daemon that does not respond. It returns any other error.
func unanswered(err error, would string) (module.Diff, error) {
	if errors.Is(err, errNoDaemon) {
		return module.Awaits("the Docker daemon", would), nil
	}
	return module.Diff{}, err
}

// again returns the diff of Check. In an Apply, it runs Check again if the first Check could not determine the changes.
func again(ctx context.Context, h *host.Host, d module.Diff,
	check func(context.Context, *host.Host) (module.Diff, error)) (module.Diff, error) {
	if !d.Unknown || d.Changes.Len() > 0 {
		return d, nil
	}
	if there, err := docker().Ready(h); err != nil || !there {
		return d, errors.Join(err, docker().Missing())
	}
	if _, err := ask(ctx, h, "version", "--format", "{{.Server.Version}}"); err != nil {
		return d, err
	}
	return check(ctx, h)
}

// list parses an argument that is a list or text separated by commas.
func list(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case *value.List:
		var out []string
		for _, item := range v.Items {
			out = append(out, pairs(item)...)
		}
		return out
	case *value.Map:
		return pairs(v)
	}
	var out []string
	for part := range strings.SplitSeq(value.Str(v), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// pairs returns the items of a mapping as name=value, and other values as text.
func pairs(v any) []string {
	m, ok := v.(*value.Map)
	if !ok {
		return []string{value.Str(v)}
	}
	var out []string
	for key, v := range m.All() {
		if v == nil {
			v = ""
		}
		out = append(out, value.Str(key)+"="+value.Str(v))
	}
	return out
}
