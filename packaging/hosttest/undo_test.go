//go:build hosts

package hosttest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// picture is a program that prints every part of a host that a deploy may change: every file with its kind, mode,
// owner, content and extended attributes, the accounts, the state and the enablement of units, and the packages.
//
// It leaves out the exceptions in docs/undo.md: private files of tools (backups of account files and crontabs and
// leftovers of interrupted new ones, lastlog, the note that a package's script enabled a unit, databases of apt and
// dpkg, whose packages are listed by version), logs, caches, and the directories of deploys.
const picture = `#!/usr/bin/python3
import hashlib, os, re, stat, subprocess
skip = {"/proc", "/sys", "/dev", "/run", "/tmp", "/srv", "/opt", "/root", "/var/log", "/var/cache", "/var/tmp", "/var/lib/corpus",
        "/var/lib/dpkg", "/var/lib/apt", "/var/lib/systemd", "/etc/ld.so.cache", "/etc/.pwd.lock", "/etc/machine-id", "/lost+found"}
def show(path):
    st = os.lstat(path)
    line = "%s %06o %d:%d" % (path, st.st_mode, st.st_uid, st.st_gid)
    if stat.S_ISLNK(st.st_mode):
        return line + " -> " + os.readlink(path)
    if stat.S_ISREG(st.st_mode):
        line += " " + hashlib.sha256(open(path, "rb").read()).hexdigest()[:12]
    for name in sorted(os.listxattr(path, follow_symlinks=False)):
        line += " %s=%s" % (name, os.getxattr(path, name, follow_symlinks=False).hex())
    return line
for top, dirs, files in os.walk("/"):
    dirs[:] = sorted(d for d in dirs if os.path.join(top, d) not in skip)
    for name in sorted(dirs + files):
        path = os.path.join(top, name)
        if path not in skip and not (top == "/etc" and re.fullmatch("(passwd|shadow|group|gshadow|subuid|subgid)([-+]|[.][0-9]+|[.]lock)", name)) and not (top.startswith("/var/spool/cron") and name.startswith("tmp.")):
            print(show(path))
def tell(*argv):
    for line in subprocess.run(argv, capture_output=True, text=True).stdout.splitlines():
        print(argv[0], line.strip())
tell("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n")
tell("apt-mark", "showhold")
for line in subprocess.run(["systemctl", "list-unit-files", "--no-legend", "--no-pager"], capture_output=True, text=True).stdout.splitlines():
    if not line.startswith("run-") and not line.startswith("deploy-"): # what the test itself runs
        print("unit", line.strip())
for line in subprocess.run(["systemctl", "list-units", "--type=service", "--state=active", "--no-legend", "--plain", "--no-pager"], capture_output=True, text=True).stdout.splitlines():
    if line.split()[0] in ("corpus-daemon.service", "own.service", "cron.service", "other.service"):
        print("active", line.split()[0])
`

// pictureOf returns the output of the program.
func pictureOf(h *lab.Host) string {
	h.Program("/root/picture", picture)
	return h.Sh("/root/picture") + "\n"
}

// same compares two pictures line by line.
func same(t *testing.T, what, before, after string) {
	t.Helper()
	was, is := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(before) {
		was[line] = true
	}
	for line := range strings.Lines(after) {
		is[line] = true
	}
	for line := range strings.Lines(before) {
		if !is[line] {
			t.Errorf("%s: missing: %s", what, line)
		}
	}
	for line := range strings.Lines(after) {
		if !was[line] {
			t.Errorf("%s: new:  %s", what, line)
		}
	}
}

// undoGood is the release that runs first: a daemon with a configuration, an account, a job.
const undoGood = `
corpus-daemon: {pkg.installed: []}
corpus-one:
  pkg.installed:
    - version: '1.0'
/etc/corpus-daemon.conf:
  file.managed:
    - contents: depth = 4
    - require: [{pkg: corpus-daemon}]
daemon runs:
  service.running:
    - name: corpus-daemon
    - enable: True
    - watch: [{file: /etc/corpus-daemon.conf}]
ada:
  user.present:
    - uid: 2001
    - groups: [games]
    - password: '$6$abc$def'
a job:
  cron.present:
    - name: /usr/bin/true
    - user: root
    - identifier: job
/etc/app/data:
  file.managed:
    - makedirs: True
    - mode: '0640'
    - contents: good
`

