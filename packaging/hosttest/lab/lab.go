//go:build hosts

// Package lab boots real systemd hosts for tests: a Debian or Ubuntu tree under systemd-nspawn, with
// its own init, journal and packages, in about a second.
//
// A base tree is made once with debootstrap and kept in a cache; every host is an overlay over it
// and is gone when its test ends. It takes root, and the packages systemd-container and debootstrap.
package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Base is a tree that hosts are made of.
type Base struct {
	Suite    string   // bookworm, trixie, noble ...
	Packages []string // beside what a host cannot do without
}

// essential is what every host has.
func essential() []string {
	return []string{"systemd", "systemd-sysv", "dbus", "iproute2", "procps", "ca-certificates"}
}

// Need skips a test where hosts cannot be booted, and installs what it takes where that is possible.
func Need(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("booting hosts takes root")
	}
	var missing []string
	for program, pkg := range map[string]string{"systemd-nspawn": "systemd-container", "debootstrap": "debootstrap", "nsenter": "util-linux"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skipf("booting hosts takes %s", strings.Join(missing, ", "))
	}
	run(t, "apt-get", "update", "-q")
	run(t, append([]string{"apt-get", "install", "-y", "-q", "--no-install-recommends"}, missing...)...)
}

// run runs a command that must succeed.
func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// cache is where base trees are kept between runs.
func cache(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CORPUS_TEST_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			user = "/var/cache"
		}
		dir = filepath.Join(user, "corpus-test")
	}
	return filepath.Join(dir, "hosts")
}

// Tree makes the base's tree, or finds it in the cache.
func (b Base) Tree(t *testing.T) string {
	t.Helper()
	packages := slices.Sorted(slices.Values(append(essential(), b.Packages...)))
	dir := filepath.Join(cache(t), b.Suite+"-"+strconv.FormatUint(sum(strings.Join(packages, ",")), 36))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	b.bootstrap(t, temp, packages)
	if err := os.Rename(temp, dir); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return dir
}

