package remote_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/packaging/remote"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// tiny is an agent that does nothing but write down its runs.
const tiny = `package main

import (
	"os"
	"strings"
)

func main() {
	root := os.Getenv("FAR")
	switch os.Args[1] {
	case "config":
		data, _ := os.ReadFile(os.Args[4])
		if strings.Contains(string(data), "mistake") {
			os.Exit(2)
		}
	case "deploy":
		given, err := os.ReadFile(os.Args[len(os.Args)-1])
		if err != nil && len(os.Args) > 2 {
			os.Exit(2)
		}
		_ = os.MkdirAll(root+"/var/lib/corpus/trust", 0o755)
		_ = os.WriteFile(root+"/var/lib/corpus/trust/root.json", given, 0o644)
		println("converged")
		if code, err := os.ReadFile(root + "/../code"); err == nil {
			os.Exit(int(code[0] - '0'))
		}
	}
}
`

// tinyAgent builds tiny as the program of hosts, once for all tests.
var tinyAgent = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "tiny-agent-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	main := filepath.Join(dir, "cmd", "corpus-agent", "main.go")
	err = errors.Join(os.MkdirAll(filepath.Dir(main), 0o755), os.WriteFile(main, []byte(tiny), 0o644),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module github.com/corpus-agent/corpus-agent\n\ngo 1.26\n"), 0o644))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "agent",
		"./cmd/corpus-agent")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.New(string(out))
	}
	return os.ReadFile(filepath.Join(dir, "agent"))
})

// far is a host below a directory. A program in the place of ssh runs commands there: with the paths of the scripts
// below the root, and with programs of the test in the place of those that change a machine.
type far struct {
	t    *testing.T
	dir  string
	root string
	host remote.Host
	out  bytes.Buffer
	want remote.Wanted
}

// programs are those on the host. cut is the number of bytes after which ssh loses its connection, and fatal the number
// of the call of sync that kills its script, as a power failure does.
var programs = map[string]string{
	"here/ssh": `while [ "$1" = -o ]; do shift 2; done
[ "$1" = admin@n1 ] || exit 255
echo "welcome to $1"
PATH=DIR/bin:$PATH FAR=DIR/root
export PATH FAR
script=$(printf %s "$2" | sed "s#^r=\$#r=DIR/root#")
case $2 in
*'cat >>'*) ;;
*) exec sh -c "$script" ;;
esac
[ -s DIR/cut ] || exec sh -c "$script"
head -c "$(cat DIR/cut)" | sh -c "$script"
exit 255`,
	"bin/id":         `echo 1000`,
	"bin/sudo":       `[ ! -e DIR/sudo ] || exit 1; shift; exec "$@"`,
	"bin/hostname":   `printf %s "$1" >DIR/hostname`,
	"bin/dpkg":       `cp DIR/packaged DIR/root/usr/bin/corpus-agent; echo ii >DIR/status`,
	"bin/dpkg-query": `cat DIR/status 2>/dev/null`,
	"bin/uname":      `if [ -e DIR/uname ] && [ "$1" = -m ]; then cat DIR/uname; else PATH=${PATH#*:} exec uname "$@"; fi`,
	"bin/date":       `if [ -e DIR/date ]; then cat DIR/date; else PATH=${PATH#*:} exec date "$@"; fi`,
	"bin/df":         `echo Filesystem; echo "disk 9 9 $(cat DIR/df 2>/dev/null || echo 9000000) 1% /"`,
	"bin/systemctl": `case "$*" in
is-*) cat DIR/timer-$1 2>/dev/null || { echo no; exit 1; } ;;
*enable*) echo enabled >DIR/timer-is-enabled ;;
start*) echo active >DIR/timer-is-active ;;
esac`,
	"bin/sleep": `rm DIR/root/var/lib/corpus-init/root; echo 0 >DIR/code`,
	"bin/sync": `n=$(($(cat DIR/syncs 2>/dev/null || echo 0) + 1))
echo $n >DIR/syncs
[ "$n" != "$(cat DIR/fatal 2>/dev/null)" ] || kill -9 $PPID`,
}

