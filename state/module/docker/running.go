package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// running is docker_container.running, with the arguments that most declarations have.
type running struct {
	Name            string     `sls:"name"`
	Image           string     `sls:"image,required"`
	Command         any        `sls:"command"`
	Cmd             any        `sls:"cmd"`
	Entrypoint      string     `sls:"entrypoint"`
	Environment     any        `sls:"environment"`
	EnvShort        any        `sls:"env"`
	Binds           any        `sls:"binds"`
	Volumes         any        `sls:"volumes"`
	VolumesFrom     any        `sls:"volumes_from"`
	PortBindings    any        `sls:"port_bindings"`
	Ports           any        `sls:"ports"`
	RestartPolicy   string     `sls:"restart_policy"`
	NetworkMode     string     `sls:"network_mode"`
	Networks        any        `sls:"networks"`
	Hostname        string     `sls:"hostname"`
	User            string     `sls:"user"`
	WorkingDir      string     `sls:"working_dir"`
	Labels          any        `sls:"labels"`
	Links           any        `sls:"links"`
	DNS             any        `sls:"dns"`
	DNSSearch       any        `sls:"dns_search"`
	ExtraHosts      any        `sls:"extra_hosts"`
	CapAdd          any        `sls:"cap_add"`
	CapDrop         any        `sls:"cap_drop"`
	Devices         any        `sls:"devices"`
	SecurityOpt     any        `sls:"security_opt"`
	Tmpfs           any        `sls:"tmpfs"`
	Ulimits         any        `sls:"ulimits"`
	LogDriver       string     `sls:"log_driver"`
	LogOpt          any        `sls:"log_opt"`
	Memory          string     `sls:"memory"`
	MemLimit        string     `sls:"mem_limit"`
	ShmSize         string     `sls:"shm_size"`
	PIDMode         string     `sls:"pid_mode"`
	IPCMode         string     `sls:"ipc_mode"`
	StopSignal      string     `sls:"stop_signal"`
	Privileged      bool       `sls:"privileged"`
	ReadOnly        bool       `sls:"read_only"`
	Init            bool       `sls:"init"`
	Interactive     bool       `sls:"interactive"`
	StdinOpen       bool       `sls:"stdin_open"`
	TTY             bool       `sls:"tty"`
	AutoRemove      bool       `sls:"auto_remove"`
	Start           bool       `sls:"start"`
	Force           bool       `sls:"force"` // replace it in every run
	Replace         any        `sls:"replace"`
	ShutdownTimeout any        `sls:"shutdown_timeout"`
	WatchAction     string     `sls:"watch_action"`
	Detach          any        `sls:"detach"`
	SkipTranslate   any        `sls:"skip_translate"`
	IgnoreCollision any        `sls:"ignore_collisions"`
	UpdateImage     any        `sls:"update_image"`
	ClientTimeout   any        `sls:"client_timeout"`
	Arguments       *value.Map `sls:"__arguments__"`

	now   container
	there bool
	image string // its ID, "" where it is yet to be pulled
	why   []string
}

// label is where a container keeps the hash of what it was made from.
const label = "org.corpus-agent.declaration"

