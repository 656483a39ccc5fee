//go:build hosts

package iptables_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module/iptables"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestOnKernel applies states to the packet filter of the kernel. A rule that was added must be found again.
func TestOnKernel(t *testing.T) {
	if os.Getenv("CORPUS_THROWAWAY_HOST") == "" {
		t.Skip("this changes the packet filter; set CORPUS_THROWAWAY_HOST=1 on a host, or in a network namespace, " +
			"to throw away")
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/rules"
	for _, c := range []struct {
		function string
		args     *value.Map
	}{
		{"chain_present", value.NewMap("name", "corpus")},
		{"append", value.NewMap("name", "ssh", "chain", "INPUT", "proto", "tcp", "dport", 22, "match", "state", "connstate",
			"NEW,ESTABLISHED", "comment", "let us in", "jump", "ACCEPT", "save", file)},
		{"append", value.NewMap("name", "web", "chain", "INPUT", "proto", "tcp", "dports", value.NewList(80, 443), "source",
			"! 10.0.0.0/8", "jump", "corpus")},
		{"append", value.NewMap("name", "log", "chain", "corpus", "match", "limit", "limit", "5/min", "jump", "LOG",
			"log-prefix", "dropped: ", "log-level", 4)},
		{"insert", value.NewMap("name", "lo", "chain", "INPUT", "position", 1, "if", "lo", "jump", "ACCEPT")},
		{"insert", value.NewMap("name", "last", "chain", "INPUT", "position", -1, "proto", "icmp", "jump", "ACCEPT")},
		{"append", value.NewMap("name", "six", "family", "ipv6", "chain", "INPUT", "proto", "ipv6-icmp", "jump", "ACCEPT")},
		{"append", value.NewMap("name", "nat", "table", "nat", "chain", "POSTROUTING", "of", "eth0", "jump", "MASQUERADE")},
		{"delete", value.NewMap("name", "ssh", "chain", "INPUT", "proto", "tcp", "dport", 22, "match", "state", "connstate",
			"NEW,ESTABLISHED", "comment", "let us in", "jump", "ACCEPT")},
		{"set_policy", value.NewMap("name", "drop", "chain", "FORWARD", "policy", "DROP", "save", file)},
		{"flush", value.NewMap("name", "all", "chain", "INPUT")},
		{"chain_absent", value.NewMap("name", "corpus")},
	} {
		hosttest.Converge(t, h, iptables.Functions(), c.function, c.args)
	}
	out, err := exec.Command("iptables", "-S").CombinedOutput()
	if want := "-P INPUT ACCEPT\n-P FORWARD DROP\n-P OUTPUT ACCEPT\n"; err != nil || string(out) != want {
		t.Errorf("the filter is\n%s, %v; want\n%s", out, err, want)
	}
	saved, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(saved), ":FORWARD DROP") {
		t.Errorf("saved was %s, %v", saved, err)
	}
}
