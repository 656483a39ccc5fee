package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func (r *running) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if r.image == "" && !r.there { // the daemon may not have responded to Check
		var err error
		if d, err = again(ctx, h, d, r.Check); err != nil {
			return module.Report{}, err
		}
	}
	if r.there && len(r.why) == 0 {
		if d.Empty() {
			return module.Report{Comment: d.Comment}, nil
		}
		return r.start(ctx, h, d.Changes)
	}
	changes := value.NewMap()
	if r.image == "" {
		if err := do(ctx, h, "pull", "--quiet", r.Image); err != nil {
			return module.Report{}, diag.Container.Hint(err, "check the name of the image, and who may pull it (docker login)")
		}
		changes.Set("image", value.NewMap("old", nil, "new", r.Image))
	}
	old, err := r.setAside(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	id, err := r.create(ctx, h)
	if err != nil {
		return module.Report{}, errors.Join(err, r.restore(ctx, h, old))
	}
	ids := value.NewMap()
	if old != "" {
		if err := do(ctx, h, "rm", "--force", old); err != nil {
			return module.Report{}, err
		}
		ids.Set("removed", value.Strings(r.now.ID))
	}
	ids.Set("added", id)
	changes.Set("container_id", ids)
	if !r.Start {
		return module.Report{Changes: changes, Comment: "made the container " + r.Name}, nil
	}
	before := any(nil)
	if r.there {
		before = r.now.state()
	}
	if before != "running" {
		changes.Set("state", value.NewMap("old", before, "new", "running"))
	}
	return r.start(ctx, h, changes)
}

// setAside stops and renames the old container, so that it can be restored if the new one cannot be created.
func (r *running) setAside(ctx context.Context, h *host.Host) (string, error) {
	if !r.there {
		return "", nil
	}
	old := r.Name + "-corpus-old"
	if r.now.state() != "stopped" {
		if err := do(ctx, h, "stop", r.Name); err != nil {
			return "", err
		}
	}
	return old, do(ctx, h, "rename", r.Name, old)
}

func (r *running) restore(ctx context.Context, h *host.Host, old string) error {
	if old == "" {
		return nil
	}
	err := do(ctx, h, "rename", old, r.Name)
	if err == nil && r.now.state() == "running" {
		err = do(ctx, h, "start", r.Name)
	}
	return err
}

// create creates the container. It passes the values of environment variables in the environment of docker, so
// that they are not on the command line.
func (r *running) create(ctx context.Context, h *host.Host) (string, error) {
	p := docker()
	args := []string{"create", "--name=" + r.Name, "--label=" + label + "=" + r.hash()}
	for _, flag := range r.flags() {
		if v, ok := strings.CutPrefix(flag, "--env="); ok {
			name, _, hasValue := strings.Cut(v, "=")
			if hasValue && name != "PATH" && name != "HOME" && !strings.HasPrefix(name, "DOCKER_") {
				p.Env = append(p.Env, v)
				flag = "--env=" + name
			}
		}
		args = append(args, flag)
	}
	out, err := p.Do(ctx, h, append(append(args, r.Image), r.command()...)...)
	if err != nil {
		return "", explain(err)
	}
	if err := r.connect(ctx, h); err != nil {
		return "", errors.Join(err, do(ctx, h, "rm", "--force", r.Name))
	}
	return strings.TrimSpace(out), nil
}

// connect connects the container to the declared networks other than the one in which it was created.
func (r *running) connect(ctx context.Context, h *host.Host) error {
	for _, network := range list(r.Networks) {
		if network == r.network() {
			continue
		}
		if err := do(ctx, h, "network", "connect", network, r.Name); err != nil {
			return err
		}
	}
	return nil
}

func (r *running) start(ctx context.Context, h *host.Host, changes *value.Map) (module.Report, error) {
	verb := "start"
	if r.there && len(r.why) == 0 && r.now.state() == "paused" {
		verb = "unpause"
	}
	if err := do(ctx, h, verb, r.Name); err != nil {
		return module.Report{Changes: changes}, diag.Container.Hint(err, "look at `docker logs %s`", r.Name)
	}
	var c container
	if _, err := inspect(ctx, h, "container", r.Name, &c); err != nil {
		return module.Report{Changes: changes}, err
	}
	if c.state() != "running" {
		return module.Report{Changes: changes},
			diag.Container.Hint(fmt.Errorf("the container %s was started, and is %s now", r.Name, c.State.Status),
				"look at `docker logs %s`", r.Name)
	}
	return module.Report{Changes: changes, Comment: r.Name + " is up"}, nil
}

// Watched returns a state that restarts the container or sends it the signal in watch_action.
func (r *running) Watched() module.Resource { return &restarted{Name: r.Name, action: r.WatchAction} }

// restarted implements the reaction of docker_container.running to a change of a watched state.
type restarted struct {
	Name   string
	action string
}

func (r *restarted) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if d, ok, err := ready(h, "restart "+r.Name); !ok || err != nil {
		return d, err
	}
	changes := value.NewMap(r.Name, "restarted")
	if r.action != "" && r.action != "force" {
		changes = value.NewMap("signal", r.action)
	}
	return module.Diff{Changes: changes, Planned: value.NewMap(), Comment: "would restart " + r.Name}, nil
}

func (r *restarted) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	args := []string{"restart", r.Name}
	if r.action != "" && r.action != "force" {
		args = []string{"kill", "--signal=" + r.action, r.Name}
	}
	if err := do(ctx, h, args...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "restarted " + r.Name}, nil
}
