package docker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// container is the output of docker container inspect.
type container struct {
	ID     string `json:"Id"`
	Image  string
	State  struct{ Status string }
	Config struct {
		Env, Cmd, Entrypoint []string
		Labels               map[string]string
		Image                string
	}
	HostConfig struct {
		Binds         []string
		NetworkMode   string
		RestartPolicy struct {
			Name              string
			MaximumRetryCount int
		}
		PortBindings map[string][]struct{ HostIp, HostPort string } // names as in docker
	}
}

// state returns the state in Salt's words.
func (c *container) state() string {
	switch c.State.Status {
	case "running", "paused":
		return c.State.Status
	}
	return "stopped"
}

// stopped implements docker_container.stopped.
type stopped struct {
	Name            string `sls:"name"`
	Containers      any    `sls:"containers"`
	ShutdownTimeout *int   `sls:"shutdown_timeout"` // in seconds
	StopTimeout     *int   `sls:"stop_timeout"`     // an old alias of shutdown_timeout
	Unpause         bool   `sls:"unpause"`
	ErrorOnAbsent   bool   `sls:"error_on_absent"`

	todo map[string]string // the containers to stop, with their states
}

func (s *stopped) targets() []string {
	if s.Containers != nil {
		return list(s.Containers)
	}
	return []string{s.Name}
}

func (s *stopped) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	would := "stop " + strings.Join(s.targets(), ", ")
	if d, ok, err := ready(h, would); !ok || err != nil {
		return d, err
	}
	s.todo = map[string]string{}
	changes := value.NewMap()
	var errs []error
	for _, name := range s.targets() {
		var c container
		there, err := inspect(ctx, h, "container", name, &c)
		switch {
		case err != nil:
			return unanswered(err, would)
		case !there && s.ErrorOnAbsent:
			errs = append(errs, diag.Container.Hint(fmt.Errorf("there is no container %s", name),
				"set error_on_absent: False if there need be none"))
		case !there:
		case c.state() == "paused" && !s.Unpause:
			errs = append(errs, diag.Container.Hint(fmt.Errorf("the container %s is paused", name),
				"set unpause: True to have it stopped"))
		case c.state() != "stopped":
			s.todo[name] = c.state()
			changes.Set(name, value.NewMap("result", true, "state", value.NewMap("old", c.state(), "new", "stopped")))
		}
	}
	if len(errs) > 0 {
		return module.Diff{}, errors.Join(errs...)
	}
	if changes.Len() == 0 {
		return module.Diff{Comment: strings.Join(s.targets(), ", ") + " does not run"}, nil
	}
	return module.Diff{Changes: changes, Comment: "would stop " + strings.Join(changes.Names(), ", ")}, nil
}

func (s *stopped) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	d, err := again(ctx, h, d, s.Check)
	if err != nil {
		return module.Report{}, err
	}
	done := value.NewMap()
	for _, name := range d.Changes.Names() {
		if err := s.stop(ctx, h, name); err != nil {
			return module.Report{Changes: done}, err
		}
		done.Set(name, d.Changes.Value(name))
	}
	return module.Report{Changes: done, Comment: "stopped " + strings.Join(done.Names(), ", ")}, nil
}

// stop stops a container. It unpauses a paused container first.
func (s *stopped) stop(ctx context.Context, h *host.Host, name string) error {
	if s.todo[name] == "paused" {
		if err := do(ctx, h, "unpause", name); err != nil {
			return err
		}
	}
	args := []string{"stop"}
	for _, seconds := range []*int{s.ShutdownTimeout, s.StopTimeout} {
		if seconds != nil {
			args = []string{"stop", "--time", strconv.Itoa(*seconds)}
		}
	}
	return do(ctx, h, append(args, name)...)
}

// containerAbsent implements docker_container.absent.
type containerAbsent struct {
	Name  string `sls:"name"`
	Force bool   `sls:"force"`
}

func (a *containerAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if d, ok, err := ready(h, "remove "+a.Name); !ok || err != nil {
		return d, err
	}
	var c container
	there, err := inspect(ctx, h, "container", a.Name, &c)
	switch {
	case err != nil:
		return unanswered(err, "remove "+a.Name)
	case !there:
		return module.Diff{Comment: "there is no container " + a.Name}, nil
	case c.state() != "stopped" && !a.Force:
		return module.Diff{}, diag.Container.Hint(fmt.Errorf("the container %s is %s", a.Name, c.state()),
			"set force: True to remove it anyway")
	}
	return module.Diff{Changes: value.NewMap("removed", value.Strings(c.ID)),
		Comment: "would remove the container " + a.Name}, nil
}

func (a *containerAbsent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	d, err := again(ctx, h, d, a.Check)
	if err != nil || d.Empty() {
		return module.Report{Comment: d.Comment}, err
	}
	args := []string{"rm"}
	if a.Force {
		args = append(args, "--force")
	}
	err = do(ctx, h, append(args, a.Name)...)
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "removed the container " + a.Name}, nil
}
