//go:build hosts

package pkg_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/pkg"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// thisMachine opens the machine that the test runs on. It skips the test unless the machine is declared
// disposable.
func thisMachine(t *testing.T) *host.Host {
	t.Helper()
	if os.Getenv("CORPUS_THROWAWAY_HOST") == "" {
		t.Skip("this changes the machine that it runs on; set CORPUS_THROWAWAY_HOST=1 on a disposable one")
	}
	h, err := machine.New(host.Options{LockWait: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func sh(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", line)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository is a directory of packages from which apt installs.
type repository struct{ dir string }

// add builds a package. control has additional fields, and files its content, including maintainer scripts such
// as DEBIAN/postinst.
func (r repository) add(t *testing.T, name, version, control string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: A <a@example.com>\nDescription: "+
		"a package\n%s", name, version, control)
	all := map[string]string{"DEBIAN/control": text, "usr/share/" + name + "/version": version}
	for path, content := range files {
		all[path] = content
	}
	for path, content := range all {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(dir+"/"+path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, "chmod 755 "+dir+" && dpkg-deb -Znone --root-owner-group -b "+dir+" "+r.dir)
}

// index updates the package index.
func (r repository) index(t *testing.T) {
	t.Helper()
	sh(t, `cd `+r.dir+
		`; rm -f Packages; for f in *.deb; do dpkg-deb -f $f; echo "Filename: ./$f"; echo "Size: $(stat -c %s $f)"; echo `+
		`"SHA256: $(sha256sum $f | cut -d" " -f1)"; echo; done > new; mv new Packages`)
}

// newRepository creates a repository, makes it the only one of apt, and removes its packages at the end of the
// test.
func newRepository(t *testing.T) repository {
	t.Helper()
	thisMachine(t)
	dir, err := os.MkdirTemp("/var/tmp", "repository")
	if err != nil {
		t.Fatal(err)
	}
	r := repository{dir}
	sh(t, "chmod 755 "+dir+
		"; mkdir -p /var/tmp/sources; mv /etc/apt/sources.list.d/* /etc/apt/sources.list /var/tmp/sources/ "+
		"2>/dev/null || true")
	sh(t, "echo 'deb [trusted=yes] copy:"+dir+" ./' > /etc/apt/sources.list; rm -rf /var/lib/apt/lists/*")
	t.Cleanup(func() {
		_ = exec.Command("sh", "-c",
			"apt-mark unhold 'corpus-*'; dpkg -l 'corpus-*' | awk '/^[a-z]/{print $2}' | xargs -r dpkg --purge --force-all; "+
				"dpkg --configure -a; rm -rf "+dir).Run()
		_ = exec.Command("sh", "-c",
			"rm /etc/apt/sources.list; for f in /var/tmp/sources/*; do case $f in *.list) mv $f "+
				"/etc/apt/sources.list.d/;; esac; done").Run()
	})
	return r
}

type outcome struct {
	diff   module.Diff
	report module.Report
	err    error
}

func resource(t *testing.T, function string, pairs ...any) module.Resource {
	t.Helper()
	r := pkg.Functions(nil)[function]()
	call := module.Call{Function: "pkg." + function, Arguments: value.NewMap(pairs...), At: func(string) diag.Pos {
		return diag.Pos{}
	}}
	if warnings, problems := module.Decode(r, call); len(warnings) > 0 || len(problems) > 0 {
		t.Fatal(warnings, problems)
	}
	return r
}

// apply checks a state, applies it and checks it again on a new host.Host. A check must not write to apt's
// files or the database.
func apply(t *testing.T, h *host.Host, function string, pairs ...any) outcome {
	t.Helper()
	const state = "find /var/lib/dpkg /var/lib/apt /var/cache/apt /etc/apt -type f -printf '%p %s %T@\n' | " +
		"sort | sha256sum"
	r, before := resource(t, function, pairs...), sh(t, state)
	d, err := r.Check(context.Background(), h)
	if after := sh(t, state); after != before {
		t.Errorf("the check of %s %v wrote something", function, pairs)
	}
	if err != nil || d.Empty() {
		return outcome{diff: d, err: err}
	}
	report, err := r.Apply(context.Background(), h, d)
	if err != nil {
		return outcome{d, report, err}
	}
	if !d.Unknown && !value.Equal(d.Changes, report.Changes) {
		t.Errorf("%s predicted %s and did %s", function, value.Repr(d.Changes), value.Repr(report.Changes))
	}
	if again, err := resource(t, function, pairs...).Check(context.Background(), h); err != nil || !again.Empty() {
		t.Errorf("%s %v still finds something to do: %+v, %v", function, pairs, again, err)
	}
	return outcome{d, report, nil}
}

func expect(t *testing.T, o outcome, changes *value.Map) {
	t.Helper()
	if o.err != nil || !value.Equal(o.report.Changes, changes) {
		t.Errorf("got %s, %v, hint %q; want %s", value.Repr(o.report.Changes), o.err, diag.HintOf(o.err), value.Repr(changes))
	}
}

func change(old, new string) *value.Map { return value.NewMap("old", old, "new", new) }

func list(items ...any) *value.List { return value.NewList(items...) }

func TestAptInstalls(t *testing.T) {
	r := newRepository(t)
	for _, version := range []string{"1.0", "1.1", "1.2~rc1", "2:0.5"} {
		r.add(t, "corpus-foo", version, "", nil)
	}
	r.add(t, "corpus-bar", "1.0", "Depends: corpus-foo (>= 1.0)\nProvides: corpus-virtual\n", nil)
	conf := map[string]string{"etc/corpus.conf": "a", "DEBIAN/conffiles": "/etc/corpus.conf\n"}
	r.add(t, "corpus-conf", "1.0", "", conf)
	r.index(t)

	h := thisMachine(t)
	// The indexes were never fetched, so the check must report unknown changes.
	o := apply(t, h, "installed", "name", "corpus-bar")
	expect(t, o, value.NewMap("corpus-bar", change("", "1.0"), "corpus-foo", change("", "2:0.5")))
	if !o.diff.Unknown {
		t.Error("without fetched indexes the changes are not unknown")
	}
	h = thisMachine(t)
	expect(t, apply(t, h, "installed", "name", "corpus-foo", "version", "1.0"),
		value.NewMap("corpus-foo", change("2:0.5", "1.0")))
	expect(t, apply(t, h, "installed", "name", "x", "pkgs", list(value.NewMap("corpus-foo", ">=1.1,<1.2"))),
		value.NewMap("corpus-foo", change("1.0", "1.2~rc1")))
	expect(t, apply(t, h, "installed", "name", "corpus-virtual"), nil)
	expect(t, apply(t, h, "installed", "name", "corpus-foo", "hold", true),
		value.NewMap("corpus-foo", change("install", "hold")))
	expect(t, apply(t, h, "installed", "name", "corpus-foo", "version", "1.1"),
		value.NewMap("corpus-foo", change("1.2~rc1", "1.1")))
	if held := sh(t, "apt-mark showhold"); held != "corpus-foo" {
		t.Errorf("on hold is %q, want corpus-foo", held)
	}
	if o := apply(t, h, "uptodate", "name", "x"); o.err != nil || !o.diff.Empty() {
		t.Errorf("a package on hold is upgraded: %+v", o)
	}
	expect(t, apply(t, h, "unheld", "name", "corpus-foo"), value.NewMap("corpus-foo", value.NewMap(
		"name", "corpus-foo", "changes", change("hold", "install"), "result", true, "comment",
		"package corpus-foo is no longer on hold")))
	expect(t, apply(t, h, "latest", "name", "corpus-foo"), value.NewMap("corpus-foo", change("1.1", "2:0.5")))
	expect(t, apply(t, h, "installed", "name", "corpus-conf"), value.NewMap("corpus-conf", change("", "1.0")))
	expect(t, apply(t, h, "removed", "name", "corpus-conf"), value.NewMap("corpus-conf", change("1.0", "")))
	expect(t, apply(t, h, "purged", "name", "x", "pkgs", list("corpus-conf", "corpus-foo")), value.NewMap(
		"removed", value.NewMap("corpus-conf", change("1.0", "")),
		"installed", value.NewMap("corpus-bar", change("1.0", ""), "corpus-foo", change("2:0.5", ""))))
}

func TestAptKeepsConfiguration(t *testing.T) {
	r := newRepository(t)
	for version, text := range map[string]string{"1.0": "a=1\n", "1.1": "a=2\n"} {
		r.add(t, "corpus-conf", version,
			"", map[string]string{"etc/corpus.conf": text, "DEBIAN/conffiles": "/etc/corpus.conf\n"})
	}
	r.index(t)
	h := thisMachine(t)
	apply(t, h, "installed", "name", "corpus-conf", "version", "1.0")
	if err := os.WriteFile("/etc/corpus.conf", []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, apply(t, h, "latest", "name", "corpus-conf"), value.NewMap("corpus-conf", change("1.0", "1.1")))
	if text := sh(t, "cat /etc/corpus.conf"); text != "mine" {
		t.Errorf("the file that a user changed is %q", text)
	}
}

func TestAptRefreshesOnceIfNeeded(t *testing.T) {
	r := newRepository(t)
	r.add(t, "corpus-foo", "1.0", "", nil)
	r.index(t)
	h := thisMachine(t)
	apply(t, h, "installed", "name", "corpus-foo")
	r.add(t, "corpus-new", "1.0", "", nil)
	r.index(t)
	if o := apply(t, h, "installed", "name", "corpus-new"); o.err == nil {
		t.Error("the same run refreshed twice")
	}
	h = thisMachine(t)
	fetched := sh(t, "stat -c %Y%Z /var/lib/apt/lists")
	if o := apply(t, h, "installed", "name", "corpus-foo", "refresh", true); o.err != nil || !o.diff.Empty() ||
		sh(t, "stat -c %Y%Z /var/lib/apt/lists") != fetched {
		t.Errorf("an installed package causes a refresh: %+v", o)
	}
	expect(t, apply(t, h, "installed", "name", "corpus-new"), value.NewMap("corpus-new", change("", "1.0")))
}

func TestAptSources(t *testing.T) {
	r := newRepository(t)
	r.add(t, "corpus-foo", "1.0", "", nil)
	r.add(t, "corpus-foo", "1.1", "", nil)
	r.add(t, "corpus-bar", "1.0", "Depends: corpus-foo\n", nil)
	r.index(t)
	h := thisMachine(t)
	bar, foo := r.dir+"/corpus-bar_1.0_all.deb", r.dir+"/corpus-foo_1.0_all.deb"
	expect(t, apply(t, h, "installed", "name", "x", "sources", list(value.NewMap("corpus-bar", bar))),
		value.NewMap("corpus-bar", change("", "1.0"), "corpus-foo", change("", "1.1")))
	expect(t, apply(t, h, "installed", "name", "x", "sources", list(value.NewMap("corpus-foo", foo))),
		value.NewMap("corpus-foo", change("1.1", "1.0")))
	o := apply(t, h, "installed", "name", "x", "sources", list(value.NewMap("corpus-foo", bar)))
	if o.err == nil || !strings.Contains(o.err.Error(), "is package corpus-bar") {
		t.Errorf("got %v", o.err)
	}
}

func fails(t *testing.T, o outcome, cause, hint string) {
	t.Helper()
	if o.err == nil || !strings.Contains(o.err.Error(), cause) || !strings.Contains(diag.HintOf(o.err), hint) {
		t.Errorf("got %v, hint %q; want %q, hint %q", o.err, diag.HintOf(o.err), cause, hint)
	}
}

func TestAptFails(t *testing.T) {
	r := newRepository(t)
	r.add(t, "corpus-foo", "1.0", "", nil)
	r.add(t, "corpus-impossible", "1.0", "Depends: corpus-nowhere\n", nil)
	r.add(t, "corpus-broken", "1.0", "", map[string]string{"DEBIAN/postinst": "#!/bin/sh\nexit 3\n"})
	r.index(t)
	h := thisMachine(t)
	fails(t, apply(t, h, "installed", "name", "corpus-fooo"), "no package corpus-fooo", `did you mean "corpus-foo"?`)
	fails(t, apply(t, h, "installed", "name", "corpus-foo", "version", "9"), "no version 9", "1.0")
	fails(t, apply(t, h, "installed", "name", "corpus-impossible"),
		"corpus-impossible : Depends: corpus-nowhere", "repositories")
	o := apply(t, h, "installed", "name", "x", "pkgs", list("corpus-foo", "corpus-broken"))
	fails(t, o, "post-installation script subprocess returned error exit status 3", "dpkg --configure -a")
	if !value.Equal(o.report.Changes, value.NewMap("corpus-foo", change("", "1.0"))) {
		t.Errorf("the changes are %s", value.Repr(o.report.Changes))
	}
}

func TestAptIsLocked(t *testing.T) {
	r := newRepository(t)
	r.add(t, "corpus-foo", "1.0", "", nil)
	r.index(t)
	holder := exec.Command("python3", "-c",
		"import fcntl,time\nf=open('/var/lib/dpkg/lock-frontend','w')\nfcntl.lockf(f,fcntl.LOCK_EX)\n"+
			"print('x',flush=True)\ntime.sleep(60)")
	ready, _ := holder.StdoutPipe()
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Wait() }()
	if _, err := ready.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	fails(t, apply(t, thisMachine(t), "installed", "name", "corpus-foo"),
		fmt.Sprintf("locked by python3 (process %d)", holder.Process.Pid), "wait until it ends")
	time.AfterFunc(500*time.Millisecond, func() { _ = holder.Process.Kill() })
	if o := apply(t, thisMachine(t), "installed", "name", "corpus-foo"); o.err != nil {
		t.Errorf("a lock that is released: %v", o.err)
	}
}

func TestAptWithoutNetwork(t *testing.T) {
	newRepository(t)
	sh(t, "echo 'deb [trusted=yes] http://user:secret@127.0.0.1:1/debian ./' > /etc/apt/sources.list")
	o := apply(t, thisMachine(t), "installed", "name", "corpus-foo")
	text := fmt.Sprint(o.err, diag.HintOf(o.err), o.report.Warnings)
	if o.err == nil || !strings.Contains(text, "Failed to fetch") || strings.Contains(text, "secret") {
		t.Errorf("got %v, hint %q, warnings %q", o.err, diag.HintOf(o.err), o.report.Warnings)
	}
}

func TestInterruptedDpkg(t *testing.T) {
	r := newRepository(t)
	r.add(t, "corpus-slow", "1.0",
		"",
		map[string]string{"DEBIAN/postinst": "#!/bin/sh\n[ \"$1\" = configure ] && [ ! -e /run/corpus-go ] && kill -9 " +
			"$PPID\nexit 0\n"})
	r.add(t, "corpus-foo", "1.0", "", nil)
	r.index(t)
	h := thisMachine(t)
	o := apply(t, h, "installed", "name", "corpus-slow")
	if o.err == nil {
		t.Fatal("dpkg was killed, and the state has no error")
	}
	fails(t, o, "dpkg", "dpkg --configure -a")
	o = apply(t, thisMachine(t), "installed", "name", "corpus-foo")
	if o.err != nil { // apt may have been able to continue
		fails(t, o, "interrupted", "dpkg --configure -a")
	}
	sh(t, "touch /run/corpus-go; dpkg --configure -a")
	if o := apply(t, thisMachine(t), "installed", "name", "corpus-foo"); o.err != nil {
		t.Errorf("after dpkg --configure: %v", o.err)
	}
}

// TestAptBatch installs the packages of three states in one transaction of apt. The script of one fails: the
// others report their packages, and the failure is that of its state. A state whose package does not exist is left
// out.
func TestAptBatch(t *testing.T) {
	r := newRepository(t)
	r.add(t, "corpus-lib", "1.0", "", nil)
	r.add(t, "corpus-foo", "1.0", "Depends: corpus-lib\n", nil)
	r.add(t, "corpus-bar", "1.0", "", nil)
	r.add(t, "corpus-broken", "1.0", "", map[string]string{"DEBIAN/postinst": "#!/bin/sh\nexit 3\n"})
	r.index(t)
	h := thisMachine(t)
	var states []module.Resource
	for _, name := range []string{"corpus-foo", "corpus-broken", "corpus-bar", "corpus-none"} {
		states = append(states, resource(t, "installed", "name", name))
	}
	transactions := func() int {
		log, _ := os.ReadFile("/var/log/apt/history.log") // none before the first
		return strings.Count(string(log), "\nCommandline: ")
	}
	before := transactions()
	reports := states[0].(module.Batcher).Batch(t.Context(), h, slices.Values(states[1:]))
	if len(reports) != len(states)-1 {
		t.Fatalf("reports: %+v", reports)
	}
	for n, want := range []*value.Map{
		value.NewMap("corpus-foo", change("", "1.0"), "corpus-lib", change("", "1.0")), value.NewMap(),
		value.NewMap("corpus-bar", change("", "1.0")),
	} {
		if !value.Equal(reports[n].Changes, want) {
			t.Errorf("state %d: %s, want %s", n, value.Repr(reports[n].Changes), value.Repr(want))
		}
		d, err := states[n].Check(host.Deciding(t.Context()), h)
		if done := want.Len() > 0; err != nil || d.Empty() != done {
			t.Errorf("state %d has something left to do: %t, %v", n, !d.Empty(), err)
		}
	}
	if after := transactions(); after != before+1 {
		t.Errorf("apt made %d transactions", after-before)
	}
	_, err := states[1].Apply(t.Context(), h, module.Diff{})
	fails(t, outcome{err: err}, "post-installation script subprocess returned error exit status 3", "dpkg --configure -a")
}
