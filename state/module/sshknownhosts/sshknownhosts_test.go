package sshknownhosts_test

import (
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/sshknownhosts"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "ssh_known_hosts",
		Functions: func(*statetest.Host) module.Table { return sshknownhosts.Functions() },
		Prepare: func(t *testing.T, h *statetest.Host) {
			h.Users.Users = append(h.Users.Users, host.User{Name: "alice", UID: 1000, GID: 100, Home: "/home/alice"})
			h.Build(t, statetest.Tree{"/home/alice": {Kind: "dir", User: "alice"},
				"/usr/bin/ssh-keyscan": {Kind: "file", Content: new(string), Mode: "0755"}})
			h.Commands = statetest.Commands(scan)
		},
		Cases: statetest.Load(t, "../../../testdata/modules/account/ssh_known_hosts.yaml"),
	})
}

// scan simulates ssh-keyscan and a host with two keys.
func scan(c host.Command) (host.Output, error) {
	if !slices.Contains(c.Argv, "scan.example") {
		return host.Output{Code: 1}, nil
	}
	return host.Output{Stdout: "# scan.example:22 SSH-2.0-Test\nscan.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA\n" +
		"scan.example ssh-rsa AAAAB3Nz\n"}, nil
}
