// Package docker holds docker_container.running and its kin: containers, images, networks and volumes
// of Docker.
//
// They go through the docker program, which knows where its server is and who may ask it. What is
// there is read as JSON. A container cannot be changed once it is made, so one that differs from its
// declaration is replaced. What it was made from is kept in a label of it, and compared; of a container
// that somebody else made, the image and the arguments that most declarations have are compared.
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

// Tables are the functions of these states, by state.
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

// errNoDaemon says that nobody answers.
var errNoDaemon = errors.New("the Docker daemon does not answer")

// ask has docker read something.
func ask(ctx context.Context, h *host.Host, args ...string) (string, error) {
	out, err := docker().Ask(ctx, h, args...)
	return out, explain(err)
}

// do has docker change something.
func do(ctx context.Context, h *host.Host, args ...string) error {
	_, err := docker().Do(ctx, h, args...)
	return explain(err)
}

func explain(err error) error {
	var failed *program.Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "Cannot connect to the Docker daemon") {
		return diag.WithHint(fmt.Errorf("%w: %w", errNoDaemon, err),
			"start docker, in a service.running state that this one requires")
	}
	return err
}

// inspect reads a thing of a kind into v; ok is false if there is none.
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
		return false, fmt.Errorf("reading what docker says of the %s %s: %w", kind,
			name, errors.Join(err, errors.New("it says nothing")))
	}
	return true, json.Unmarshal(all[0], v)
}

// ready makes a Diff of a docker that is not there, or not yet.
func ready(h *host.Host, would string) (d module.Diff, ok bool, err error) {
	there, err := docker().Ready(h)
	if err != nil || there {
		return d, err == nil, err
	}
	return module.Awaits("docker", would), false, nil
}

// unanswered is the Diff of a question that nobody answered; other errors stay errors.
func unanswered(err error, would string) (module.Diff, error) {
	if errors.Is(err, errNoDaemon) {
		return module.Awaits("the Docker daemon", would), nil
	}
	return module.Diff{}, err
}

// again looks once more what there is to do, for an Apply whose Check could not know.
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

// list reads an argument that is a list, or one text with commas.
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

// pairs writes a mapping as name=value, and anything else as it is.
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
