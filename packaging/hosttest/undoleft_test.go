//go:build hosts

package hosttest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// twoReleases returns a host with a good release, and another one in its store.
func twoReleases(t *testing.T, good, bad string, prepare func(h *lab.Host)) *lab.Host {
	t.Helper()
	s := newStore(t)
	h := lab.Boot(t, lab.Options{Hostname: "undo-testing-local1-1"})
	publish := func(version, sls string) {
		s.publish("undo", version, "testing",
			tree(t, map[string]string{"salt/config/states/top.sls": "base:\n  '*':\n    - app\n",
				"salt/config/states/app.sls": sls}))
		h.Sh("rm -rf /opt/store")
		h.CopyTree(s.dir, "/opt/store")
	}
	h.Copy(filepath.Join(repository, "bin", "corpus-agent"), "/usr/bin/corpus-agent")
	h.Copy(filepath.Join(s.keys, "root.json"), "/root/root.json")
	caseRepository(t, h)
	prepare(h)
	publish("1", good)
	agent(t, h, "deploy", "--store", "file:///opt/store", "--trust-root", "/root/root.json").converged(t)
	publish("2", bad)
	return h
}

// index rewrites the list of the repository and has the host read it.
const index = `cd /opt/cases; for f in *.deb; do dpkg-deb -f $f; printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' ` +
	`$f $(stat -c %s $f) $(sha256sum $f | cut -d' ' -f1); done > Packages; apt-get update -q`

// TestPackageThatNoRepositoryHasAnyMore checks that the report names a version that is no longer available, and that
// all other changes are undone.
func TestPackageThatNoRepositoryHasAnyMore(t *testing.T) {
	const (
		good = "corpus-one: {pkg.installed: []}\n/etc/app.conf:\n  file.managed:\n    - contents: good\n"
		bad  = "corpus-one:\n  pkg.installed:\n    - version: '2.0'\ncorpus-two: {pkg.installed: []}\n" +
			"/etc/app.conf:\n  file.managed:\n    - contents: bad\nit fails:\n  test.fail_without_changes: []\n"
	)
	h := twoReleases(t, good, bad, func(h *lab.Host) {
		h.Sh("mkdir /opt/later; mv /opt/cases/corpus-one_2.0_all.deb /opt/later; " + index)
	})
	h.Sh("rm /opt/cases/corpus-one_1.0_all.deb; mv /opt/later/* /opt/cases; " + index)
	before := pictureOf(h)
	r := agent(t, h, "deploy")
	if r.Exit != 7 {
		t.Fatalf("exit code %d: %s (hint: %s)\n%s", r.Exit, r.Error, r.Hint, r.failures())
	}
	const left = "left: package corpus-one (pkg.installed corpus-one): no repository of this host has version 1.0 any more"
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, left) || strings.Count(notes, "left: ") != 1 {
		t.Errorf("the notes are\n%s\nwant only %q", notes, left)
	}
	without := func(picture string) string {
		var rest strings.Builder
		for line := range strings.Lines(picture) {
			if !strings.Contains(line, "corpus-one") {
				rest.WriteString(line)
			}
		}
		return rest.String()
	}
	after := pictureOf(h)
	same(t, "but for that package", without(before), without(after))
	if !strings.Contains(after, "dpkg-query corpus-one 2.0") {
		t.Error("the package differs from the state after the failed deploy")
	}
	agent(t, h, "deploy").converged(t)
	if did := h.Run("corpus-agent", "rollback", "--converge"); strings.Contains(did.Out+did.Err, "corpus-one") {
		t.Errorf("a second rollback names the package again:\n%s%s", did.Out, did.Err)
	}
}

// runningSystem prints the state of a host apart from its files: mounts, hostname, kernel settings and alternatives.
const runningSystem = `awk '$5 ~ "^/mnt" {print $4, $5, $6, $9, $10, $11}' /proc/self/mountinfo | sort; hostname; cat /etc/hostname /etc/fstab
sysctl net.ipv4.ip_default_ttl net.ipv4.ip_local_port_range; update-alternatives --query corpus-pager; readlink /usr/bin/corpus-pager /etc/alternatives/corpus-pager; cat /proc/swaps`

