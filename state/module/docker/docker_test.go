package docker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/docker"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// object is the description of an object of the simulated docker.
type object = map[string]any

// daemon simulates docker. It keeps its objects in a file of the case for each kind.
type daemon struct {
	t *testing.T
	h *statetest.Host
}

func (d daemon) read(kind string) map[string]object {
	all := map[string]object{}
	data, _ := d.h.Files.ReadFile("/" + kind + "s") // missing before the first object
	_ = json.Unmarshal(data, &all)
	return all
}

func (d daemon) write(kind string, all map[string]object) {
	data, _ := json.Marshal(all)
	d.h.Build(d.t, statetest.Tree{"/" + kind + "s": statetest.File(string(data))})
}

// change changes an object of a kind.
func (d daemon) change(kind, name string, change func(object)) error {
	all := d.read(kind)
	if all[name] == nil {
		return fmt.Errorf("Error: No such %s: %s", kind, name)
	}
	change(all[name])
	d.write(kind, all)
	return nil
}

func (d daemon) state(name, state string) error {
	return d.change("container", name, func(c object) { c["State"] = object{"Status": state} })
}

func (d daemon) remove(kind string, names []string) error {
	all := d.read(kind)
	for _, name := range names {
		if strings.HasPrefix(name, "used") {
			return errors.New("Error: it is being used by a running container")
		}
		delete(all, name)
	}
	d.write(kind, all)
	return nil
}

// plain returns the arguments that are not options.
func plain(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch {
		case slices.Contains([]string{"--time", "--tag", "--file", "--input", "--format"}, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			out = append(out, args[i])
		}
	}
	return out
}

func (d daemon) run(args []string, c host.Command) (string, error) {
	if d.read("daemon")["down"] != nil {
		return "",
			errors.New("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?")
	}
	kind := args[0]
	if len(args) > 1 && args[1] == "inspect" {
		found, ok := d.read(kind)[args[3]]
		if !ok {
			return "[]", fmt.Errorf("Error: No such %s: %s", kind, args[3])
		}
		data, err := json.Marshal([]object{found})
		return string(data), err
	}
	switch words := plain(args[1:]); kind {
	case "version":
		return "28", nil
	case "stop":
		return "", d.state(words[0], "exited")
	case "start", "unpause", "restart":
		if strings.HasPrefix(words[0], "broken") {
			return "", d.state(words[0], "exited")
		}
		return "", d.state(words[0], "running")
	case "rm":
		return "", d.remove("container", words)
	case "rename":
		all := d.read("container")
		all[words[1]] = all[words[0]]
		delete(all, words[0])
		d.write("container", all)
		return "", nil
	case "pull", "load", "build":
		name := ""
		if len(words) > 0 {
			name = words[len(words)-1]
		}
		for i, a := range args {
			if a == "--tag" {
				name = args[i+1]
			}
		}
		if kind == "load" {
			name = "loaded:1"
		}
		if strings.HasPrefix(name, "none") {
			return "", errors.New("pull access denied for none")
		}
		all := d.read("image")
		all[name] = object{"Id": "sha256:" + name}
		d.write("image", all)
		return "", nil
	case "create":
		return d.create(args[1:], c)
	case "network", "volume", "image":
		return "", d.other(kind, args[1:])
	}
	return "", fmt.Errorf("docker has no %s", kind)
}

func (d daemon) create(args []string, c host.Command) (string, error) {
	if line := strings.Join(args, " "); strings.Contains(line, "s3cret") {
		d.t.Errorf("a secret is on the command line: %s", line)
	}
	made := object{"Id": "new", "State": object{"Status": "created"}}
	config, labels, name, env := object{}, object{}, "", []string{}
	for _, a := range args {
		option, v, _ := strings.Cut(a, "=")
		switch option {
		case "--name":
			name = v
		case "--label":
			key, v, _ := strings.Cut(v, "=")
			labels[key] = v
		case "--env":
			for _, e := range c.Env {
				if strings.HasPrefix(e, v+"=") {
					env = append(env, e)
				}
			}
		}
	}
	words := plain(args)
	if words[0] == "bad" {
		return "", errors.New("invalid reference format")
	}
	config["Labels"], config["Env"], config["Cmd"] = labels, env, words[1:]
	made["Config"], made["Image"] = config, d.read("image")[words[0]]["Id"]
	all := d.read("container")
	all[name] = made
	d.write("container", all)
	return "new\n", nil
}