func (b Base) bootstrap(t *testing.T, dir string, packages []string) {
	t.Helper()
	argv := []string{"debootstrap", "--variant=minbase", "--include=" + strings.Join(packages, ","), b.Suite, dir}
	if mirror := os.Getenv("CORPUS_TEST_MIRROR_" + strings.ToUpper(b.Suite)); mirror != "" {
		argv = append(argv, mirror)
	}
	run(t, argv...)
	for _, leftover := range []string{"etc/hostname", "etc/resolv.conf"} {
		_ = os.Remove(filepath.Join(dir, leftover))
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/machine-id"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// sum is FNV-1a, for a short name of a list of packages.
func sum(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// Host is a running host.
type Host struct {
	Name string
	Root string // its filesystem, as this machine sees it

	t      *testing.T
	dir    string
	nspawn *exec.Cmd
	log    *bytes.Buffer
	leader int
}

var count atomic.Int32

// Start boots a host over a base. It shares this machine's network, so that it reaches servers of
// the test on 127.0.0.1.
func Start(t *testing.T, base Base, hostname string) *Host {
	t.Helper()
	tree := base.Tree(t)
	name := fmt.Sprintf("lab%d-%d", os.Getpid(), count.Add(1))
	h := &Host{Name: name, t: t, dir: t.TempDir(), log: &bytes.Buffer{}}
	h.Root = filepath.Join(h.dir, "root")
	h.mount(tree)
	h.Write("/etc/hostname", hostname+"\n")
	h.Write("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 "+hostname+"\n")
	t.Cleanup(h.remove)
	h.Boot()
	return h
}

// mount lays a layer in memory over the base.
func (h *Host) mount(tree string) {
	h.t.Helper()
	disk := filepath.Join(h.dir, "disk")
	for _, dir := range []string{h.Root, disk} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	run(h.t, "mount", "-t", "tmpfs", "-o", "size=2g,mode=755", "lab", disk)
	for _, dir := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(disk, dir), 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	run(h.t, "mount", "-t", "overlay", "-o", fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", tree, disk, disk), h.Name, h.Root)
}

// Boot starts the host's init and waits until it has settled.
func (h *Host) Boot() {
	h.t.Helper()
	h.leader = 0
	cmd := exec.Command("sh", "-c", enterCgroup+`exec setsid systemd-nspawn -q -D "$1" -M "$0" -b --register=no --keep-unit `+
		`--kill-signal=SIGRTMIN+4 --console=pipe --link-journal=no --resolv-conf=replace-host`, h.Name, h.Root)
	cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	cmd.Stdout, cmd.Stderr = h.log, h.log
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.nspawn = cmd
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if h.leader == 0 {
			h.leader = child(cmd.Process.Pid)
		}
		if h.leader != 0 {
			out, _ := h.enter("systemctl", "is-system-running").CombinedOutput()
			if s := strings.TrimSpace(string(out)); s == "running" || s == "degraded" {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	h.t.Fatalf("%s did not boot:\n%s", h.Name, h.log)
}

// enterCgroup gives a host control groups of its own; two systemds in one would meet in
// system.slice.
const enterCgroup = `for c in systemd unified memory pids; do c=/sys/fs/cgroup/$c
  [ -d "$c" ] || continue; mkdir -p "$c/corpus-lab/$0" && echo $$ > "$c/corpus-lab/$0/cgroup.procs"; done 2>/dev/null
`

// child is the first child of a process: nspawn's init.
func child(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	n, _ := strconv.Atoi(first)
	return n
}

// enter prepares a command inside of the host, outside of its init's care.
func (h *Host) enter(argv ...string) *exec.Cmd {
	args := append([]string{"-t", strconv.Itoa(h.leader), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "env", "-i",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}, argv...)
	return exec.Command("nsenter", args...)
}

// Result is what became of a command on a host.
type Result struct {
	Out  string // stdout and stderr
	Code int
}

// Run runs a command on the host as a unit of its own, as a service would.
func (h *Host) Run(argv ...string) Result {
	h.t.Helper()
	out, err := h.enter(append([]string{"systemd-run", "-q", "--pipe", "--wait", "--collect"}, argv...)...).CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		h.t.Fatalf("%s on %s: %v", strings.Join(argv, " "), h.Name, err)
	}
	r := Result{Out: string(out)}
	if failed != nil {
		r.Code = failed.ExitCode()
	}
	return r
}

// Must runs a command that has to succeed and gives its output.
func (h *Host) Must(argv ...string) string {
	h.t.Helper()
	r := h.Run(argv...)
	if r.Code != 0 {
		h.t.Fatalf("%s on %s: exit code %d\n%s", strings.Join(argv, " "), h.Name, r.Code, r.Out)
	}
	return r.Out
}

// Write writes a file of the host.
func (h *Host) Write(path, content string) {
	h.t.Helper()
	file := filepath.Join(h.Root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// Read reads a file of the host.
func (h *Host) Read(path string) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.Root, path))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

// Copy copies a file of this machine to the host.
func (h *Host) Copy(from, to string) {
	h.t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Write(to, string(data))
	if err := os.Chmod(filepath.Join(h.Root, to), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

// Cut kills the host as a power cut does.
func (h *Host) Cut() {
	if h.leader != 0 {
		_ = syscall.Kill(h.leader, syscall.SIGKILL)
	}
	if h.nspawn != nil {
		_ = h.nspawn.Process.Kill()
		_ = h.nspawn.Wait()
	}
	h.nspawn, h.leader = nil, 0
}

func (h *Host) remove() {
	h.Cut()
	for _, dir := range []string{h.Root, filepath.Join(h.dir, "disk")} {
		for range 50 {
			if syscall.Unmount(dir, 0) == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	_ = exec.Command("find", "/sys/fs/cgroup", "-depth", "-path", "*/corpus-lab/"+h.Name+"*", "-type", "d", "-exec", "rmdir", "{}", "+").Run()
}

// Eventually waits until a condition holds.
func Eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within %s: %s", within, what)
}
