package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// running implements docker_container.running.
type running struct {
	Name          string `sls:"name"`
	Image         string `sls:"image,required"`
	Command       any    `sls:"command"`
	Cmd           any    `sls:"cmd"`
	Entrypoint    any    `sls:"entrypoint"`
	Environment   any    `sls:"environment"`
	EnvShort      any    `sls:"env"`
	Binds         any    `sls:"binds"`
	Volumes       any    `sls:"volumes"`
	VolumesFrom   any    `sls:"volumes_from"`
	PortBindings  any    `sls:"port_bindings"`
	Ports         any    `sls:"ports"`
	RestartPolicy string `sls:"restart_policy"`
	NetworkMode   string `sls:"network_mode"`
	Networks      any    `sls:"networks"`
	Hostname      string `sls:"hostname"`
	User          string `sls:"user"`
	WorkingDir    string `sls:"working_dir"`
	Labels        any    `sls:"labels"`
	Links         any    `sls:"links"`
	DNS           any    `sls:"dns"`
	DNSSearch     any    `sls:"dns_search"`
	ExtraHosts    any    `sls:"extra_hosts"`
	CapAdd        any    `sls:"cap_add"`
	CapDrop       any    `sls:"cap_drop"`
	Devices       any    `sls:"devices"`
	SecurityOpt   any    `sls:"security_opt"`
	Tmpfs         any    `sls:"tmpfs"`
	Ulimits       any    `sls:"ulimits"`
	LogDriver     string `sls:"log_driver"`
	LogOpt        any    `sls:"log_opt"`
	Memory        string `sls:"memory"`
	MemLimit      string `sls:"mem_limit"`
	ShmSize       string `sls:"shm_size"`
	PIDMode       string `sls:"pid_mode"`
	IPCMode       string `sls:"ipc_mode"`
	StopSignal    string `sls:"stop_signal"`
	limits
	Privileged      bool       `sls:"privileged"`
	ReadOnly        bool       `sls:"read_only"`
	Init            bool       `sls:"init"`
	Interactive     bool       `sls:"interactive"`
	StdinOpen       bool       `sls:"stdin_open"`
	TTY             bool       `sls:"tty"`
	AutoRemove      bool       `sls:"auto_remove"`
	Start           bool       `sls:"start"`
	Force           bool       `sls:"force"` // replace the container in every run
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
	image string // the ID of the image; "" if it must be pulled first
	why   []string
}

// label is the label with the hash of the declaration.
const label = "org.corpus-agent.declaration"

// flags returns the options of docker create, without the image and the command.
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
		{"--publish", list(r.PortBindings)}, {"--expose", list(r.Ports)}, {"--label", list(r.Labels)},
		{"--link", list(r.Links)}, {"--dns", list(r.DNS)},
		{"--dns-search", list(r.DNSSearch)}, {"--add-host", colons(list(r.ExtraHosts))}, {"--cap-add", list(r.CapAdd)},
		{"--cap-drop", list(r.CapDrop)},
		{"--device", list(r.Devices)}, {"--security-opt", list(r.SecurityOpt)}, {"--tmpfs", colons(list(r.Tmpfs))},
		{"--ulimit", list(r.Ulimits)}, {"--log-opt", list(r.LogOpt)},
	} {
		add(f.option, f.v...)
	}
	args = append(args, r.limits.flags()...)
	for _, f := range []struct{ option, v string }{
		{"--entrypoint", first(r.entrypoint())}, {"--restart", r.RestartPolicy}, {"--network", r.network()},
		{"--hostname", r.Hostname}, {"--user", r.User},
		{"--workdir", r.WorkingDir}, {"--log-driver", r.LogDriver}, {"--memory", r.Memory}, {"--memory", r.MemLimit},
		{"--shm-size", r.ShmSize},
		{"--pid", r.PIDMode}, {"--ipc", r.IPCMode}, {"--stop-signal", r.StopSignal},
	} {
		add(f.option, f.v)
	}
	for _, f := range []struct {
		option string
		on     bool
	}{{"--privileged", r.Privileged}, {"--read-only", r.ReadOnly}, {"--init", r.Init},
		{"--interactive", r.Interactive || r.StdinOpen}, {"--tty", r.TTY}, {"--rm", r.AutoRemove}} {
		if f.on {
			args = append(args, f.option)
		}
	}
	return args
}

// colons converts name=value to name:value.
func colons(items []string) []string {
	for i := range items {
		items[i] = strings.Replace(items[i], "=", ":", 1)
	}
	return items
}

// network returns the network in which the container is created. The others are connected afterwards.
func (r *running) network() string {
	if networks := list(r.Networks); r.NetworkMode == "" && len(networks) > 0 {
		return networks[0]
	}
	if r.NetworkMode == "" && r.NetworkDisabled {
		return "none"
	}
	return r.NetworkMode
}

// command returns the arguments that follow the entrypoint's program.
func (r *running) command() []string {
	entrypoint := r.entrypoint()
	return append(entrypoint[min(1, len(entrypoint)):], argv(r.Command, r.Cmd)...)
}

// entrypoint returns the program of the container and its first arguments.
func (r *running) entrypoint() []string { return argv(r.Entrypoint) }

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// argv returns the words of the first command line that is given, as text or as a list of words.
func argv(lines ...any) []string {
	for _, v := range lines {
		switch v := v.(type) {
		case nil:
		case *value.List:
			return list(v)
		default:
			words, _ := value.SplitWords(value.Str(v)) // see Valid
			return words
		}
	}
	return nil
}

// Valid returns an error if a command line cannot be split into words.
func (r *running) Valid() error {
	for _, line := range []any{r.Command, r.Cmd, r.Entrypoint} {
		if text, ok := line.(string); ok {
			if _, err := value.SplitWords(text); err != nil {
				return diag.Argument.Hint(fmt.Errorf("the command line %s: %w", text, err), "write the words as a list")
			}
		}
	}
	return nil
}

// hash returns the hash of the declaration.
func (r *running) hash() string {
	sum := sha256.New()
	for _, word := range append(append(r.flags(), r.Image), append(r.command(), list(r.Networks)...)...) {
		fmt.Fprintf(sum, "%d:%s", len(word), word)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// unsupported returns an error for arguments of Salt that this state does not have, since the container would
// run differently from its declaration.
func (r *running) unsupported() error {
	for _, name := range r.Arguments.Names() {
		if slices.Contains(lacking(), name) {
			return diag.Argument.Hint(fmt.Errorf("docker_container.running has no argument %s here", name),
				"leave it out, or run the container in a cmd.run state with unless")
		}
	}
	return nil
}

// lacking returns the arguments of Salt that this state does not have.
func lacking() []string { return []string{"kernel_memory", "volumes_driver"} }
