package packages

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

const policy = `foo:
  Installed: 1:1.0-2
  Candidate: 2:0.5
  Version table:
     2:0.5 500
        500 file:/srv/repo ./ Packages
 *** 1:1.0-2 500
        500 file:/srv/repo ./ Packages
        100 /var/lib/dpkg/status
virt:
  Installed: (none)
  Candidate: (none)
  Version table:
`

// TestUnavailableVersionsAreLeftOut checks that versions of removed packages that only dpkg's status has are left out,
// and that installed versions are kept.
func TestUnavailableVersionsAreLeftOut(t *testing.T) {
	offers := parsePolicy(
		"removed:\n  Installed: (none)\n  Candidate: 1.0\n  Version table:\n     1.0 -1\n        100 /var/lib/dpkg/status\n" +
			"local:\n  Installed: 2.0\n  Candidate: 2.0\n  Version table:\n *** 2.0 100\n        100 /var/lib/dpkg/status\n" +
			"both:\n  Installed: (none)\n  Candidate: 3.0\n  Version table:\n     3.0 500\n" +
			"        500 http://deb.example.com stable/main amd64 Packages\n        100 /var/lib/dpkg/status\n")
	want := map[string]host.Offer{"removed": {}, "local": {Candidate: "2.0", Versions: []string{"2.0"}},
		"both": {Candidate: "3.0", Versions: []string{"3.0"}}}
	if !reflect.DeepEqual(offers, want) {
		t.Errorf("the offers are %+v, want %+v", offers, want)
	}
}

// aptWith returns a Packages for apt with scripted answers.
func aptWith(t *testing.T, recorder host.ChangeRecorder,
	answers map[string]host.Output) (*Packages, *hosttest.Scripted) {
	commands := &hosttest.Scripted{T: t, Answers: answers}
	files := rootWith(t,
		map[string]string{dpkgStatus: status, "/etc/apt/sources.list": "deb http://example.com stable main\n"}).Files
	return &Packages{recorder: recorder, manager: &apt{client{files: files, commands: commands, lockWait: time.Second}}},
		commands
}

func TestAvailableVersions(t *testing.T) {
	p, commands := aptWith(t, nil, map[string]host.Output{"apt-cache": {Stdout: policy}})
	offers, err := p.Offers(context.Background(), []string{"foo", "virt", "nothing"}, "testing")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]host.Offer{"foo": {Candidate: "2:0.5", Versions: []string{"2:0.5", "1:1.0-2"}}, "virt": {}}
	if !reflect.DeepEqual(offers, want) {
		t.Errorf("offers are %+v, want %+v", offers, want)
	}
	line := commands.Ran[0]
	if !strings.Contains(line, "Dir::Cache::pkgcache=") || !strings.Contains(line, "APT::Default-Release=testing") ||
		len(commands.Writes) != 0 {
		t.Errorf("a query must not write the cache: %s", line)
	}
}

const simulated = `Reading package lists...
Inst foo [1:1.0-2] (2:0.5 localhost [all])
Inst libc6:i386 [2.35] (2.37 Debian:12/stable [i386])
Inst bar:amd64 (1.0 localhost [amd64])
Remv dpkg [1.21.22]
Conf foo (2:0.5 localhost [all])
Purg old
`