// other simulates docker network, volume and image.
func (d daemon) other(kind string, args []string) error {
	words := plain(args[1:])
	switch args[0] {
	case "rm":
		return d.remove(kind, words)
	case "create":
		made := object{"Driver": "bridge", "Containers": object{}, "Internal": slices.Contains(args, "--internal")}
		for _, a := range args {
			if v, ok := strings.CutPrefix(a, "--driver="); ok {
				made["Driver"] = v
			}
			if v, ok := strings.CutPrefix(a, "--subnet="); ok {
				made["IPAM"] = object{"Config": []object{{"Subnet": v}}}
			}
		}
		all := d.read(kind)
		all[words[0]] = made
		d.write(kind, all)
		return nil
	case "connect":
		return d.change(kind, words[0], func(n object) { n["Containers"].(object)[words[1]] = object{"Name": words[1]} })
	case "disconnect":
		return d.change(kind, words[0], func(n object) { delete(n["Containers"].(object), words[1]) })
	}
	return fmt.Errorf("docker %s has no %s", kind, args[0])
}

func prepare(t *testing.T, h *statetest.Host) {
	d := daemon{t, h}
	h.Provide(t, map[string]statetest.Program{"docker": d.run})
}

func TestConformance(t *testing.T) {
	for state, table := range docker.Tables() {
		statetest.Run(t, statetest.Suite{
			State:     state,
			Functions: func(*statetest.Host) module.Table { return table },
			Prepare:   prepare,
			Cases:     statetest.Load(t, "../../../testdata/modules/docker/"+state+".yaml"),
		})
	}
}

// TestReactionToAWatchedChange checks that the reaction to a change of a watched state restarts a container or sends
// it a signal.
func TestReactionToAWatchedChange(t *testing.T) {
	h := statetest.NewHost(t)
	prepare(t, h)
	for action, want := range map[string]*value.Map{"": value.NewMap("web", "restarted"),
		"SIGHUP": value.NewMap("signal", "SIGHUP")} {
		r := docker.Tables()["docker_container"]["running"]()
		if _, problems := module.Decode(r,
			module.Call{Arguments: value.NewMap("name", "web", "image", "nginx", "watch_action", action)}); len(problems) > 0 {
			t.Fatal(problems)
		}
		d, err := r.(module.Watcher).Watched().Check(context.Background(), h.Host)
		if err != nil || !value.Equal(d.Changes, want) {
			t.Errorf("a watch would change %s, %v, want %s", value.Repr(d.Changes), err, value.Repr(want))
		}
	}
}

// TestMissingDocker checks that the error names the package to install.
func TestMissingDocker(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	for state, table := range docker.Tables() {
		for function, resource := range table {
			h := statetest.NewHost(t)
			h.Commands = statetest.Commands(func(host.Command) (host.Output, error) {
				return host.Output{}, errors.New("no program runs")
			})
			r := resource()
			_, _ = module.Decode(r, module.Call{Arguments: value.NewMap("name", "x", "image", "y")})
			d, err := r.Check(context.Background(), h.Host)
			if err != nil || !d.Unknown {
				t.Errorf("%s.%s: a check gives %+v, %v", state, function, d, err)
			}
			_, err = r.Apply(context.Background(), h.Host, d)
			if err == nil || !strings.Contains(diag.HintOf(err), "docker.io") {
				t.Errorf("%s.%s: a run gives %v (hint: %s)", state, function, err, diag.HintOf(err))
			}
		}
	}
}
