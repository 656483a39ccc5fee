//go:build hosts

package module_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/alternatives"
	"github.com/corpus-agent/corpus-agent/state/module/debconf"
	"github.com/corpus-agent/corpus-agent/state/module/environ"
	"github.com/corpus-agent/corpus-agent/state/module/firewalld"
	"github.com/corpus-agent/corpus-agent/state/module/iptables"
	"github.com/corpus-agent/corpus-agent/state/module/kmod"
	"github.com/corpus-agent/corpus-agent/state/module/locale"
	"github.com/corpus-agent/corpus-agent/state/module/lvm"
	"github.com/corpus-agent/corpus-agent/state/module/mount"
	"github.com/corpus-agent/corpus-agent/state/module/network"
	"github.com/corpus-agent/corpus-agent/state/module/pdbedit"
	"github.com/corpus-agent/corpus-agent/state/module/selinux"
	"github.com/corpus-agent/corpus-agent/state/module/sysctl"
	"github.com/corpus-agent/corpus-agent/state/module/timezone"
	"github.com/corpus-agent/corpus-agent/state/module/virt"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type sources struct{}

func (sources) Script(context.Context, string, string, string, *value.Map) ([]byte, error) {
	return []byte("corpus corpus/file string from a file\n"), nil
}
func (sources) Diff(before, after string) string { return before + after }

func none(string, string) (any, bool) { return nil, false }

// TestOnHost applies states to a disposable machine with its own tools. Every check must predict the changes,
// and a second one must find nothing to do. States whose tools or permissions the machine lacks are skipped.
func TestOnHost(t *testing.T) {
	if os.Getenv("CORPUS_THROWAWAY_HOST") == "" {
		t.Skip("this changes the machine that it runs on; set CORPUS_THROWAWAY_HOST=1 on a disposable one")
	}
	place := t.TempDir()
	if err := os.WriteFile("/usr/local/bin/corpus-ed", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state, function, tool string
		args                  *value.Map
	}{
		{"alternatives", "install", "update-alternatives",
			value.NewMap("name", "corpus-ed", "link", "/usr/bin/corpus-ed", "path", "/usr/local/bin/corpus-ed", "priority", 5)},
		{"alternatives", "set", "update-alternatives", value.NewMap("name", "corpus-ed", "path", "/usr/local/bin/corpus-ed")},
		{"alternatives", "remove", "update-alternatives",
			value.NewMap("name", "corpus-ed", "path", "/usr/local/bin/corpus-ed")},
		{"debconf", "set", "debconf-set-selections", value.NewMap("name", "corpus", "data", value.NewMap(
			"corpus/a", value.NewMap("type", "string", "value", "two  words"),
			"corpus/b", value.NewMap("type", "boolean", "value", true),
			"corpus/c", value.NewMap("type", "password", "value", "hunter2"),
			"corpus/d", value.NewMap("type", "string", "value", "")))},
		{"debconf", "set_file", "debconf-set-selections", value.NewMap("name", "file", "source", "salt://x")},
		{"environ", "setenv", "", value.NewMap("name", "CORPUS", "value", "1")},
		{"locale", "present", "locale-gen", value.NewMap("name", "de_DE.UTF-8")},
		{"locale", "system", "locale-gen", value.NewMap("name", "de_DE.UTF-8")},
		{"mount", "mounted", "mount", value.NewMap("name", place+"/a", "device", "tmpfs", "fstype", "tmpfs", "mkmnt", true,
			"opts", "size=1m,mode=0750,noexec", "config", place+"/fstab")},
		{"mount", "mounted", "mount", value.NewMap("name", place+"/a", "device", "tmpfs", "fstype", "tmpfs", "opts",
			"size=2m,nosuid", "config", place+"/fstab")},
		{"mount", "mounted", "mount", value.NewMap("name", place+"/b", "device", place+"/a", "fstype", "none", "mkmnt", true,
			"opts", "bind", "config", place+"/fstab", "match_on", "name")},
		{"mount", "unmounted", "mount", value.NewMap("name", place+"/b", "persist", true, "config", place+"/fstab")},
		{"mount", "unmounted", "mount", value.NewMap("name", place+"/a", "persist", true, "config", place+"/fstab")},
		{"network", "system", "", value.NewMap("name", "x", "hostname", "corpus-test.example.org")},
		{"pdbedit", "managed", "pdbedit", value.NewMap("name", "root", "password", "secret", "fullname", "Root R.",
			"drive", "X:", "account_control", "X")},
		{"pdbedit", "managed", "pdbedit", value.NewMap("name", "root", "password", "other", "user_sid",
			"5001", "reset_login_hours", true)},
		{"pdbedit", "absent", "pdbedit", value.NewMap("name", "root")},
		{"sysctl", "present", "sysctl", value.NewMap("name", "net.ipv4.ip_forward", "value", "1")},
		{"timezone", "system", "", value.NewMap("name", "Europe/Paris")},
	} {
		t.Run(c.state+"."+c.function, func(t *testing.T) {
			h, err := machine.New(host.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := h.Which(c.tool); c.tool != "" && !ok {
				t.Skipf("this machine has no %s", c.tool)
			}
			hosttest.Converge(t, h, systemStates()[c.state], c.function, c.args)
		})
	}
	if name, err := os.Hostname(); err != nil || name != "corpus-test.example.org" {
		t.Errorf("the hostname is %s, %v", name, err)
	}
	if out, err := exec.Command("debconf-get-selections").Output(); err == nil {
		for _, line := range []string{"corpus\tcorpus/a\tstring\ttwo  words\n", "corpus\tcorpus/b\tboolean\ttrue\n",
			"corpus\tcorpus/file\tstring\tfrom a file\n"} {
			if !strings.Contains(string(out), line) {
				t.Errorf("debconf has no %q", line)
			}
		}
	}
}

// systemStates returns the states that concern the host as a whole.
func systemStates() module.Registry {
	return module.Registry{
		"alternatives": alternatives.Functions(),
		"debconf":      debconf.Functions(sources{}),
		"environ":      environ.Functions(),
		"firewalld":    firewalld.Functions(),
		"iptables":     iptables.Functions(),
		"kmod":         kmod.Functions(),
		"locale":       locale.Functions(),
		"lvm":          lvm.Functions(),
		"mount":        mount.Functions(),
		"network":      network.Functions(sources{}),
		"pdbedit":      pdbedit.Functions(),
		"selinux":      selinux.Functions(),
		"sysctl":       sysctl.Functions(),
		"timezone":     timezone.Functions(),
		"virt":         virt.Functions(none),
	}
}