// undoBad changes the files of undoGood and others with each family of states, and then fails.
const undoBad = `
corpus-one:
  pkg.installed:
    - version: '2.0'
corpus-two: {pkg.installed: []}
/etc/corpus-daemon.conf:
  file.managed:
    - contents: depth = 5
daemon runs:
  service.running:
    - name: corpus-daemon
    - watch: [{file: /etc/corpus-daemon.conf}]
/etc/systemd/system/own.service:
  file.managed:
    - contents: |
        [Service]
        ExecStart=/bin/sleep infinity
        [Install]
        WantedBy=multi-user.target
own runs:
  service.running:
    - name: own
    - enable: True
    - require: [{file: /etc/systemd/system/own.service}]
cron.service: {service.masked: []}
ada:
  user.present:
    - uid: 2001
    - shell: /bin/sh
    - fullname: Ada
    - groups: [games, audio]
    - password: '$6$abc$other'
bob:
  user.present:
    - uid: 2002
crew:
  group.present:
    - gid: 2100
games:
  group.present:
    - addusers: [bob]
    - require: [{user: bob}]
a job:
  cron.present:
    - name: /usr/bin/false
    - user: root
    - identifier: job
another job:
  cron.present:
    - name: /usr/bin/true
    - user: bob
    - identifier: other
    - require: [{user: bob}]
a key:
  ssh_auth.present:
    - name: AAAAC3NzaC1lZDI1NTE5AAAAIHk2tPhfYzVYgLZmPkQNqpm1EFJkfDkVxJ1cFOAsg1pM
    - enc: ssh-ed25519
    - user: ada
db:
  host.present:
    - ip: 10.0.0.1
net.ipv4.ip_default_ttl:
  sysctl.present:
    - value: 63
    - config: /etc/sysctl.d/50-app.conf
a pager:
  alternatives.install:
    - name: corpus-pager
    - link: /usr/bin/corpus-pager
    - path: /bin/cat
    - priority: 50
Europe/Berlin: {timezone.system: []}
/etc/app/data:
  file.managed:
    - mode: '0600'
    - user: ada
    - contents: bad
/etc/app/link:
  file.symlink:
    - target: data
/etc/motd:
  file.append:
    - text: welcome
/etc/app/deep/er/file:
  file.managed:
    - makedirs: True
    - contents: new
/etc/profile: {file.absent: []}
it fails:
  test.fail_without_changes:
    - order: last
`

// undoHost returns a host with the good release, and the bad one in its store.
func undoHost(t *testing.T, crash bool) (*lab.Host, *store) {
	t.Helper()
	s := newStore(t)
	publish := func(version, sls string) {
		s.publish("undo", version, "testing",
			tree(t, map[string]string{"salt/config/states/top.sls": "base:\n  '*':\n    - app\n",
				"salt/config/states/app.sls": sls}))
	}
	publish("1", undoGood)
	h := lab.Boot(t, lab.Options{Hostname: "undo-testing-local1-1", Crash: crash})
	h.Copy(filepath.Join(repository, "bin", "corpus-agent"), "/usr/bin/corpus-agent")
	h.Copy(filepath.Join(s.keys, "root.json"), "/root/root.json")
	caseRepository(t, h)
	h.CopyTree(s.dir, "/opt/store")
	agent(t, h, "deploy", "--store", "file:///opt/store", "--trust-root", "/root/root.json").converged(t)
	publish("2", undoBad)
	h.Sh("rm -r /opt/store")
	h.CopyTree(s.dir, "/opt/store")
	h.Sh("sync")
	return h, s
}

