package attack_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The users of a world: ann attacks, bob owns some of the victims, and carol reads everything that she can.
const ann, bob, carol = 64001, 64002, 64003

// canary is at the start of the content of every victim that only root or bob may read. It must not appear elsewhere.
const canary = "CaNaRy-5d1f0c"

// world is a host that is attacked.
type world struct {
	*testing.T
	dir     string // the root directory of the agent
	outside string // files of root outside of dir
	before  map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	needRoot(t)
	top, err := os.MkdirTemp(os.Getenv(worldsIn), "world-")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, dir: filepath.Join(top, "host"), outside: filepath.Join(top, "outside")}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	w.must(os.Chmod(top, 0o755))
	for link, target := range map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib",
		"lib64": "usr/lib64"} {
		w.must(os.MkdirAll(w.dir, 0o755))
		w.must(os.Symlink(target, filepath.Join(w.dir, link)))
	}
	for _, d := range []string{"usr", "proc", "dev", "opt/corpus", "srv/in", "srv/out", "run"} {
		w.must(os.MkdirAll(filepath.Join(w.dir, d), 0o755))
	}
	w.plant()
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// victims are files by their path in the world, with mode, owner and content. Those with a canary are secret.
var victims = []struct {
	path  string
	mode  os.FileMode
	uid   int
	plain string // content; "" for a canary
}{
	{"etc/victim", 0o600, 0, ""},
	{"etc/victim.conf", 0o644, 0, "one = 1\n"},
	{"etc/victimdir/f", 0o600, 0, ""},
	{"etc/victimdir/a", 0o600, 0, ""},
	{"etc/victimdir/sub/b", 0o600, 0, ""},
	{"etc/victimtree/f/a", 0o600, 0, ""},
	{"etc/victimtree/f/sub/b", 0o600, 0, ""},
	{"etc/above/d/f", 0o600, 0, ""},
	{"etc/abovetree/d/f/a", 0o600, 0, ""},
	{"etc/abovenone/d/other", 0o600, 0, ""},
	{"etc/cron.d/daily", 0o644, 0, "# root's\n"},
	{"etc/profile.d/login.sh", 0o644, 0, "# root's\n"},
	{"root/.ssh/authorized_keys", 0o600, 0, ""},
	{"home/bob/f", 0o600, bob, ""},
	{"home/bob/.bashrc", 0o644, bob, "# bob's\n"},
	{"etc/shadow", 0o600, 0, "root:*:19000::::::\nann:*:19000:0:99999:7:::\nbob:*:19000:0:99999:7:::\n"},
	{"etc/gshadow", 0o600, 0, "root:*::\nann:!::\nbob:!::\n"},
	{"etc/passwd", 0o644, 0,
		"root:x:0:0:root:/root:/bin/sh\nann:x:64001:64001::/home/ann:/bin/sh\nbob:x:64002:64002::/home/bob:/bin/sh\n"},
	{"etc/group", 0o644, 0, "root:x:0:\nann:x:64001:\nbob:x:64002:\n"},
	{"etc/hostname", 0o644, 0, "myapp-testing-useast1-1\n"},
	{"etc/hosts", 0o644, 0, "127.0.0.1 localhost\n"},
	{"../outside/f", 0o600, 0, ""},
	{"../outside/a", 0o600, 0, ""},
}

