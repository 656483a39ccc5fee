//go:build hosts

package hosttest_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// nodeBase is the system of hosts that are nodes.
func nodeBase() lab.Base {
	base := lab.Standard("bookworm")
	base.Offers = append(base.Offers, "systemd-container", "lxc", "nftables", "haproxy", "btrfs-progs")
	return base
}

// rootfs makes a root file system of Debian with SSH and git, and returns its archive.
func rootfs(t *testing.T) string {
	t.Helper()
	h := lab.Boot(t, lab.Options{Base: nodeBase(), Hostname: "image"})
	h.Sh("apt-get install -y openssh-server git; rm /etc/ssh/ssh_host_*; apt-get clean")
	file := filepath.Join(t.TempDir(), "rootfs.tar")
	run(t, "tar", "--one-file-system", "--numeric-owner", "--exclude=./opt/packages", "-C", h.Root, "-cf", file, ".")
	return file
}

// laptop is the machine of ann, who may use sudo.
type laptop struct {
	*lab.Host
	t *testing.T
}

// newLaptop boots a machine with the programs of this project and a working tree of ann's.
func newLaptop(t *testing.T) *laptop {
	t.Helper()
	h := lab.Boot(t, lab.Options{Base: nodeBase(), Hostname: "laptop", Network: lab.NewNetwork(t), Address: "172.31.0.11"})
	for _, program := range []string{"corpus", "corpus-agent"} {
		h.Copy(filepath.Join(repository, "bin", program), "/usr/local/bin/"+program)
	}
	// The disk of this machine is an overlay, which maps no users.
	h.Sh("apt-get install -y git; useradd -s /bin/bash ann; mkdir /home/ann; mount -t tmpfs ann /home/ann; " +
		"chown ann: /home/ann; chmod 700 /home/ann")
	l := &laptop{h, t}
	l.ann(`ssh-keygen -q -t ed25519 -N "" -f .ssh/id_ed25519
printf 'Host *\n  StrictHostKeyChecking accept-new\n' >.ssh/config
mkdir -p shop/salt/config/states; cd shop; echo hello >README; echo "base: {'*': [was]}" >salt/config/states/top.sls
printf '/srv/shop-was-here:\n  file.managed:\n    - contents: pushed\n' >salt/config/states/was.sls
git init -q -b main; git add -A; git -c user.name=ann -c user.email=ann@example.org commit -q -m first`)
	return l
}

// ann runs lines of shell as ann.
func (l *laptop) ann(lines string) string {
	l.t.Helper()
	l.Write("/tmp/ann.sh", "set -e\ncd /home/ann\nmkdir -p .ssh\n"+lines+"\n")
	return strings.TrimSpace(l.Must("runuser", "-u", "ann", "--", "env", "HOME=/home/ann", "bash", "-e", "/tmp/ann.sh"))
}

// guestRow is a guest in the output of corpus dev.
type guestRow struct{ Name, State, Address, SSH string }

// up runs corpus dev up, and returns the guests.
func (l *laptop) up(words string) []guestRow {
	l.t.Helper()
	var answer struct{ Guests []guestRow }
	r := l.Run("sh", "-c", "corpus dev up --yes --json "+words)
	if err := json.Unmarshal([]byte(r.Out), &answer); err != nil || r.Code != 0 || strings.Contains(r.Err, "warning") {
		l.t.Fatalf("corpus dev up: %v, exit code %d\n%s\n%s", err, r.Code, r.Out, r.Err)
	}
	return answer.Guests
}

// refused runs a command that must fail with a text.
func (l *laptop) refused(words, says string) {
	l.t.Helper()
	if r := l.Run("sh", "-c", "corpus "+words); r.Code == 0 || !strings.Contains(r.Err, says) {
		l.t.Errorf("corpus %s: exit code %d, want an error with %q\n%s%s", words, r.Code, says, r.Out, r.Err)
	}
}

// TestDeveloperEnvironment makes guests on a person's machine, with a working tree in them, pushes to one, stops them
// and removes everything.
func TestDeveloperEnvironment(t *testing.T) {
	image := rootfs(t)
	for _, driver := range []string{"nspawn", "lxc"} {
		t.Run(driver, func(t *testing.T) { developEnvironment(t, driver, image) })
	}
}