// flags are the arguments of docker create, without the image and the command.
func (r *running) flags() (args []string) {
	add := func(option string, values ...string) {
		for _, v := range values {
			if v != "" {
				args = append(args, option+"="+v)
			}
		}
	}
	env := append(list(r.Environment), list(r.EnvShort)...)
	for _, f := range []struct {
		option string
		v      []string
	}{
		{"--env", env}, {"--volume", append(list(r.Binds), list(r.Volumes)...)}, {"--volumes-from", list(r.VolumesFrom)},
		{"--publish", list(r.PortBindings)}, {"--expose", list(r.Ports)}, {"--label", list(r.Labels)}, {"--link", list(r.Links)}, {"--dns", list(r.DNS)},
		{"--dns-search", list(r.DNSSearch)}, {"--add-host", colons(list(r.ExtraHosts))}, {"--cap-add", list(r.CapAdd)}, {"--cap-drop", list(r.CapDrop)},
		{"--device", list(r.Devices)}, {"--security-opt", list(r.SecurityOpt)}, {"--tmpfs", colons(list(r.Tmpfs))}, {"--ulimit", list(r.Ulimits)}, {"--log-opt", list(r.LogOpt)},
	} {
		add(f.option, f.v...)
	}
	for _, f := range []struct{ option, v string }{
		{"--entrypoint", r.Entrypoint}, {"--restart", r.RestartPolicy}, {"--network", r.network()}, {"--hostname", r.Hostname}, {"--user", r.User},
		{"--workdir", r.WorkingDir}, {"--log-driver", r.LogDriver}, {"--memory", r.Memory}, {"--memory", r.MemLimit}, {"--shm-size", r.ShmSize},
		{"--pid", r.PIDMode}, {"--ipc", r.IPCMode}, {"--stop-signal", r.StopSignal},
	} {
		add(f.option, f.v)
	}
	for _, f := range []struct {
		option string
		on     bool
	}{{"--privileged", r.Privileged}, {"--read-only", r.ReadOnly}, {"--init", r.Init}, {"--interactive", r.Interactive || r.StdinOpen}, {"--tty", r.TTY}, {"--rm", r.AutoRemove}} {
		if f.on {
			args = append(args, f.option)
		}
	}
	return args
}

// colons writes name=value as name:value.
func colons(items []string) []string {
	for i := range items {
		items[i] = strings.Replace(items[i], "=", ":", 1)
	}
	return items
}

// network is the one that the container is made in; others are joined afterwards.
func (r *running) network() string {
	if networks := list(r.Networks); r.NetworkMode == "" && len(networks) > 0 {
		return networks[0]
	}
	return r.NetworkMode
}

// command are the words that are run in it.
func (r *running) command() []string {
	for _, v := range []any{r.Command, r.Cmd} {
		switch v := v.(type) {
		case nil:
		case *value.List:
			return list(v)
		default:
			return words(value.Str(v))
		}
	}
	return nil
}

// words splits a line at its spaces, but for those between quotes.
func words(line string) []string {
	var out []string
	var word strings.Builder
	quote, inside := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inside = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if inside {
				out, inside = append(out, word.String()), false
				word.Reset()
			}
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	if inside {
		out = append(out, word.String())
	}
	return out
}

// hash is that of the declaration. Secrets among it cannot be read out of it.
func (r *running) hash() string {
	sum := sha256.New()
	for _, word := range append(append(r.flags(), r.Image), append(r.command(), list(r.Networks)...)...) {
		fmt.Fprintf(sum, "%d:%s", len(word), word)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// unsupported finds arguments that Salt has and this state has not: without them something else would
// run than was declared.
func (r *running) unsupported() error {
	for _, name := range r.Arguments.Names() {
		if slices.Contains(lacking(), name) {
			return diag.WithHint(fmt.Errorf("docker_container.running has no argument %s here", name), "leave it out, or run the container in a cmd.run state with unless")
		}
	}
	return nil
}

// lacking are the arguments of Salt's that this state has not.
func lacking() []string {
	return []string{
		"blkio_weight", "blkio_weight_device", "cgroup_parent", "cpu_period", "cpu_quota", "cpu_shares", "cpuset_cpus", "cpuset_mems",
		"device_read_bps", "device_read_iops", "device_write_bps", "device_write_iops", "dns_opt", "domainname", "group_add", "isolation",
		"kernel_memory", "mac_address", "memory_swap", "memory_swappiness", "network_disabled", "oom_kill_disable", "oom_score_adj", "pids_limit",
		"publish_all_ports", "runtime", "stop_timeout", "storage_opt", "storage_opts", "sysctls", "userns_mode", "volume_driver", "volumes_driver",
	}
}

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
		return module.Diff{Changes: value.NewMap("state", value.NewMap("old", r.now.state(), "new", "running")), Comment: "would start " + r.Name}, nil
	case r.there:
		return module.Diff{Unknown: true, Planned: value.NewMap("container", value.Strings(r.why...)),
			Comment: fmt.Sprintf("would replace %s, since another %s was declared", r.Name, strings.Join(r.why, ", "))}, nil
	}
	return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: fmt.Sprintf("would make the container %s of %s", r.Name, r.Image)}, nil
}

