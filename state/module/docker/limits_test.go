package docker

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestLimits checks the options of docker create for the rarer arguments.
func TestLimits(t *testing.T) {
	r := Tables()["docker_container"]["running"]()
	_, problems := module.Decode(r,
		module.Call{Arguments: value.NewMap("name", "x", "image", "y", "blkio_weight", 100, "pids_limit", "50",
			"sysctls", value.NewMap("net.core.somaxconn", 1024), "group_add", value.NewList("a", 5), "oom_kill_disable",
			"True", "memory_swap", "1G",
			"network_disabled", true, "storage_opts", value.Strings("size=1G"))})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := strings.Join(r.(*running).flags(), " ")
	want := "--blkio-weight=100 --storage-opt=size=1G --group-add=a --group-add=5 --memory-swap=1G --pids-limit=50 " +
		"--sysctl=net.core.somaxconn=1024 " +
		"--oom-kill-disable --network=none"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
