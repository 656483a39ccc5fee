package agent_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
)

// attackTime is the duration of the attack in each test.
const attackTime = 4 * time.Second

// asProjectUser runs a shell script as the project's user until the test ends.
func asProjectUser(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: projectUser, Gid: projectUser},
		Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}

// withUser returns a host on which the project's user already exists.
func withUser(t *testing.T) *lab {
	t.Helper()
	needsRoot(t)
	l := newNativeLab(t)
	home := l.Layout.Path("/home/myapp-user")
	if err := errors.Join(os.MkdirAll(home, 0o755), os.Chown(home, projectUser, projectUser),
		os.MkdirAll(l.Layout.Path("/etc/cron.hourly"), 0o755),
		os.WriteFile(l.Layout.Path("/etc/passwd"),
			[]byte("root:x:0:0::/root:/bin/sh\nmyapp-user:x:64011:64011::/home/myapp-user:/bin/sh\n"), 0o644),
		os.WriteFile(l.Layout.Path("/etc/group"), []byte("root:x:0:\nmyapp-user:x:64011:\n"), 0o644),
		os.WriteFile(l.Layout.Path("/etc/shadow"), []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for d := l.Layout.Root; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *lab) fixperms() {
	l.t.Helper()
	only, err := procedure.ParseOnly("fixperms")
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.RunProject(context.Background(), "myapp", agent.Given{Only: only}); err != nil {
		l.t.Fatalf("fixperms: %v", err)
	}
}

// TestFixpermsWhileUserExchangesFiles runs fixperms on a writable path while its user replaces the files in it with
// links, pipes and hard links to root's files, or removes them.
func TestFixpermsWhileUserExchangesFiles(t *testing.T) {
	l := withUser(t)
	files := stateFiles("1", sets("/srv/out/states", "1"))
	files[".salt/00.sls"], files["corpus.yaml"] = sets("/srv/out/a", "1"), "writable: [var, var/lib/cache]\n"
	files["var/lib/cache/x"], files["var/d/x"] = "x", "x"
	l.repo.Release("myapp", "1", "testing", files)
	l.expect(exit.OK)
	dir, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
	if err != nil {
		t.Fatal(err)
	}
	data := l.Layout.Project("myapp").Data()
	if owner(t, filepath.Join(dir, "var/lib/cache/x")) != projectUser || owner(t, data) != projectUser ||
		owner(t, dir) != 0 {
		t.Fatal("fixperms changed the owner of the wrong files")
	}
	victims := []string{"/var", "/var/cache", "/etc", "/etc/shadow", "/etc/cron.hourly", "/srv/projects/myapp",
		"/srv/projects/myapp/current", "/srv/projects/myapp/archives", "/srv/projects/myapp/pillar",
		"/srv/projects/myapp/releases"}
	if err := os.MkdirAll(l.Layout.Path("/var/cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	// as a user can on a kernel without protected_hardlinks
	if err := os.Link(l.Layout.Path("/etc/shadow"), filepath.Join(data, "hard")); err != nil {
		t.Fatal(err)
	}
	asProjectUser(t, dir,
		`while :; do mv var/lib var/l; ln -s `+l.Layout.Path("/var")+` var/lib; rm var/lib; mv var/l var/lib; done`)
	asProjectUser(t, data, `while :; do mkdir -p d/e; mv d f; ln -s .. d; rm d; mv f d; rmdir d/e; mkfifo d/p; rm d/p; `+
		`ln -s ../../../../etc/shadow d/s; rm d/s; done`)
	for began := time.Now(); time.Since(began) < attackTime; {
		l.fixperms()
		for _, v := range victims {
			if got := owner(t, l.Layout.Path(v)); got != 0 {
				t.Fatalf("%s belongs to %d", v, got)
			}
		}
	}
}

// TestKeyCreationWhileUserExchangesHome creates the user's SSH key while ~/.ssh is a link, or is exchanged with one.
func TestKeyCreationWhileUserExchangesHome(t *testing.T) {
	l := withUser(t)
	home, cron := l.Layout.Path("/home/myapp-user"), l.Layout.Path("/etc/cron.hourly")
	if err := errors.Join(os.Symlink("/etc/cron.hourly", filepath.Join(home, ".ssh")),
		os.Lchown(filepath.Join(home, ".ssh"), projectUser, projectUser)); err != nil {
		t.Fatal(err)
	}
	l.publishSalt("1", map[string]string{"00.sls": sets("/srv/out", "1")})
	r := l.expect(exit.OK)
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"/home/myapp-user/.ssh", "64011", "ls -ld"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes are %q, want %q in them", notes, want)
		}
	}
	asProjectUser(t, home, `while :; do rm -rf .ssh; mkdir .ssh; mv .ssh k; ln -s /etc/cron.hourly .ssh; rm .ssh; ln -s `+
		`../../etc/cron.hourly .ssh; rm .ssh; mv k .ssh; rm -rf .ssh; done`)
	only, err := procedure.ParseOnly("sync")
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < attackTime; {
		_, _ = l.RunProject(context.Background(), "myapp", agent.Given{Only: only}) // the user may cause an error
		if names, err := os.ReadDir(cron); err != nil || len(names) > 0 || owner(t, cron) != 0 {
			t.Fatalf("%s has the files %v, %v", cron, names, err)
		}
	}
}
