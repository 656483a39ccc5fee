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

// Base is a tree that hosts are made of.
type Base struct {
	Suite string // bookworm, trixie, noble ...

	// Packages are installed, beside those without which there is no host.
	Packages []string
	// Offers are packages that hosts can install without a network: with all they depend on, they
	// are in /opt/packages of every host, which is the only repository that apt knows there.
	Offers []string
}

// Suites are the systems that hosts are made of: those of $CORPUS_TEST_SUITES, by default all.
func Suites() []string {
	if some := os.Getenv("CORPUS_TEST_SUITES"); some != "" {
		return strings.FieldsFunc(some, func(r rune) bool { return r == ',' || r == ' ' })
	}
	return []string{"bookworm", "trixie", "noble"}
}

// Standard is a base with what servers have.
func Standard(suite string) Base {
	return Base{
		Suite:    suite,
		Packages: []string{"cron", "curl", "iptables", "kmod", "locales", "openssh-client", "python3", "sudo", "tzdata"},
		Offers:   []string{"nginx", "cloud-init", "git", "openssh-server"},
	}
}

// essential is what every host has.
func essential() []string {
	return []string{"ca-certificates", "dbus", "iproute2", "procps", "systemd", "systemd-sysv", "udev"}
}

// Tree makes the base's tree, or finds it in the cache. It skips the test where the suite is not
// cached and its archive is out of reach.
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

// name is that of the tree, which has another one when it would be made in another way.
func (b Base) name() string {
	const way = "3"
	sum := sha256.Sum256([]byte(fmt.Sprint(way, b.Suite, essential(), b.Packages, b.Offers)))
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
	// A tree that is lost to a power failure is made again, so dpkg need not sync every file.
	if _, err := command("env", append([]string{"DPKG_FORCE=unsafe-io", "debootstrap"}, args...)...); err != nil {
		return err
	}
	if err := b.offer(dir); err != nil {
		return err
	}
	return tidy(dir)
}

// repository is run in a new tree. It gets what is offered and what that depends on from the
// archive, recommendations too, as an administrator would.
const repository = `set -e
mkdir -p /opt/packages
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
			"chroot", dir, "sh", "-c", repository, "offer"}, b.Offers...)...)
	return err
}

// tidy removes what is one machine's own.
func tidy(dir string) error {
	for _, name := range []string{"etc/hostname", "etc/resolv.conf", "etc/machine-id", "var/lib/dbus/machine-id"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(removeTree(filepath.Join(dir, "var/log/journal")), os.Chmod(dir, 0o755))
}