// TestRollbackUndoesChangesOfStates deploys a release that uses every family of states and then fails, and compares the
// host with its previous state.
func TestRollbackUndoesChangesOfStates(t *testing.T) {
	h, _ := undoHost(t, false)
	before := pictureOf(h)
	ttl := h.Sh("cat /proc/sys/net/ipv4/ip_default_ttl")
	started := h.Sh("systemctl show -p ActiveEnterTimestampMonotonic corpus-daemon")
	r := agent(t, h, "deploy")
	if r.Exit != 7 {
		t.Fatalf("exit code %d: %s (hint: %s)\n%s", r.Exit, r.Error, r.Hint, r.failures())
	}
	if r.States.Failed != 1 || r.States.Changed < 20 {
		t.Errorf("%d states failed and %d changed the host, want the one that always fails and all others:\n%s",
			r.States.Failed, r.States.Changed, r.failures())
	}
	same(t, "after the rollback", before, pictureOf(h))
	if now := h.Sh("cat /proc/sys/net/ipv4/ip_default_ttl"); now != ttl {
		t.Errorf("the sysctl is %s, want %s", now, ttl)
	}
	if now := h.Sh("systemctl show -p ActiveEnterTimestampMonotonic corpus-daemon"); now == started {
		t.Error("the daemon was not restarted with its earlier configuration")
	}
	for _, note := range r.Notes {
		if strings.Contains(note, "left:") {
			t.Errorf("the note lists a change that was not undone: %s", note)
		}
	}
	if all := h.Sh("cat /var/lib/corpus/reports/* /var/lib/corpus/ledger.json"); strings.Contains(all, "$6$abc$other") {
		t.Error("a password is in a report")
	}
	if shown := h.Sh("corpus-agent changes"); strings.Contains(shown, "$6$abc") || !strings.Contains(shown, "user ada") {
		t.Errorf("changes shows\n%s", shown)
	}
	agent(t, h, "deploy").converged(t)
	same(t, "after the next run", before, pictureOf(h))
}

// TestPowerCutDuringUndo simulates CORPUS_TEST_CUTS power failures at random times in the apply or in the rollback. The
// laterPackage runs restore the host.
func TestPowerCutDuringUndo(t *testing.T) {
	cuts, err := strconv.Atoi(os.Getenv("CORPUS_TEST_CUTS"))
	if err != nil {
		cuts = 5
	}
	h, _ := undoHost(t, true)
	before := pictureOf(h)
	started := time.Now()
	if r := agent(t, h, "deploy"); r.Exit != 7 {
		t.Fatalf("exit code %d: %s", r.Exit, r.Error)
	}
	whole := time.Since(started)
	same(t, "without a cut", before, pictureOf(h))
	stages := map[string]int{}
	for n := range cuts {
		h.Sh("corpus-agent unquarantine --all; sync")
		after := time.Duration(rand.Int64N(int64(whole)))
		h.Sh("systemd-run -q --unit=deploy-" + strconv.Itoa(n) + " corpus-agent deploy")
		time.Sleep(after)
		h.Cut()
		h.Start()
		what := fmt.Sprintf("cut %d, after %s of %s", n+1, after.Round(time.Millisecond), whole.Round(time.Millisecond))
		stages[undoStage(h)]++
		settled, output := false, ""
		for range 5 {
			r := h.Run("corpus-agent", "deploy")
			if output += r.Out + r.Err; r.Code == 0 {
				settled = true
				break
			}
		}
		if !settled {
			t.Errorf("%s: the host does not settle", what)
		}
		same(t, what, before, pictureOf(h))
		if t.Failed() {
			t.Fatalf("the later runs printed:\n%s\nand the journal:\n%s", output, h.Sh("corpus-agent changes"))
		}
		if (n+1)%10 == 0 {
			t.Logf("%d cuts survived so far", n+1) // progress of a long run, which may exceed its time limit
		}
	}
	t.Logf("%d cuts, each within a deploy of about %s; the host was found %v", cuts, whole.Round(time.Millisecond), stages)
}

// undoStage returns the progress of a failing deploy at the power failure.
func undoStage(h *lab.Host) string {
	book := h.Run("cat", "/var/lib/corpus/ledger.json").Out
	running, bad := strings.Contains(book, `"running"`), strings.Contains(book, `"bad"`)
	switch {
	case running && bad:
		return "during its rollback"
	case running:
		return "converging"
	case bad:
		return "back"
	}
	return "before"
}