// differences are the arguments in which the container is not as declared.
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
		if !slices.ContainsFunc(r.now.HostConfig.Binds, func(b string) bool { return strings.TrimSuffix(b, ":rw") == strings.TrimSuffix(v, ":rw") }) {
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

// published reports whether a port is: [[ip:]port:]port[/protocol].
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

func (r *running) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if r.image == "" && !r.there { // it may be that nobody answered
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
		if _, err := do(ctx, h, "pull", "--quiet", r.Image); err != nil {
			return module.Report{}, diag.WithHint(err, "look at the name of the image, and at who may pull it (docker login)")
		}
		changes.Set("image", value.NewMap("old", nil, "new", r.Image))
	}
	old, err := r.aside(ctx, h)
	if err != nil {
		return module.Report{}, err
	}
	id, err := r.create(ctx, h)
	if err != nil {
		return module.Report{}, errors.Join(err, r.restore(ctx, h, old))
	}
	ids := value.NewMap()
	if old != "" {
		if _, err := do(ctx, h, "rm", "--force", old); err != nil {
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

// aside stops an old container and gives it another name, so that it can come back if the new one
// cannot be made.
func (r *running) aside(ctx context.Context, h *host.Host) (string, error) {
	if !r.there {
		return "", nil
	}
	old := r.Name + "-corpus-old"
	if r.now.state() != "stopped" {
		if _, err := do(ctx, h, "stop", r.Name); err != nil {
			return "", err
		}
	}
	_, err := do(ctx, h, "rename", r.Name, old)
	return old, err
}

func (r *running) restore(ctx context.Context, h *host.Host, old string) error {
	if old == "" {
		return nil
	}
	_, err := do(ctx, h, "rename", old, r.Name)
	if err == nil && r.now.state() == "running" {
		_, err = do(ctx, h, "start", r.Name)
	}
	return err
}

// create makes the container. Its environment is handed over by names, so that no value stands on the
// command line.
func (r *running) create(ctx context.Context, h *host.Host) (string, error) {
	p := program()
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
	for _, network := range list(r.Networks) {
		if network == r.network() {
			continue
		}
		if _, err := do(ctx, h, "network", "connect", network, r.Name); err != nil {
			_, removeErr := do(ctx, h, "rm", "--force", r.Name)
			return "", errors.Join(err, removeErr)
		}
	}
	return strings.TrimSpace(out), nil
}

func (r *running) start(ctx context.Context, h *host.Host, changes *value.Map) (module.Report, error) {
	verb := "start"
	if r.there && len(r.why) == 0 && r.now.state() == "paused" {
		verb = "unpause"
	}
	if _, err := do(ctx, h, verb, r.Name); err != nil {
		return module.Report{Changes: changes}, diag.WithHint(err, "look at `docker logs %s`", r.Name)
	}
	var c container
	if _, err := inspect(ctx, h, "container", r.Name, &c); err != nil {
		return module.Report{Changes: changes}, err
	}
	if c.state() != "running" {
		return module.Report{Changes: changes}, diag.WithHint(fmt.Errorf("the container %s was started, and is %s now", r.Name, c.State.Status), "look at `docker logs %s`", r.Name)
	}
	return module.Report{Changes: changes, Comment: r.Name + " is up"}, nil
}

// Watched restarts the container, or sends it the signal that watch_action names.
func (r *running) Watched() module.Resource { return &restarted{Name: r.Name, action: r.WatchAction} }

// restarted is what a container does when something it watches changed.
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
	if _, err := do(ctx, h, args...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "restarted " + r.Name}, nil
}
