// Package docker implements docker.ps: the containers of the host.
package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// docker queries the Docker daemon with its command-line client.
type docker struct{ *function.Facts }

// Functions returns the functions of docker that templates may call.
func Functions(f *function.Facts) function.Table {
	d := docker{f}
	return function.Table{"docker.ps": function.Of("filters=None, **kwargs", d.containers)}.Needing(f.Host, "docker",
		"docker.io")
}

// containers returns the running containers by identifier, or all of them with all=True.
func (d docker) containers(ctx context.Context, filters *value.Map, options *value.Map) (*value.Map, error) {
	args := []string{"ps", "--no-trunc", "--format", "{{json .}}"}
	if value.Truth(options.Value("all")) {
		args = append(args, "--all")
	}
	for name, v := range filters.All() {
		args = append(args, "--filter", value.Str(name)+"="+value.Str(v))
	}
	text, err := program.Program{Name: "docker", Package: "docker.io", Dir: "/", Limit: time.Minute}.Ask(ctx, d.Host,
		args...)
	if err != nil {
		return nil, err
	}
	return parseContainers(text)
}

// parseContainers parses the output of docker ps: a container in JSON on each line.
func parseContainers(text string) (*value.Map, error) {
	all := value.NewMap()
	for line := range strings.Lines(text) {
		var c struct{ ID, Names, Image, Command, CreatedAt, Status, State, Ports string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			return nil, fmt.Errorf("docker did not print JSON: %w", err)
		}
		all.Set(c.ID, value.NewMap("Id", c.ID, "Names", value.Strings(strings.Split(c.Names, ",")...), "Image", c.Image,
			"Command", strings.Trim(c.Command, `"`),
			"Time_Created_Local", c.CreatedAt, "Status", c.Status, "State", c.State, "Ports", c.Ports))
	}
	return all, nil
}