// plant restores the victims and removes the files that were made beside them.
func (w *world) plant() {
	w.Helper()
	for _, d := range []string{"etc", "root", "home/bob", "../outside", "srv/out"} {
		w.must(os.RemoveAll(filepath.Join(w.dir, d)))
		w.must(os.MkdirAll(filepath.Join(w.dir, d), 0o755))
	}
	for _, file := range []string{"/etc/ld.so.cache", "/etc/login.defs", "/etc/nsswitch.conf"} {
		if data, err := os.ReadFile(file); err == nil {
			w.must(os.WriteFile(w.dir+file, data, 0o644))
		}
	}
	for _, v := range victims {
		p := filepath.Join(w.dir, v.path)
		w.must(os.MkdirAll(filepath.Dir(p), 0o755))
		content := v.plain
		if content == "" {
			content = canary + " of " + v.path + "\n"
		}
		w.must(os.WriteFile(p, []byte(content), 0o600))
		w.must(os.Chmod(p, v.mode))
		w.must(os.Chown(p, v.uid, v.uid))
	}
	w.must(os.Chown(filepath.Join(w.dir, "home/bob"), bob, bob))
	w.must(os.Chmod(filepath.Join(w.dir, "root"), 0o700))
	w.must(os.Chmod(filepath.Join(w.dir, "root/.ssh"), 0o700))
	home := filepath.Join(w.dir, "home/ann")
	w.must(os.MkdirAll(home, 0o755))
	w.must(os.Chown(home, ann, ann))
}

// begin removes the results of earlier operations and takes a snapshot.
func (w *world) begin() {
	w.Helper()
	home := filepath.Join(w.dir, "home/ann")
	w.must(filepath.WalkDir(home, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o755)
		}
		return nil
	}))
	for _, rel := range []string{"home/ann", "var/lib", "var/cache", "var/tmp", "var/spool", "tmp"} {
		w.must(os.RemoveAll(filepath.Join(w.dir, rel)))
	}
	w.must(os.MkdirAll(filepath.Join(w.dir, "var/spool/cron/crontabs"), 0o755))
	for _, rel := range []string{"tmp", "var/tmp"} {
		w.must(errors.Join(os.MkdirAll(filepath.Join(w.dir, rel), 0o755),
			os.Chmod(filepath.Join(w.dir, rel), 0o777|os.ModeSticky)))
	}
	w.plant()
	w.before = w.snapshot()
}

// outcome is the result of a program.
type outcome struct {
	code int
	out  string
	hung bool
}

// secretOfTheRun is in the environment of each run, as a store's credentials are.
const secretOfTheRun = canary + "-of-the-environment"

// relocated runs the agent with --root; entered runs it in the world as its root.
func (w *world) relocated(args ...string) outcome {
	return w.run(exec.Command(w.program("corpus-agent"), append([]string{"--root", w.dir}, args...)...))
}

func (w *world) entered(args ...string) outcome { return w.run(w.inside("corpus-agent", args...)) }

// inside returns a command that runs one of the built programs in the world.
func (w *world) inside(program string, args ...string) *exec.Cmd {
	w.Helper()
	cmd := exec.Command(selfProgram, append([]string{"/opt/corpus/" + program}, args...)...)
	cmd.Env = []string{asEntered + "=" + w.dir, "CORPUS_ATTACK_PROGRAMS=" + filepath.Dir(w.program(program))}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return cmd
}

func (w *world) program(name string) string {
	w.Helper()
	dir, err := programs()
	w.must(err)
	return filepath.Join(dir, name)
}

// run runs a program until it ends, or fails after a time limit.
func (w *world) run(cmd *exec.Cmd) outcome {
	w.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(cmd.Env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/srv/in", "HOME=/root", "LANG=C.UTF-8",
		"CORPUS_METADATA_ENABLED=false", "AWS_SECRET_ACCESS_KEY="+secretOfTheRun)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.WaitDelay = 5 * time.Second
	w.must(cmd.Start())
	hung := make(chan bool, 1)
	timer := time.AfterFunc(runTimeout, func() {
		hung <- true
		_ = cmd.Process.Signal(syscall.SIGQUIT) // the program prints its stacks
		time.Sleep(time.Second)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	})
	err := cmd.Wait()
	timer.Stop()
	o := outcome{out: out.String(), hung: len(hung) > 0}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		o.code = failed.ExitCode()
	} else if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		w.Fatalf("%v: %v\n%s", cmd.Args, err, o.out)
	}
	return o
}

// as starts this program again as another user and returns its standard output.
func (w *world) as(uid uint32, variable, value string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, selfProgram)
	cmd.Dir = "/"
	cmd.Env = []string{variable + "=" + value}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// selfProgram is a copy of this program that every user may run.
const selfProgram = "/proc/self/exe"
