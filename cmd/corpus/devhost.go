package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/packaging/remote"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// devSettings returns the settings of agent.yaml with which this machine is the node, whatever its hostname is.
func (d *developing) devSettings() []remote.Setting {
	return []remote.Setting{{Name: "store", Value: d.storeURL()}, {Name: "top", Value: "merge"},
		{Name: "service", Value: cloud.Project}, {Name: "instance", Value: devCloud}, {Name: "region", Value: devRegion},
		{Name: "node", Value: devNode}}
}

// notAnotherHost returns an error if this machine is a host of another store, or has a hostname that makes it one.
func (d *developing) notAnotherHost() error {
	refused := func(format string, args ...any) error {
		return exit.WithCode(exit.Usage, diag.Cloud.Hint(fmt.Errorf("this machine is a host of another store: "+format,
			args...), "use a virtual machine for the developer environment; a host has one store"))
	}
	if store, err := d.settledStore(); err != nil {
		return err
	} else if store != "" && store != d.storeURL() {
		return refused("/etc/corpus/agent.yaml has the store %s", store)
	} else if made, err := d.recorded(); err != nil {
		return err
	} else if store == "" && !slices.Contains(made, "/var/lib/corpus") {
		for _, file := range []string{"/var/lib/corpus/trust/root.json", "/var/lib/corpus/trust/given",
			"/var/lib/corpus/ledger.json"} {
			there, err := walk.Named(d.path(file))
			if err != nil {
				return err
			}
			if there {
				return refused("it has %s, and /etc/corpus/agent.yaml names no store", file)
			}
		}
	}
	environment, _, err := walk.Read(d.path("/etc/corpus/environment"))
	if err != nil {
		return err
	}
	if strings.Contains("\n"+string(environment), "\nCORPUS_STORE=") {
		return refused("/etc/corpus/environment has CORPUS_STORE")
	}
	return d.plainHostname()
}

// settledStore returns the store of agent.yaml; "" if it names none.
func (d *developing) settledStore() (string, error) {
	data, _, err := walk.Read(d.path("/etc/corpus/agent.yaml"))
	if err != nil {
		return "", err
	}
	var now struct{ Store string }
	if err := yaml.Unmarshal(data, &now); err != nil {
		return "", exit.WithCode(exit.Usage, diag.Config.Hint(fmt.Errorf("/etc/corpus/agent.yaml: %w", err),
			"correct it: corpus-agent config edit"))
	}
	return now.Store, nil
}

// plainHostname returns an error if the hostname gives this machine another identity than that of the node.
func (d *developing) plainHostname() error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	short, _, _ := strings.Cut(name, ".")
	is, err := grains.Parse(short, grains.Convention{})
	if err != nil || is.Service == cloud.Project && is.Instance == devCloud && is.Node == devNode {
		return nil //nolint:nilerr // a hostname that gives no identity is right
	}
	return exit.WithCode(exit.Usage, diag.Identity.Hint(
		fmt.Errorf("the hostname %s makes this machine a host of the project %s", name, is.Service),
		"give it one of another form, such as hostnamectl set-hostname laptop"))
}

// devMade is the file with the paths that up was about to make when it began.
const devMade = "made.json"

// devPaths returns what up and the states of the node may make, in the order in which it is removed.
func (d *developing) devPaths() []string {
	return []string{"/etc/systemd/network/40-guests.netdev", "/etc/systemd/network/40-guests.network",
		"/etc/systemd/system/corpus-guests.service", "/etc/systemd/system/corpus-guests-firewall.service",
		"/etc/corpus-guests.nft", "/etc/sysctl.d/99-salt.conf", "/etc/systemd/nspawn", "/var/lib/corpus-guests",
		"/var/lib/corpus-images", "/srv/base", "/srv/service", "/srv/projects", "/var/lib/corpus", "/var/lib/corpus-init",
		"/etc/systemd/system/corpus-agent.service", "/etc/systemd/system/corpus-agent.timer",
		"/etc/systemd/system-generators/corpus-agent-generator", "/usr/bin/corpus-agent", "/etc/corpus", d.dir}
}

// record writes down which paths are missing now, before up makes the first one. It keeps what an earlier up wrote.
func (d *developing) record() error {
	there, err := walk.Exists(d.own(devMade))
	if there || err != nil {
		return err
	}
	made := []string{}
	for _, one := range d.devPaths() {
		is, err := walk.Named(d.path(one))
		if err != nil {
			return err
		}
		if !is {
			made = append(made, one)
		}
	}
	if !slices.Contains(made, d.dir) {
		if err := isVacant(d.own()); err != nil {
			return err
		}
		made = append(made, d.dir)
	}
	text, err := json.MarshalIndent(map[string][]string{"made": made}, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(d.own(), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(d.own(devMade), append(text, '\n'), 0o644)
}

// recorded returns the paths that up has made and that are there, in the order in which they are removed.
func (d *developing) recorded() (paths []string, err error) {
	text, there, err := walk.Read(d.own(devMade))
	if err != nil || !there {
		return nil, err
	}
	var all struct{ Made []string }
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.own(devMade), err)
	}
	for _, one := range d.devPaths() {
		is, err := walk.Named(d.path(one))
		if err != nil {
			return nil, err
		}
		if is && slices.Contains(all.Made, one) {
			paths = append(paths, one)
		}
	}
	return paths, nil
}

// guestFiles writes the files that new guests get: with them a guest has the local store and its root of trust.
func (d *developing) guestFiles() error {
	root, err := walk.ReadFile(d.own("keys", "root.json"))
	if err != nil {
		return err
	}
	for file, content := range map[string][]byte{"root.json": root, "agent.yaml": config.Example(d.storeURL()),
		"environment": []byte("CORPUS_TRUST_ROOT=/etc/corpus/root.json\n")} {
		mode := fs.FileMode(0o644)
		if file == "environment" {
			mode = 0o600
		}
		now, _, err := walk.Read(d.own(file))
		if err != nil {
			return err
		}
		if string(now) == string(content) {
			continue
		}
		if err := durable.WriteFile(d.own(file), content, mode); err != nil {
			return err
		}
	}
	return nil
}

// devPillar returns the files of the pillar of the node, which are a part of its release: the machine is shared with
// its user, and guests get the files of guestFiles.
func (d *developing) devPillar() map[string][]byte {
	pillar := "node: {shared: true}\nguests:\n  copies:\n"
	for _, file := range []string{"agent.yaml", "environment", "root.json"} {
		pillar += fmt.Sprintf("    /etc/corpus/%s: %s\n", file, path.Join(d.dir, file))
	}
	return map[string][]byte{"salt/config/pillar/top.sls": []byte("base:\n  '*': [node]\n"),
		"salt/config/pillar/node.sls": []byte(pillar)}
}
