//go:build hosts

// Package lab boots real systemd hosts for tests: a Debian or Ubuntu tree under systemd-nspawn, with an init, a
// journal, a package database and its own network, in about a second and without virtualisation.
//
// A Base is built once with debootstrap and kept in a cache. A Host is an overlay over it that is removed when its
// test ends. Hosts have no access to the network of the machine: a Network connects them to each other and to servers
// of the test. Cut simulates a power failure of a host: it ends at once, and with Options.Crash loses everything that
// was not synced.
//
// The package requires root. Its cache is in the directory "hosts" below $CORPUS_TEST_CACHE, or below corpus-test in
// the user's cache directory.
package lab

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tools returns the programs that are needed to make hosts, with the package of each.
func tools() map[string]string {
	return map[string]string{
		"debootstrap": "debootstrap", "systemd-nspawn": "systemd-container", "nsenter": "util-linux", "ip": "iproute2",
		"mkfs.ext4": "e2fsprogs",
		"dpkg-deb":  "dpkg", "nft": "nftables", "tc": "iproute2",
	}
}

// need checks once that hosts can be booted here, installs missing tools, and removes the remains of an earlier run.
var need = sync.OnceValue(func() error {
	if os.Geteuid() != 0 {
		return errors.New("booting hosts takes root")
	}
	var missing []string
	for program, pkg := range tools() {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	slices.Sort(missing)
	if err := install(missing); err != nil {
		return err
	}
	return sweep()
})

func install(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	wanted := "booting hosts takes the packages " + strings.Join(missing, ", ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New(wanted)
	}
	if _, err := command("apt-get", "update", "-q"); err != nil {
		return errors.New(wanted + ", and apt does not get them: " + err.Error())
	}
	_, err := command("env",
		append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-q", "--no-install-recommends"},
			missing...)...)
	if err != nil {
		return errors.New(wanted + ", and apt does not get them: " + err.Error())
	}
	return nil
}

// command runs a command that must succeed. Its output is part of the error.
func command(program string, args ...string) (string, error) {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return string(out), errors.New(program + " " + strings.Join(args, " ") + ": " + err.Error() + "\n" +
			tail(string(out), 15))
	}
	return string(out), nil
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// ip runs the program ip, and fails the test if it fails.
func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command("ip", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// cache returns the directory of kept files.
func cache() (string, error) {
	dir := os.Getenv("CORPUS_TEST_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			user = "/var/cache"
		}
		dir = filepath.Join(user, "corpus-test")
	}
	dir = filepath.Join(dir, "hosts")
	return dir, os.MkdirAll(dir, 0o755)
}

var count atomic.Int32

// newName returns a name that contains the ID of this process, so that other processes can determine whether its owner
// still runs. Names are short: that of a network device has at most 15 characters.
func newName() string {
	return "l" + strconv.FormatInt(int64(os.Getpid()), 16) + "-" + strconv.Itoa(int(count.Add(1)))
}

// abandoned reports whether the owner of a name has ended.
func abandoned(name string) bool {
	owner, ok := strings.CutPrefix(name, "l")
	owner, _, dash := strings.Cut(owner, "-")
	pid, err := strconv.ParseInt(owner, 16, 32)
	if !ok || !dash || err != nil {
		return false
	}
	_, err = os.Stat("/proc/" + strconv.FormatInt(pid, 10))
	return errors.Is(err, os.ErrNotExist)
}

// sweep removes hosts and networks of test processes that were killed.
func sweep() error {
	dir, err := cache()
	if err != nil {
		return err
	}
	hosts, err := os.ReadDir(filepath.Join(dir, "running"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	for _, e := range hosts {
		if abandoned(e.Name()) {
			err = errors.Join(err, removeTree(filepath.Join(dir, "running", e.Name())))
			removeCgroups(e.Name())
		}
	}
	networks, _ := os.ReadDir("/run/netns") // the directory does not exist before the first network
	for _, e := range networks {
		if abandoned(e.Name()) {
			_, _ = command("ip", "netns", "del", e.Name()) // another process may have removed it
		}
	}
	return err
}

// Eventually waits until a condition holds, and fails the test if it does not hold in time.
func Eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within %s: %s", within, what)
}