func developEnvironment(t *testing.T, driver, image string) {
	l := newLaptop(t)
	l.Copy(image, "/root/rootfs.tar")
	before := l.Sh("find /etc /srv /usr/local /var/lib -xdev | sort | sha256sum")
	words := "--driver " + driver + " --rootfs /root/rootfs.tar --ssh-key /home/ann/.ssh/id_ed25519.pub --project shop " +
		"--mount /home/ann/shop:/srv/work/shop:rw --mount /usr/local/bin:/srv/tools "
	if got := l.Sh("corpus dev up --dry-run " + words); !strings.Contains(got, "guest dev1: project shop, image rootfs") ||
		before != l.Sh("find /etc /srv /usr/local /var/lib -xdev | sort | sha256sum") {
		t.Errorf("a dry run made changes, or says\n%s", got)
	}
	start := time.Now()
	guests := l.up(words)
	t.Logf("%s: up took %s", driver, time.Since(start).Round(time.Second/10))
	if len(guests) != 1 || guests[0].State != "active" {
		t.Fatalf("the guests are %+v", guests)
	}
	l.worksInGuest(guests[0].SSH)
	l.survivesMisdirection(guests[0].SSH)
	if got := l.Sh("corpus dev up --dry-run --json " + words); !strings.Contains(got, `"changes": []`) {
		t.Errorf("a second up would change\n%s", got)
	}
	start = time.Now()
	l.up("")
	t.Logf("%s: a second up took %s", driver, time.Since(start).Round(time.Second/10))
	if r := history(t, l.Host)[0]; r.States.Changed > 0 || r.Exit != 0 {
		t.Errorf("a second up changed %+v", r)
	}
	l.downAndUp()
	start = time.Now()
	l.Sh("corpus dev down --remove --yes")
	t.Logf("%s: down --remove took %s", driver, time.Since(start).Round(time.Second/10))
	for _, file := range []string{"/var/lib/corpus-dev", "/etc/corpus", "/var/lib/corpus", "/srv/projects",
		"/var/lib/machines/dev1", "/usr/bin/corpus-agent", "/sys/class/net/guests", "/var/lib/corpus-guests"} {
		if l.Exists(file) {
			t.Errorf("after down --remove there is %s", file)
		}
	}
	if got := l.Sh("cat /home/ann/shop/README; grep -c dev1 /etc/hosts || :; hostname; nft list ruleset"); got !=
		"hello\n0\nlaptop" {
		t.Errorf("after down --remove: %q", got)
	}
	l.refused("dev down", "there is no developer environment")
	l.Write("/etc/corpus/agent.yaml", "store: https://store.example.com\n")
	l.refused("dev up", "this machine is a host of another store")
	if l.Exists("/var/lib/corpus-dev") {
		t.Error("a refused up made files")
	}
}

// worksInGuest uses a guest as ann does.
func (l *laptop) worksInGuest(ssh string) {
	l.t.Helper()
	l.Sh("echo secret >/home/ann/shop/of-root; chmod 600 /home/ann/shop/of-root")
	for _, c := range [][2]string{
		{ssh + " 'cat /srv/work/shop/README; hostname; stat -c %U:%a /srv/work/shop/README'",
			"hello\nshop-dev-local1-dev1\nroot:644"},
		{ssh + " 'cd /srv/work/shop; echo made >made; chmod 4755 made'; stat -c %U:%G:%a shop/made; cat shop/made",
			"ann:ann:4755\nmade"},
		{ssh + " 'cat /srv/work/shop/of-root 2>&1 || stat -c %U /srv/work/shop/of-root'",
			"cat: /srv/work/shop/of-root: Permission denied\nnobody"},
		{ssh + " touch /srv/tools/x 2>&1 | sed 's/.*: //'", "Read-only file system"},
		{ssh + " mount -o remount,rw /srv/tools 2>&1 | grep -o 'permission denied'", "permission denied"},
		{ssh + " chown 1 /srv/work/shop/made 2>&1 | sed 's/.*: //'", "Value too large for defined data type"},
		{ssh + " findmnt -no OPTIONS /srv/work/shop | grep -o nosuid,nodev", "nosuid,nodev"},
		{"corpus dev ls | grep -o 'dev1 .*active'", "dev1   shop     rootfs  active"},
	} {
		if got := l.ann(c[0]); got != c[1] {
			l.t.Errorf("%s:\n%s\nwant\n%s", c[0], got, c[1])
		}
	}
	l.deploys(ssh)
	l.ann("cd shop; corpus push dev1 shop --init --cloud dev")
	if got := l.ann(ssh + " cat /srv/shop-was-here"); got != "pushed" {
		l.t.Errorf("after a push the guest has %q", got)
	}
}

// deploys publishes a release of the guest's service in the local store, and lets the guest deploy it.
func (l *laptop) deploys(ssh string) {
	l.t.Helper()
	l.Write("/root/tree/salt/config/states/top.sls", "base:\n  '*': [one]\n")
	l.Write("/root/tree/salt/config/states/one.sls", "/srv/released:\n  file.managed:\n    - contents: released\n")
	l.Sh("cd /root; export HOME=/root; corpus publish shop 1.0 tree --channel dev " +
		"--store file:///var/lib/corpus-dev/store --keys /var/lib/corpus-dev/keys")
	got := l.ann(ssh + " 'set -a; . /etc/corpus/environment; corpus-agent deploy >/dev/null; cat /srv/released'")
	if got != "released" {
		l.t.Errorf("the guest that deploys from the local store has %q", got)
	}
}

// survivesMisdirection has ann put a link to a directory of root's in the place of her working tree.
func (l *laptop) survivesMisdirection(ssh string) {
	l.t.Helper()
	l.Sh("echo secret >/root/secret")
	l.ann("mv shop shop.old; ln -s /root shop")
	l.refused("dev up --yes", "exit code")
	l.Sh("systemctl stop corpus-agent.timer")
	if got := l.ann(ssh + " 'ls /srv/work/shop'"); strings.Contains(got, "secret") {
		l.t.Errorf("the guest sees %q", got)
	}
	l.ann("rm shop; mv shop.old shop")
	l.Sh("corpus-agent unquarantine --all || :; corpus dev up --yes")
	if got := l.ann(ssh + " 'cat /srv/work/shop/README'"); got != "hello" {
		l.t.Errorf("the guest sees %q", got)
	}
}

// downAndUp stops the guests and starts them.
func (l *laptop) downAndUp() {
	l.t.Helper()
	l.Sh("corpus dev down")
	got := l.Sh("corpus dev ls --json; systemctl is-enabled corpus-agent.timer corpus-guests.service || :")
	if !strings.Contains(got, `"state": "inactive"`) || !strings.HasSuffix(got, "disabled\ndisabled") {
		l.t.Errorf("after down there is\n%s", got)
	}
	if guests := l.up(""); len(guests) != 1 || guests[0].State != "active" {
		l.t.Errorf("after down and up the guests are %+v", guests)
	}
}