func newFar(t *testing.T) *far {
	t.Helper()
	f := &far{t: t, dir: t.TempDir()}
	f.root = filepath.Join(f.dir, "root")
	for name, text := range programs {
		f.write(name, "#!/bin/sh\n"+strings.ReplaceAll(text, "DIR", f.dir)+"\n", 0o755)
	}
	for _, dir := range []string{"usr/bin", "var/lib", "run/systemd/system", "etc/cloud/cloud.cfg.d"} {
		if err := os.MkdirAll(filepath.Join(f.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.write("root/etc/os-release", "ID=debian\n", 0o644)
	f.write("root/etc/hostname", "bare\n", 0o644)
	f.write("root/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 bare\n", 0o644)
	t.Setenv("PATH", f.dir+"/here:"+os.Getenv("PATH"))
	f.host = remote.Host{Destination: "admin@n1", Err: &f.out}
	agent, err := tinyAgent()
	if err != nil {
		t.Fatal(err)
	}
	f.write("agent", string(agent), 0o755)
	f.want = remote.Wanted{Hostname: "cloud-prod-eu1-n1", NewConfig: []byte("# all settings\nstore: https://store\n"),
		Settings: []remote.Setting{{Name: "store", Value: "https://store"}, {Name: "top", Value: "merge"}},
		Root:     []byte("the root\n"), Environment: []byte("AWS_ACCESS_KEY_ID='it is secret'\n")}
	if f.want.Agent, err = remote.ReadAgent(filepath.Join(f.dir, "agent")); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *far) write(name, text string, mode fs.FileMode) {
	f.t.Helper()
	file := filepath.Join(f.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), mode)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *far) read(name string) string {
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.t.Fatal(err)
	}
	return string(data)
}

// plan looks at the host.
func (f *far) plan() (*remote.Plan, error) {
	facts, err := f.host.Examine(f.t.Context(), f.want.Agent.Digest)
	if err != nil {
		return nil, err
	}
	return remote.NewPlan(f.want, facts)
}

// install does what a command does after the user has confirmed it.
func (f *far) install() error {
	plan, err := f.plan()
	if err != nil {
		return err
	}
	return f.host.Install(f.t.Context(), plan, nil)
}

// complete fails the test unless the host has everything.
func (f *far) complete() {
	f.t.Helper()
	for name, want := range map[string]string{
		"root/usr/bin/corpus-agent": string(f.want.Agent.Data), "hostname": "cloud-prod-eu1-n1",
		"root/etc/hostname": "cloud-prod-eu1-n1\n", "root/etc/hosts": "127.0.0.1 localhost\n127.0.1.1\tcloud-prod-eu1-n1\n",
		"root/etc/corpus/agent.yaml":                        "# all settings\nstore: https://store\ntop: \"merge\"\n",
		"root/etc/corpus/environment":                       string(f.want.Environment),
		"root/etc/cloud/cloud.cfg.d/99-corpus-hostname.cfg": "preserve_hostname: true\n",
		"timer-is-active":                                   "active\n",
		"timer-is-enabled":                                  "enabled\n",
		"root/var/lib/corpus-init/root":                     "the root\n",
	} {
		if got := f.read(name); got != want {
			f.t.Errorf("%s is %.80q, want %.80q", name, got, want)
		}
	}
	for name, mode := range map[string]fs.FileMode{"usr/bin/corpus-agent": 0o755, "etc/corpus": 0o755,
		"etc/hostname":          0o644,
		"etc/corpus/agent.yaml": 0o640, "etc/corpus/environment": 0o600, "etc/systemd/system/corpus-agent.timer": 0o644,
		"etc/systemd/system-generators/corpus-agent-generator": 0o755, "var/lib/corpus-init": 0o700} {
		if info, err := os.Stat(filepath.Join(f.root, name)); err != nil || info.Mode().Perm() != mode {
			f.t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	err := filepath.WalkDir(f.root, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(filepath.Base(path), ".corpus-init") {
			f.t.Errorf("%s stays", path)
		}
		return err
	})
	if err != nil {
		f.t.Error(err)
	}
}

func TestHostIsSetUp(t *testing.T) {
	f := newFar(t)
	plan, err := f.plan()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(plan.Changes); !strings.Contains(got, "{hostname bare cloud-prod-eu1-n1}") ||
		strings.Contains(got, "secret") {
		t.Errorf("the changes are %s", got)
	}
	if f.read("root/usr/bin/corpus-agent") != "" || f.read("hostname") != "" {
		t.Error("looking at the host changed it")
	}
	if err := f.host.Install(t.Context(), plan, nil); err != nil {
		t.Fatalf("%v\n%s", err, f.out.String())
	}
	f.complete()
	if code, err := f.host.Run(t.Context()); code != 0 || err != nil || !strings.Contains(f.out.String(), "converged") {
		t.Errorf("the run: %d, %v\n%s", code, err, f.out.String())
	}
	if f.read("root/var/lib/corpus/trust/root.json") != "the root\n" || f.read("root/var/lib/corpus-init/root") != "" {
		t.Error("the run did not get the root of trust, or its copy stays")
	}
	if plan, err = f.plan(); err != nil || len(plan.Changes) > 0 || !plan.Introduced() {
		t.Errorf("a host that has everything: %v, %v", plan.Changes, err)
	}
	f.write("code", "7", 0o644)
	if code, err := f.host.Run(t.Context()); code != 7 || err != nil {
		t.Errorf("a run that fails: %d, %v", code, err)
	}
}

// TestCutConnectionsAreContinued cuts the copy of the agent several times, and kills the script at each sync.
func TestCutConnectionsAreContinued(t *testing.T) {
	artifacttest.Long(t)
	f := newFar(t)
	size := len(f.want.Agent.Data)
	for i, bytes := range []int{1, size / 3, size / 3, 100} {
		f.write("cut", strconv.Itoa(bytes), 0o644)
		var ended *remote.Exit
		if err := f.install(); !errors.As(err, &ended) || !strings.Contains(diag.HintOf(err), "it continues") {
			t.Fatalf("cut %d: %v, hint %s", i, err, diag.HintOf(err))
		}
	}
	part := filepath.Join(f.root, "var/lib/corpus-init/agent-"+f.want.Agent.Digest)
	if info, err := os.Stat(part); err != nil || info.Size() != int64(1+2*(size/3)+100) {
		t.Errorf("the copy that was cut: %v, %v", info, err)
	}
	f.write("cut", "", 0o644)
	cuts := 0
	for ; cuts < 60; cuts++ {
		f.write("syncs", "0", 0o644)
		f.write("fatal", strconv.Itoa(2*(cuts/4)+cuts%2+1), 0o644)
		err := f.install()
		for name, whole := range map[string]string{"root/usr/bin/corpus-agent": string(f.want.Agent.Data),
			"root/etc/corpus/agent.yaml":  "# all settings\nstore: https://store\ntop: \"merge\"\n",
			"root/etc/corpus/environment": string(f.want.Environment)} {
			if got := f.read(name); got != "" && got != whole {
				t.Fatalf("after cut %d %s is %.80q", cuts, name, got)
			}
		}
		if err == nil {
			break
		}
	}
	if cuts < 9 {
		t.Errorf("the scripts were killed %d times", cuts)
	}
	f.complete()
}

// TestRunWaitsForTheOneOfACutCommand has a run of an earlier command, whose script removes the root of trust.
func TestRunWaitsForTheOneOfACutCommand(t *testing.T) {
	f := newFar(t)
	if err := f.install(); err != nil {
		t.Fatal(err)
	}
	f.write("code", "6", 0o644)
	if code, err := f.host.Run(t.Context()); code != 0 || err != nil || f.read("code") != "0\n" {
		t.Errorf("after a run that held the lock: %d, %v", code, err)
	}
}

// TestDamagedCopiesAreMadeAgain has other bytes in the copy that is continued.
func TestDamagedCopiesAreMadeAgain(t *testing.T) {
	f := newFar(t)
	f.write("root/var/lib/corpus-init/agent-"+f.want.Agent.Digest, strings.Repeat("\x00", 1000), 0o600)
	if err := os.Chmod(filepath.Join(f.root, "var/lib/corpus-init"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.install(); err != nil {
		t.Fatalf("%v\n%s", err, f.out.String())
	}
	f.complete()
}

// TestHostsThatCannotBeSetUp checks that a host is refused before anything is changed, and why.
func TestHostsThatCannotBeSetUp(t *testing.T) {
	for _, c := range []struct{ file, text, says, hint string }{
		{"sudo", "", "may not run sudo without a password", "NOPASSWD"},
		{"uname", "riscv64", "has the architecture riscv64", "--agent FILE"},
		{"date", "1000000000", "behind that of this machine", "timedatectl set-ntp true"},
		{"df", "1200", "has 1200 KiB free in /usr/bin", "df -h /usr/bin"},
		{"root/etc/os-release", "ID=fedora\n", "runs Linux fedora", "docs/packages.md"},
		{"root/run/systemd", "", "was not booted with systemd", "with systemd"},
		{"root/etc/corpus/agent.yaml", "store: https://other\n", "store is https://other there", "the right host"},
		{"root/etc/corpus/agent.yaml", "{undo: {limit: 0}}\n", "can be added to it", "config edit"},
		{"status", "ii ", "has the package corpus-agent", "FILE.deb"},
	} {
		f := newFar(t)
		if c.file == "root/run/systemd" {
			if err := os.RemoveAll(filepath.Join(f.dir, c.file)); err != nil {
				t.Fatal(err)
			}
		} else {
			f.write(c.file, c.text, 0o644)
		}
		_, err := f.plan()
		if err == nil || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(strings.Join(diag.HintsOf(err), "\n"), c.hint) {
			t.Errorf("%s %q: %v, hints %q", c.file, c.text, err, diag.HintsOf(err))
		}
		if f.read("hostname")+f.read("root/usr/bin/corpus-agent") != "" {
			t.Errorf("%s: the host was changed", c.file)
		}
	}
}

// TestSettingsOfTheHostStay gives a host agent.yaml with settings of its own, and with a mistake.
func TestSettingsOfTheHostStay(t *testing.T) {
	f := newFar(t)
	f.write("root/etc/corpus/agent.yaml", "keep:\n  releases: 4 # of ours", 0o600)
	if err := f.install(); err != nil {
		t.Fatalf("%v\n%s", err, f.out.String())
	}
	want := "keep:\n  releases: 4 # of ours\nstore: \"https://store\"\ntop: \"merge\"\n"
	if got := f.read("root/etc/corpus/agent.yaml"); got != want {
		t.Errorf("agent.yaml is %q", got)
	}
	f = newFar(t)
	f.write("root/etc/corpus/agent.yaml", "mistake: yes\n", 0o600)
	err := f.install()
	if err == nil || !strings.Contains(err.Error(), "does not accept its configuration") ||
		f.read("root/etc/corpus/agent.yaml") != "mistake: yes\n" {
		t.Errorf("settings with a mistake: %v", err)
	}
}

// TestFilesThatChangeMeanwhileStay changes agent.yaml while the user is asked.
func TestFilesThatChangeMeanwhileStay(t *testing.T) {
	f := newFar(t)
	plan, err := f.plan()
	if err != nil {
		t.Fatal(err)
	}
	f.write("root/etc/corpus/agent.yaml", "service: shop\n", 0o644)
	err = f.host.Install(t.Context(), plan, nil)
	if err == nil || !strings.Contains(err.Error(), "meanwhile") ||
		f.read("root/etc/corpus/agent.yaml") != "service: shop\n" {
		t.Errorf("%v, and agent.yaml is %q", err, f.read("root/etc/corpus/agent.yaml"))
	}
}

// TestSecretsAreInNoCommandLine runs ssh in the place of which a program writes down its arguments.
func TestSecretsAreInNoCommandLine(t *testing.T) {
	f := newFar(t)
	ssh := f.read("here/ssh")
	f.write("here/ssh", strings.Replace(ssh, "\n", "\nprintf '%s ' \"$@\" >>"+f.dir+"/arguments\n", 1), 0o755)
	if err := f.install(); err != nil {
		t.Fatal(err)
	}
	if got := f.read("arguments"); got == "" || strings.Contains(got, "secret") || strings.Contains(got, "https://store") {
		t.Errorf("the arguments of ssh are %q", got)
	}
}

// packageOf returns a Debian package with a program.
func packageOf(t *testing.T, program []byte) []byte {
	t.Helper()
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: "./usr/bin/corpus-agent", Mode: 0o755, Size: int64(len(program))})
	_, written := w.Write(program)
	if err := errors.Join(err, written, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	file := []byte("!<arch>\n")
	for _, e := range []struct {
		name    string
		content []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", []byte("odd")}, {"data.tar.gz/", data.Bytes()}} {
		file = fmt.Appendf(file, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", e.name, 0, 0, 0, "100644", len(e.content))
		file = append(file, e.content...)
		if len(e.content)%2 == 1 {
			file = append(file, '\n')
		}
	}
	return file
}

func TestPackagesAreInstalled(t *testing.T) {
	f := newFar(t)
	program := f.want.Agent.Data
	f.write("packaged", string(program), 0o755)
	f.write("agent.deb", string(packageOf(t, program)), 0o644)
	var err error
	if f.want.Agent, err = remote.ReadAgent(filepath.Join(f.dir, "agent.deb")); err != nil {
		t.Fatal(err)
	}
	if err := f.install(); err != nil {
		t.Fatalf("%v\n%s", err, f.out.String())
	}
	if f.read("root/usr/bin/corpus-agent") != string(program) ||
		f.read("root/etc/systemd/system/corpus-agent.timer") != "" {
		t.Error("the package was not installed, or units were")
	}
	if _, err := f.host.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if plan, err := f.plan(); err != nil || len(plan.Changes) > 0 {
		t.Errorf("a host with the package: %v, %v", plan.Changes, err)
	}
}

// TestFilesThatAreNotTheAgent are refused before ssh is run.
func TestFilesThatAreNotTheAgent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	deb := filepath.Join(dir, "other.deb")
	if err := os.WriteFile(deb, packageOf(t, []byte("a script")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{self, deb, filepath.Join(dir, "none")} {
		if _, err := remote.ReadAgent(file); err == nil || !strings.Contains(diag.HintOf(err), "--agent FILE") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
