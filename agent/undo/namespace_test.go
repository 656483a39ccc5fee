package undo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/mount"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// inNamespaces is the variable that is set when a test runs in its own namespaces.
const inNamespaces = "CORPUS_TEST_APART"

// runInNamespaces runs a test again in new namespaces for mounts and the hostname. It reports whether this is the
// second run.
func runInNamespaces(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespaces) == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes namespaces")
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.count=1", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inNamespaces+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS, Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(out), "operation not permitted") && !strings.Contains(string(out), "=== RUN"):
		t.Skipf("this machine refuses namespaces: %v", err)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("in the namespaces: %v\n%s", err, out)
	}
	return false
}

// real returns the machine itself, with a journal in a temporary directory.
func real(t *testing.T) *scene {
	t.Helper()
	return &scene{T: t, journal: journal.Journal{Dir: t.TempDir(), Limit: 1 << 20, FileLimit: 1 << 10}}
}

func (s *scene) converge(function string, arguments ...any) {
	s.Helper()
	s.run(time.Now().Format("150405.000000"), func(h *host.Host) {
		hosttest.Converge(s.T, h, mount.Functions(), function, value.NewMap(arguments...))
	})
}

// TestMountsAreRestoredOnARealHost has states mount filesystems, and undoes it with the machine's tools.
func TestMountsAreRestoredOnARealHost(t *testing.T) {
	if !runInNamespaces(t) {
		return
	}
	place := t.TempDir()
	at := func(name string) string { return filepath.Join(place, name) }
	mounts := func() string {
		var mine []string
		data, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, place) {
				_, rest, _ := strings.Cut(line, ":") // the part before it has the number of the mount
				mine = append(mine, rest)
			}
		}
		return strings.Join(mine, "")
	}
	sh := func(line string) {
		t.Helper()
		if out, err := exec.Command("sh", "-ec", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	sh("mount -t tmpfs -o size=1m none " + place + "; cd " + place + `; mkdir "a b" bound options other data data/sub below
		mount -t tmpfs -o size=1m,mode=0750 tmpfs "a b"; mount --bind data/sub bound; mount -t tmpfs -o size=1m,noexec one options; mount -t tmpfs -o size=1m one other`)
	defer sh("cd /; umount -R " + place)
	fstab := at("fstab")
	for _, c := range []struct {
		name, function string
		args           []any
	}{
		{"a new one", "mounted", []any{"name", at("new"), "device", "tmpfs", "fstype", "tmpfs", "mkmnt", true, "opts",
			"size=1m"}},
		{"one that goes", "unmounted", []any{"name", at("a b"), "persist", true}},
		{"a directory shown in a second place", "unmounted", []any{"name", at("bound")}},
		{"a new second place", "mounted", []any{"name", at("second"), "device", at("data"), "fstype", "none", "mkmnt", true,
			"opts", "bind"}},
		{"other options", "mounted", []any{"name", at("options"), "device", "one", "fstype", "tmpfs", "opts",
			"size=2m,exec,nosuid", "persist", false}},
		{"a second place that becomes read-only", "mounted", []any{"name", at("bound"), "device", at("data/sub"), "fstype",
			"none", "opts", "bind,ro", "persist", false}},
		{"another device", "mounted", []any{"name", at("other"), "device", "two", "fstype", "tmpfs", "opts", "size=2m",
			"persist", false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := real(t)
			before := mounts()
			s.converge(c.function, append(c.args, "config", fstab)...)
			if mounts() == before {
				t.Fatal("the state changed nothing")
			}
			did := s.restoreTwice()
			if len(did.Restored) == 0 || len(did.Left)+len(did.Failed) > 0 {
				t.Errorf("the summary is %+v", did)
			}
			if now := mounts(); sorted(now) != sorted(before) {
				t.Errorf("mounted is\n%swant\n%s", now, before)
			}
		})
	}
}

// sorted sorts lines, and removes the numbers of virtual devices.
func sorted(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		_, line, _ = strings.Cut(line, " ")
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestHostnameIsRestoredOnARealHost sets the hostname in a new namespace.
func TestHostnameIsRestoredOnARealHost(t *testing.T) {
	if !runInNamespaces(t) {
		return
	}
	if err := syscall.Sethostname([]byte("before")); err != nil {
		t.Fatal(err)
	}
	s := real(t)
	s.run("1", func(h *host.Host) { s.do(h.Kernel.SetHostname("after")) })
	s.expect(s.restoreTwice(), []string{"hostname of the running system"})
	if name, err := os.Hostname(); err != nil || name != "before" {
		t.Errorf("the hostname is %q, %v", name, err)
	}
	s = real(t)
	s.run("1", func(h *host.Host) { s.do(h.Kernel.SetHostname("after")) })
	s.do(syscall.Sethostname([]byte("mine")))
	did := s.restoreTwice()
	s.expect(did, nil, "hostname of the running system (some.state of 1): it was changed since run 1 left it")
}