func TestTransaction(t *testing.T) {
	recorder := &hosttest.Recorded{}
	p, commands := aptWith(t, recorder, map[string]host.Output{"apt-get --simulate": {Stdout: simulated}, "apt-get -q": {},
		"apt-mark hold": {}})
	ctx := context.Background()
	no := false
	order := host.Transaction{Packages: []host.Wanted{{Name: "foo", Version: "2:0.5"}, {Name: "bar"}}, Recommends: &no,
		Release: "testing"}
	changes, err := p.Plan(ctx, order)
	if err != nil {
		t.Fatal(err)
	}
	want := []host.PackageChange{
		{Name: "bar", New: "1.0"}, {Name: "dpkg", Old: "1.21.22"}, {Name: "foo", Old: "1:1.0-2", New: "2:0.5"},
		{Name: "libc6:i386", Old: "2.35", New: "2.37"}, {Name: "old", Old: "0.9", Purged: true},
	}
	if !reflect.DeepEqual(changes, want) {
		t.Errorf("the plan is %+v, want %+v", changes, want)
	}
	if len(commands.Writes) != 0 || len(recorder.Subjects) != 0 {
		t.Errorf("planning did %v and recorded %v", commands.Writes, recorder.Subjects)
	}
	if err := p.Do(ctx, order); err != nil {
		t.Fatal(err)
	}
	if want := []string{"package bar", "package dpkg", "package foo", "package libc6:i386",
		"package old"}; !reflect.DeepEqual(recorder.Subjects, want) {
		t.Errorf("recorded were %v, want %v", recorder.Subjects, want)
	}
	if len(commands.Writes) != 2 || len(commands.Ran) != 3 {
		t.Fatalf("ran %q, want one simulation, one transaction and the holds restored", commands.Ran)
	}
	line := commands.Writes[0]
	for _, option := range []string{"-y", "--force-confold", "--force-confdef", "DPkg::Lock::Timeout=",
		"--no-install-recommends", "-t testing",
		"--allow-change-held-packages", " install -- foo=2:0.5 bar"} {
		if !strings.Contains(line, option) {
			t.Errorf("%s lacks %s", line, option)
		}
	}
	if commands.Writes[1] != "apt-mark hold -- foo" {
		t.Errorf("%q should put foo back on hold", commands.Writes[1])
	}
}

func TestRecorderStopsTransaction(t *testing.T) {
	full := errors.New("the journal is full")
	p, commands := aptWith(t, &hosttest.Recorded{Refuse: full},
		map[string]host.Output{"apt-get --simulate": {Stdout: simulated}})
	err := p.Do(context.Background(), host.Transaction{Packages: []host.Wanted{{Name: "foo"}, {Name: "bar"}}})
	if !errors.Is(err, full) || len(commands.Writes) != 0 {
		t.Errorf("got %v after %v, want the recorder's error and no change", err, commands.Writes)
	}
}

// TestShellMetacharactersInNamesAreRefused checks names that apt would not take for the name of a package.
func TestShellMetacharactersInNamesAreRefused(t *testing.T) {
	p, commands := aptWith(t, nil, map[string]host.Output{"apt-cache": {Stdout: policy}})
	for _, name := range []string{"foo-", "foo+", "foo.*", "fo.", "-o", "Foo", "", "a b", "foo/testing"} {
		if _, err := p.Plan(context.Background(), host.Transaction{Packages: []host.Wanted{{Name: name}}}); err == nil {
			t.Errorf("%q was accepted as a package name", name)
		}
	}
	if i := slices.IndexFunc(commands.Ran, func(line string) bool { return strings.HasPrefix(line, "apt-get") }); i >= 0 {
		t.Errorf("apt-get ran: %s", commands.Ran[i])
	}
}

