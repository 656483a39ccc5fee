//go:build hosts

package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Base describes the tree from which hosts are made.
type Base struct {
	Suite string // bookworm, trixie, noble ...

	// Packages are installed in addition to the packages of every host.
	Packages []string
	// Later are packages that apt installs after them: their dependencies have alternatives, which debootstrap cannot
	// choose from.
	Later []string
	// Offers are packages that hosts can install without a network: they are, with all their dependencies, in
	// /opt/packages of every host, which is the only repository of apt there.
	Offers []string
}

// Suites returns the suites of the hosts: those of $CORPUS_TEST_SUITES, by default all.
func Suites() []string {
	if some := os.Getenv("CORPUS_TEST_SUITES"); some != "" {
		return strings.FieldsFunc(some, func(r rune) bool { return r == ',' || r == ' ' })
	}
	return []string{"bookworm", "trixie", "noble"}
}

// Standard returns a base with the packages of a usual server.
func Standard(suite string) Base {
	return Base{
		Suite:    suite,
		Packages: []string{"cron", "curl", "iptables", "kmod", "locales", "openssh-client", "python3", "sudo", "tzdata"},
		Offers:   []string{"nginx", "cloud-init", "git", "openssh-server"},
	}
}

// essential returns the packages of every host.
func essential() []string {
	return []string{"ca-certificates", "dbus", "iproute2", "procps", "systemd", "systemd-sysv", "udev"}
}

// Tree returns the base's tree, which it makes unless it is in the cache. It skips the test if the suite is not cached
// and its archive cannot be reached.
func (b Base) Tree(t *testing.T) string {
	t.Helper()
	dir, err := cache()
	if err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(dir, b.name())
	lock, err := os.OpenFile(tree+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tree); err == nil {
		return tree
	}
	b.reach(t)
	t.Logf("making %s, which takes a minute or two; it is kept", tree)
	temp := tree + ".making"
	if err := removeTree(temp); err != nil {
		t.Fatal(err)
	}
	if err := b.make(temp); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// name returns the name of the tree, which depends on everything that determines its content.
func (b Base) name() string {
	const way = "3"
	parts := []any{way, b.Suite, essential(), b.Packages, b.Offers}
	if len(b.Later) > 0 {
		parts = append(parts, b.Later)
	}
	sum := sha256.Sum256([]byte(fmt.Sprint(parts...)))
	return b.Suite + "-" + hex.EncodeToString(sum[:4])
}

func (b Base) reach(t *testing.T) {
	t.Helper()
	client := http.Client{Timeout: 20 * time.Second}
	url := b.archive().url() + "/dists/" + b.Suite + "/Release"
	resp, err := client.Head(url)
	if err != nil {
		t.Skipf("%s is not in the cache, and its archive is out of reach: %v", b.Suite, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Skipf("%s is not in the cache, and %s answers %s", b.Suite, url, resp.Status)
	}
}

func (b Base) make(dir string) error {
	a := b.archive()
	packages := slices.Sorted(slices.Values(append(essential(), b.Packages...)))
	args := []string{"--variant=minbase", "--include=" + strings.Join(packages, ",")}
	if a.keyring != nil {
		keys, err := os.MkdirTemp("", "keyring")
		if err != nil {
			return err
		}
		defer os.RemoveAll(keys)
		ring, err := a.keyring(keys)
		if err != nil {
			return err
		}
		args = append(args, "--keyring="+ring)
	}
	args = append(args, b.Suite, dir, a.url())
	if _, err := os.Stat("/usr/share/debootstrap/scripts/" + b.Suite); err != nil {
		args = append(args, a.script)
	}
	// A tree that a power failure damages is made again, so dpkg need not sync every file.
	if _, err := command("env", append([]string{"DPKG_FORCE=unsafe-io", "debootstrap"}, args...)...); err != nil {
		return err
	}
	if err := b.offer(dir); err != nil {
		return err
	}
	return tidy(dir)
}

// repository is run in a new tree. It installs the packages of $LATER, and downloads the offered packages and their
// dependencies, including recommended ones, from the archive.
const repository = `set -e
mkdir -p /opt/packages
if [ -n "$LATER" ]; then
  apt-get update -q
  apt-get install -y -q --no-install-recommends $LATER
fi
if [ $# -gt 0 ]; then
  apt-get update -q
  apt-get install -y -q --download-only "$@"
  mv /var/cache/apt/archives/*.deb /opt/packages/
fi
cd /opt/packages
for f in *.deb; do
  [ -e "$f" ] || continue
  dpkg-deb -f "$f"; printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$f" "$(stat -c %s "$f")" "$(sha256sum "$f" | cut -d' ' -f1)"
done > Packages
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/opt/packages ./' > /etc/apt/sources.list
apt-get update -q
`

// offer makes the repository of a tree.
func (b Base) offer(dir string) error {
	for _, name := range []string{"resolv.conf", "hosts"} {
		data, err := os.ReadFile("/etc/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "etc", name), data, 0o644)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	_, err := command("env",
		append([]string{"-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
			"DPKG_FORCE=unsafe-io",
			"LATER=" + strings.Join(b.Later, " "), "chroot", dir, "sh", "-c", repository, "offer"}, b.Offers...)...)
	return err
}

// tidy removes the files that are specific to one machine.
func tidy(dir string) error {
	for _, name := range []string{"etc/hostname", "etc/resolv.conf", "etc/machine-id", "var/lib/dbus/machine-id"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(removeTree(filepath.Join(dir, "var/log/journal")), os.Chmod(dir, 0o755))
}