// TestUndoRestoresRunningSystem undoes changes outside of files: earlier and new mounts, the hostname, kernel settings
// and alternatives.
func TestUndoRestoresRunningSystem(t *testing.T) {
	const good = `
/mnt/kept:
  mount.mounted:
    - device: tmpfs
    - fstype: tmpfs
    - mkmnt: True
    - opts: size=1m,mode=0750
/mnt/shown:
  mount.mounted:
    - device: /usr/share/doc
    - fstype: none
    - mkmnt: True
    - opts: bind
corpus-pager:
  alternatives.install:
    - link: /usr/bin/corpus-pager
    - path: /bin/cat
    - priority: 50
net.ipv4.ip_default_ttl:
  sysctl.present:
    - value: 65
`
	const bad = `
/mnt/kept:
  mount.mounted:
    - device: tmpfs
    - fstype: tmpfs
    - opts: size=2m,mode=0700,noexec,nosuid
/mnt/shown:
  mount.unmounted:
    - persist: True
/mnt/new:
  mount.mounted:
    - device: tmpfs
    - fstype: tmpfs
    - mkmnt: True
    - opts: size=1m
/mnt/second:
  mount.mounted:
    - device: /usr/share
    - fstype: none
    - mkmnt: True
    - opts: bind,ro
another name:
  network.system:
    - hostname: other.example.org
net.ipv4.ip_default_ttl:
  sysctl.present:
    - value: 63
net.ipv4.ip_local_port_range:
  sysctl.present:
    - value: '40000 50000'
another pager:
  alternatives.install:
    - name: corpus-pager
    - link: /usr/bin/corpus-pager
    - path: /bin/more
    - priority: 60
corpus-pager:
  alternatives.set:
    - path: /bin/more
    - require: [{alternatives: another pager}]
it fails:
  test.fail_without_changes:
    - order: last
`
	h := twoReleases(t, good, bad, func(*lab.Host) {})
	before, was := pictureOf(h), h.Sh(runningSystem)
	r := agent(t, h, "deploy")
	if r.Exit != 7 || r.States.Failed != 1 || r.States.Changed < 8 {
		t.Fatalf("exit code %d: %s (hint: %s), %+v\n%s", r.Exit, r.Error, r.Hint, r.States, r.failures())
	}
	same(t, "of the running system after the rollback", was+"\n", h.Sh(runningSystem)+"\n")
	same(t, "after the rollback", before, pictureOf(h))
	if notes := strings.Join(r.Notes, "\n"); strings.Contains(notes, "left: ") {
		t.Errorf("the notes list changes that were not undone:\n%s", notes)
	}
}

// TestUndoOfPackageOfWatchedService deploys a failing release that installs a service from Debian's archive, configures
// it and restarts it: the packages are removed again, and with them the units that the rollback would have restarted.
func TestUndoOfPackageOfWatchedService(t *testing.T) {
	const good = "/etc/app.conf:\n  file.managed:\n    - contents: good\n"
	for service, config := range map[string]string{"nginx": "/etc/nginx/conf.d/app.conf",
		"ssh": "/etc/ssh/sshd_config.d/app.conf"} {
		t.Run(service, func(t *testing.T) {
			name := map[string]string{"nginx": "nginx", "ssh": "openssh-server"}[service]
			bad := name + ":\n  pkg.installed: []\n" + config +
				":\n  file.managed:\n    - contents: '# app'\n    - require:\n      - pkg: " + name + "\n" +
				service + ":\n  service.running:\n    - enable: true\n    - watch:\n      - file: " + config +
				"\nit fails:\n  test.fail_without_changes: []\n"
			h := twoReleases(t, good, bad, func(*lab.Host) {})
			packages := func() string { return h.Sh("dpkg-query -W -f '${Package} ${Status}\\n' | grep ' installed$' | sort") }
			before := packages()
			r := agent(t, h, "deploy")
			if r.Exit != 7 {
				t.Fatalf("exit code %d: %s (hint: %s)\n%s", r.Exit, r.Error, r.Hint, r.failures())
			}
			if after := packages(); after != before {
				t.Errorf("the packages were\n%s\nand are now\n%s", before, after)
			}
			if got := strings.TrimSpace(h.Run("systemctl", "is-active", service).Out); got == "active" {
				t.Errorf("%s is %s", service, got)
			}
			agent(t, h, "deploy").converged(t)
		})
	}
}