func TestTransactionRefusesHeldPackage(t *testing.T) {
	p, _ := aptWith(t, nil, map[string]host.Output{"apt-get --simulate": {Stdout: simulated}})
	_, err := p.Plan(context.Background(), host.Transaction{Packages: []host.Wanted{{Name: "bar"}}})
	if err == nil || !strings.Contains(err.Error(), "foo would change, and it is on hold") || diag.HintOf(err) == "" {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
}

func TestRefreshOnce(t *testing.T) {
	p, commands := aptWith(t, nil,
		map[string]host.Output{"apt-get -q update": {Stderr: "W: Failed to fetch http://u:hunter2@example.com/x  Could " +
			"not resolve\nW: other\n"}})
	ctx := context.Background()
	if p.Fresh(time.Hour) {
		t.Error("indexes that do not exist are fresh")
	}
	warnings, err := p.Refresh(ctx)
	if err != nil || len(warnings) != 1 || strings.Contains(warnings[0], "hunter2") {
		t.Errorf("got %v, %v", warnings, err)
	}
	if _, err := p.Refresh(ctx); err != nil || len(commands.Writes) != 1 {
		t.Errorf("the second refresh ran %v, %v", commands.Writes, err)
	}
	later := time.Now().Add(time.Minute)
	if err := p.manager.(*apt).files.Chtimes("/etc/apt/sources.list", later, later); err != nil {
		t.Fatal(err)
	}
	if p.Fresh(0) || p.Fresh(time.Hour) {
		t.Error("with other repositories the indexes are still fresh")
	}
}

func TestRecentIndexIsNotRefreshed(t *testing.T) {
	p, _ := aptWith(t, nil, nil)
	files := p.manager.(*apt).files
	for _, dir := range []string{"/var/lib/apt", aptLists} {
		if err := files.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if p.Fresh(time.Hour) {
		t.Error("a directory without lists, as images have it, is not an index")
	}
	if err := files.Write(aptLists+"/example.com_dists_stable_InRelease",
		host.NewFile{Content: strings.NewReader(""), UID: -1, GID: -1}); err != nil {
		t.Fatal(err)
	}
	if !p.Fresh(time.Hour) || p.Fresh(0) || p.Fresh(time.Nanosecond) {
		t.Error("new indexes should be fresh for a limit of an hour, but not for a limit of a nanosecond or of zero")
	}
}

// dpkgOf stands for a dpkg that merges its updates, unless it is broken.
type dpkgOf struct {
	*hosttest.Scripted
	files  host.Files
	broken bool
}

func (d *dpkgOf) Run(ctx context.Context, c host.Command) (host.Output, error) {
	if out, err := d.Scripted.Run(ctx, c); err != nil || d.broken || c.Argv[0] != "dpkg" {
		return out, err
	}
	return host.Output{}, d.files.Remove(dpkgUpdatesDir + "/0001")
}

// TestInterruptedDpkg has updates that dpkg has not merged, as after a power failure. A state that may change the host
// completes that change first, and a simulation does not.
func TestInterruptedDpkg(t *testing.T) {
	const completes, simulates = "dpkg --force-confold --force-confdef --configure -a", "apt-get --simulate"
	for name, step := range map[string]struct {
		in     func(context.Context) context.Context
		broken bool
		ran    []string
		fails  string
	}{
		"a dry run":         {in: func(ctx context.Context) context.Context { return ctx }, ran: []string{simulates}},
		"the check before":  {in: host.Deciding, ran: []string{completes, simulates}},
		"a state that acts": {in: host.Applying, ran: []string{completes, simulates}},
		"dpkg cannot complete it": {in: host.Applying, broken: true, ran: []string{completes},
			fails: "cannot complete that: dpkg: no space left"},
	} {
		p, commands := aptWith(t, nil, map[string]host.Output{simulates: {},
			"dpkg": {Code: 1, Stderr: "dpkg: no space left\n"}})
		a := p.manager.(*apt)
		a.commands = &dpkgOf{commands, a.files, step.broken}
		update := host.NewFile{UID: -1, GID: -1,
			Content: strings.NewReader("Package: foo\nStatus: install ok unpacked\nVersion: 2\n")}
		if err := errors.Join(a.files.Mkdir(dpkgUpdatesDir, 0o755),
			a.files.Write(dpkgUpdatesDir+"/0001", update)); err != nil {
			t.Fatal(err)
		}
		_, err := p.Plan(step.in(t.Context()), host.Transaction{Packages: []host.Wanted{{Name: "foo"}}})
		if step.fails == "" && err != nil || step.fails != "" && (err == nil || !strings.Contains(err.Error(), step.fails) ||
			!strings.Contains(diag.HintOf(err), "dpkg --configure -a")) {
			t.Errorf("%s: %v, hint %q, want %q", name, err, diag.HintOf(err), step.fails)
		}
		if len(commands.Ran) != len(step.ran) {
			t.Errorf("%s ran %q, want %q", name, commands.Ran, step.ran)
			continue
		}
		for i, line := range commands.Ran {
			if !strings.HasPrefix(strings.ReplaceAll(line, " -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=", ""),
				step.ran[i]) {
				t.Errorf("%s ran %q, want %q", name, line, step.ran[i])
			}
		}
	}
}

// TestDamagedPackagesAreInstalledAgain has a package that dpkg was killed in, so that dpkg and apt refuse to do
// anything with it. A state that may change the host installs it again first.
func TestDamagedPackagesAreInstalledAgain(t *testing.T) {
	const damaged = "Package: foo\nStatus: install reinstreq half-installed\nVersion: 2\nArchitecture: all\n"
	for _, repairs := range []bool{true, false} {
		p, commands := aptWith(t, nil, map[string]host.Output{"dpkg": {}, "apt-get -q": {Code: 100,
			Stderr: "E: no archive\n"}, "apt-get --simulate": {}})
		a := p.manager.(*apt)
		if err := a.files.Write(dpkgStatus, host.NewFile{Content: strings.NewReader(damaged), UID: -1, GID: -1}); err != nil {
			t.Fatal(err)
		}
		a.commands = &reinstalling{commands, a.files, repairs}
		v, err := p.Installed()
		if err != nil || !slices.Equal(v.Damaged(), []string{"foo"}) || v.Partial("foo") != "2" || v.Version("foo") != "" {
			t.Fatalf("damaged are %q, %v", v.Damaged(), err)
		}
		_, err = p.Plan(host.Applying(t.Context()), host.Transaction{Packages: []host.Wanted{{Name: "foo"}}})
		if _, unfinished := errors.AsType[*Unfinished](err); unfinished == repairs || repairs && err != nil {
			t.Errorf("repaired: %v, and the plan has %v", repairs, err)
		}
		if !slices.ContainsFunc(commands.Ran, func(line string) bool {
			return strings.HasPrefix(line, "apt-get -q -y") && strings.HasSuffix(line, " --reinstall install -- foo")
		}) {
			t.Errorf("ran %q", commands.Ran)
		}
	}
}

// reinstalling stands for an apt-get that installs foo again, if it can.
type reinstalling struct {
	*hosttest.Scripted
	files host.Files
	can   bool
}

func (r *reinstalling) Run(ctx context.Context, c host.Command) (host.Output, error) {
	out, err := r.Scripted.Run(ctx, c)
	if r.can && slices.Contains(c.Argv, "--reinstall") {
		const whole = "Package: foo\nStatus: install ok installed\nVersion: 2\nArchitecture: all\n"
		return host.Output{}, r.files.Write(dpkgStatus, host.NewFile{Content: strings.NewReader(whole), UID: -1, GID: -1})
	}
	return out, err
}

func TestPackagesBelowARoot(t *testing.T) {
	h := rootWith(t, map[string]string{dpkgStatus: status})
	ctx := context.Background()
	var skipped *host.Skipped
	_, planErr := h.Packages.Plan(ctx, host.Transaction{})
	_, refreshErr := h.Packages.Refresh(ctx)
	for _, err := range []error{
		h.Packages.Allowed("x"), planErr, refreshErr, h.Packages.Do(ctx, host.Transaction{}),
		h.Packages.Hold(ctx, []string{"foo"}, true),
	} {
		if !errors.As(err, &skipped) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
}

func TestLockIsWaitedFor(t *testing.T) {
	p, _ := aptWith(t, nil, nil)
	a := p.manager.(*apt)
	a.lockWait = 300 * time.Millisecond
	const lock = "/lock"
	if err := a.files.Write(lock, host.NewFile{Content: strings.NewReader(""), UID: -1, GID: -1}); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/lock"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// A lock of fcntl(2) does not conflict with locks of its own process, so another process takes it.
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("a Python process holds the lock, and Python is not installed")
	}
	holder := exec.Command("python3", "-c",
		"import fcntl,sys\nf=open(sys.argv[1],'w')\nfcntl.lockf(f,fcntl.LOCK_EX)\nprint('x',flush=True)\nsys.stdin.read()",
		path)
	release, _ := holder.StdinPipe()
	ready, _ := holder.StdoutPipe()
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Wait() }()
	if _, err := ready.Read(make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	a.files = h.Files
	err = a.waitFor(context.Background(), path)
	if err == nil || !strings.Contains(err.Error(), "python") || !strings.Contains(err.Error(), "is locked by") ||
		diag.HintOf(err) == "" {
		t.Errorf("got %v, want the holder's name", err)
	}
	a.lockWait = 10 * time.Second
	time.AfterFunc(150*time.Millisecond, func() { _ = release.Close() })
	if err := a.waitFor(context.Background(), path); err != nil {
		t.Errorf("waiting for a lock that is released: %v", err)
	}
}

func TestAptFailures(t *testing.T) {
	for _, c := range []struct{ name, stderr, stdout, cause, hint string }{
		{"unknown", "E: Unable to locate package fooo", "", "no package fooo", `did you mean "foo"?`},
		{"unknown, nothing near", "E: Unable to locate package zzzzzzzzzz", "", "no package zzzzzzzzzz", "pkgrepo.managed"},
		{"version", "E: Version '9' for 'foo' was not found", "", "no version 9 of package foo", "2:0.5, 1:1.0-2"},
		{"virtual", "E: Package 'virt' has no installation candidate",
			"Package virt is a virtual package provided by:\n  foo 1.0\n  bar 2.0\n" +
				"You should explicitly select one to install.\n", "virt cannot be installed", "foo, bar"},
		{"unmet", "E: Unable to correct problems, you have held broken packages.",
			"The following packages have unmet dependencies:\n impossible : Depends: nowhere but it is not installable\n",
			"impossible : Depends: nowhere", "on hold and may prevent it: foo, later"},
		{"interrupted", "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem. ", "",
			"interrupted", "dpkg --configure -a"},
		{"lock", "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 123 (apt-get)\n" +
			"E: Unable to acquire the dpkg frontend lock", "", "process 123 (apt-get)", "wait until it ends"},
		{"lock of old", "E: Could not get lock /var/lib/apt/lists/lock - open (11: Resource temporarily unavailable)\n", "",
			"another process", "wait until it ends"},
		{"no root", "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n" +
			"E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?", "", "may not change",
			"root"},
		{"network", "E: Failed to fetch http://me:pw@x.example.com/a.deb  Temporary failure resolving 'x.example.com'\n", "",
			"://<secret>@x.example.com/a.deb", "network"},
		{"space", "E: You don't have enough free space in /var/cache/apt/archives/.", "",
			"little space in /var/cache/apt/archives/", "apt-get clean"},
		{"space while unpacking", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n",
			"dpkg: error processing archive /var/cache/apt/archives/foo_1_all.deb (--unpack):\r\n cannot copy extracted data " +
				"for './usr/x' to '/usr/x.dpkg-new': failed to write (No space left on device)\r\n",
			"archive /var/cache/apt/archives/foo_1_all.deb (--unpack): cannot copy extracted data for './usr/x'",
			"make room there; `apt-get clean`"},
		{"space while downloading", "E: Failed to fetch http://x/a.deb  Error writing to file - write (28: No space left " +
			"on device) [IP: 192.0.2.1 80]\n", "", "No space left on device", "make room"},
		{"read-only", "E: Could not open lock file /var/lib/dpkg/lock - open (30: Read-only file system)\n", "",
			"Read-only file system", "dmesg"},
		{"memory of a script", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n", "Setting up foo (1) ...\n" +
			"sh: fork: Cannot allocate memory\ndpkg: error processing package foo (--configure):\n installed foo package " +
			"post-installation script subprocess returned error exit status 2\n", "Cannot allocate memory", "free -m"},
		{"dpkg killed", "debconf: delaying package configuration, since apt-utils is not installed\n" +
			"E: Sub-process /usr/bin/dpkg exited unexpectedly\n", "", ": dpkg was ended by a signal", "journalctl -k"},
		{"method killed", "E: Method http has died unexpectedly!\nE: Sub-process http received signal 9.\n", "",
			": http was ended by ", "journalctl -k"},
		{"dpkg-deb killed", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n",
			"dpkg: error processing archive /x.deb (--unpack):\r\n dpkg-deb --fsys-tarfile subprocess was killed by signal " +
				"(Killed)\r\n", ": dpkg-deb --fsys-tarfile was ended by SIGKILL", "journalctl -k"},
		{"script killed", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n",
			"dpkg: error processing package foo (--configure):\n installed foo package post-installation script subprocess " +
				"was killed by signal (Killed)\n", "post-installation script was ended by SIGKILL", "what the script does"},
		{"crash", "E: Sub-process /usr/bin/dpkg received a segmentation fault.\n", "", "dpkg was ended by SIGSEGV",
			"see `journalctl` for"},
		{"mirror drops the connection", "E: Failed to fetch http://x/a.deb  Error reading from server. Remote end closed " +
			"connection [IP: 192.0.2.1 80]\n", "", "Remote end closed connection", "reaches its package repositories"},
		{"unsigned", "E: There were unauthenticated packages and -y was used without --allow-unauthenticated", "",
			"unauthenticated", "skip_verify"},
		{"script", "E: Sub-process /usr/bin/dpkg returned an error code (1)",
			"dpkg: error processing package broken (--configure):\r\n" +
				" installed broken package post-installation script subprocess returned error exit status 3\n",
			"package broken (--configure): installed broken package post-installation script", "/var/log/apt/term.log"},
		{"removal script", "dpkg: error processing package sudo (--purge):\n installed sudo package pre-removal script " +
			"subprocess returned error exit status 1\nE: Sub-process /usr/bin/dpkg returned an error code (1)",
			"Removing less (1) ...\nPurged.\nRemoving sudo (1.9) ...\nYou have asked\nRefusing to remove sudo.\n" +
				"Removing vim (2) ...\nGone.\n",
			"exit status 1: You have asked Refusing to remove sudo.", "/var/log/apt/term.log"},
		{"warning of a script that succeeds", "E: Sub-process /usr/bin/dpkg returned an error code (1)\n",
			"Setting up bar (1) ...\nsysctl: setting key x: Read-only file system\nSetting up foo (1) ...\nNo.\n" +
				"dpkg: error processing package foo (--configure):\n installed foo package post-installation script " +
				"subprocess returned error exit status 1\n", "exit status 1: No.", "term.log"},
		{"remarks", "E: something\nE: Can not write log (Is /dev/pts mounted?) - posix_openpt (28: No space left on " +
			"device)\ndebconf: delaying package configuration, since apt-utils is not installed\n", "", ": something", ""},
		{"only a remark", "debconf: falling back to frontend: Teletype\n", "", "code 100", ""},
		{"other", "W: x\nE: something\nE: else\n", "", "something; else", ""},
		{"silent", "", "", "code 100", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := aptWith(t, nil, map[string]host.Output{
				"apt-get": {Code: 100, Stderr: c.stderr, Stdout: c.stdout}, "apt-cache -q policy": {Stdout: policy},
				"apt-cache pkgnames": {Stdout: "foo\nbar\n"},
			})
			_, err := p.Plan(context.Background(), host.Transaction{Packages: []host.Wanted{{Name: "foo"}}})
			if err == nil || !strings.Contains(err.Error(), c.cause) || !strings.Contains(diag.HintOf(err), c.hint) {
				t.Errorf("got %v, hint %q, want %q, hint %q", err, diag.HintOf(err), c.cause, c.hint)
			}
		})
	}
}

// TestKilledAptIsNamed has signals end apt-get after it printed a harmless line.
func TestKilledAptIsNamed(t *testing.T) {
	for code, want := range map[int]string{137: "SIGKILL", 143: "SIGTERM", 139: "SIGSEGV"} {
		out := host.Output{Code: code,
			Stderr: "debconf: delaying package configuration, since apt-utils is not installed\n"}
		p, _ := aptWith(t, nil, map[string]host.Output{"apt-get": out})
		if got := complaints(out); got != "it was ended by "+want {
			t.Errorf("an interrupted change that is cut again has the reason %q", got)
		}
		_, err := p.Plan(t.Context(), host.Transaction{Packages: []host.Wanted{{Name: "foo"}}})
		var killed *Killed
		if !errors.As(err, &killed) || killed.Script || !strings.HasSuffix(err.Error(), ": apt was ended by "+want) ||
			!strings.Contains(diag.HintOf(err), "journalctl") {
			t.Errorf("code %d: %v, hint %q", code, err, diag.HintOf(err))
		}
	}
}

func TestCached(t *testing.T) {
	h := rootWith(t, map[string]string{"/usr/bin/apt-get": "", aptArchives + "/foo_1%3a1.0-2_all.deb": "",
		aptArchives + "/lock": "", aptArchives + "/odd.deb": ""})
	packages, err := h.Packages.Cached()
	if want := []host.Package{{Name: "foo", Version: "1:1.0-2", Arch: "all"}}; err != nil ||
		!reflect.DeepEqual(packages, want) {
		t.Errorf("got %+v, %v, want %+v", packages, err, want)
	}
}

func TestDescribe(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("package files are made with dpkg-deb, which is not installed")
	}
	for _, compression := range []string{"none", "gzip", "xz", "zstd"} {
		file := buildDeb(t, compression)
		p, err := describeDeb(bytes.NewReader(file))
		if want := (host.Package{Name: "tiny", Version: "1:2.0-3", Arch: "all", State: host.InstalledPackage}); err != nil ||
			!reflect.DeepEqual(p, want) {
			t.Errorf("%s: got %+v, %v", compression, p, err)
		}
		// The rest of the package file may be missing.
		if _, err := describeDeb(io.LimitReader(bytes.NewReader(file),
			int64(bytes.LastIndex(file, []byte("data.tar"))))); err != nil {
			t.Errorf("%s: reading the start of a package: %v", compression, err)
		}
	}
	for _, bad := range []string{"", "!<arch>\n", "no package at all, but some text",
		"!<arch>\ndebian-binary   1342943816  0     0     100644  99999999  `\n2.0\n"} {
		if _, err := describeDeb(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was accepted as a package", bad)
		}
	}
}

func buildDeb(t testing.TB, compression string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/p/DEBIAN", 0o755); err != nil {
		t.Fatal(err)
	}
	control := "Package: tiny\nVersion: 1:2.0-3\nArchitecture: all\nMaintainer: A <a@example.com>\nDescription: x\n"
	if err := os.WriteFile(dir+"/p/DEBIAN/control", []byte(control), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("dpkg-deb", "--uniform-compression", "-Z"+compression, "--root-owner-group", "-b", dir+"/p",
		dir+"/tiny.deb")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(dir + "/tiny.deb")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzDescribe(f *testing.F) {
	if _, err := exec.LookPath("dpkg-deb"); err == nil {
		for _, compression := range []string{"none", "gzip", "xz", "zstd"} {
			f.Add(buildDeb(f, compression))
		}
	}
	f.Add([]byte("!<arch>\ncontrol.tar     1342943816  0     0     100644  4         `\nabcd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := describeDeb(bytes.NewReader(data)); err == nil && (p.Name == "" || p.Version == "") {
			t.Errorf("a package without name or version: %+v", p)
		}
	})
}

func FuzzAptAnswers(f *testing.F) {
	f.Add(policy)
	f.Add(simulated)
	f.Add("Inst\nInst a (\nPurg \n")
	f.Fuzz(func(_ *testing.T, text string) {
		parsePolicy(text)
		parsePlan(text, host.NewInventory("amd64", nil))
	})
}
