package cmd_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// developer is a user with a working tree, and a host below a separate root to push to.
type developer struct {
	t    *testing.T
	tree string
	root string
	env  []string
}

func newDeveloper(t *testing.T, init ...string) *developer {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("push to deploy needs git")
	}
	d := &developer{t: t, tree: t.TempDir(), root: t.TempDir()}
	d.env = append(os.Environ(), "PATH="+bin(t)+":"+os.Getenv("PATH"), "HOME="+t.TempDir(), "CORPUS_ROOT="+d.root,
		"CORPUS_METADATA_ENABLED=false",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_NOSYSTEM=1")
	d.ok("corpus-agent", append([]string{"project", "init", "shop", "--git"}, init...)...)
	d.ok("git", "init", "-q", "-b", "main")
	return d
}

func (d *developer) run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	for _, e := range d.env {
		if dir, ok := strings.CutPrefix(e, "PATH="); ok && name == "corpus-agent" || ok && name == "corpus" {
			cmd.Path, cmd.Err = filepath.Join(strings.Split(dir, ":")[0], name), nil
		}
	}
	cmd.Dir, cmd.Env = d.tree, d.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *developer) ok(name string, args ...string) string {
	d.t.Helper()
	out, err := d.run(name, args...)
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// commit commits a file.
func (d *developer) commit(file, text string) {
	d.t.Helper()
	path := filepath.Join(d.tree, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.ok("git", "add", "-A")
	d.ok("git", "commit", "-q", "-m", file)
}

func (d *developer) repository(which string) string {
	return filepath.Join(d.root, "srv/projects/shop/git", which+".git")
}

// push pushes to the branch that is deployed.
func (d *developer) push(more ...string) (string, error) {
	return d.run("git", append([]string{"push", d.repository("project"), "HEAD:main"}, more...)...)
}

// head returns the commit of the host's branch.
func (d *developer) head() string {
	out, err := d.run("git", "--git-dir="+d.repository("project"), "rev-parse", "main")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

func (d *developer) host(path, want string) {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.root, path))
	if err != nil || strings.TrimSpace(string(data)) != want {
		d.t.Errorf("%s on the host is %q, %v, want %q", path, data, err, want)
	}
}

const writes = "out:\n  file.managed:\n    - name: /srv/out\n    - contents: {{ cfg.data.text }}\n"

func TestPushDeploys(t *testing.T) {
	d := newDeveloper(t)
	d.commit(".salt/PILLAR.sample", "data: {text: one}\n")
	d.commit(".salt/00.sls", writes)
	out, err := d.push()
	if err != nil || !strings.Contains(out, "remote: ") || !strings.Contains(out, "(unsigned)") {
		t.Fatalf("the first push: %v\n%s", err, out)
	}
	d.host("srv/out", "one")
	good := d.head()
	d.commit(".salt/00.sls", "out:\n  test.fail_without_changes: []\n")
	if out, err = d.push(); err == nil || !strings.Contains(out, "rolled back") {
		t.Errorf("a push that breaks: %v\n%s", err, out)
	}
	if got := d.head(); got != good {
		t.Errorf("the branch has %s, want %s as before", got, good)
	}
	d.host("srv/out", "one")
	// A different history requires force, and is deployed.
	d.ok("git", "checkout", "-q", "--orphan", "other")
	d.commit(".salt/00.sls", writes)
	d.commit(".salt/PILLAR.sample", "data: {text: two}\n")
	if out, err = d.push("--force"); err != nil {
		t.Fatalf("a forced push: %v\n%s", err, out)
	}
	d.host("srv/out", "two")
	if out, err := d.run("git", "push", d.repository("project"), "HEAD:feature"); err != nil ||
		!strings.Contains(out, "not the deployed branch") {
		t.Errorf("a push to another branch: %v\n%s", err, out)
	}
	if out := d.ok("corpus-agent", "project", "get-configuration", "shop", "data:text"); out != "two\n" {
		t.Errorf("the configuration has %q", out)
	}
	if out := d.ok("corpus-agent", "project", "rollback", "shop", "--test"); !strings.Contains(out,
		"would go back to shop ") ||
		!strings.Contains(out, "would quarantine shop ") {
		t.Errorf("a dry run of the rollback prints %s", out)
	}
	d.host("srv/out", "two")
	d.ok("corpus-agent", "project", "rollback", "shop")
	d.host("srv/out", "one")
}

// TestPushedPillarsArePrivate checks the modes of pushed files, and of a host whose agent left them open.
func TestPushedPillarsArePrivate(t *testing.T) {
	d := newDeveloper(t, "--env", "dev")
	d.commit("pillar/s.sls", "k: secret\n")
	d.commit("salt/config/pillar/s.sls", "k: secret\n")
	if out, err := d.push(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shop := filepath.Join(d.root, "srv/projects/shop")
	private := []string{"git/project.git", "git/pillar.git", "pillar", "current/pillar", "current/salt/config/pillar"}
	closed := func(when string) {
		t.Helper()
		for _, name := range private {
			if info, err := os.Stat(filepath.Join(shop, name)); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %s: %v, %v", when, name, info.Mode(), err)
			}
		}
		if info, err := os.Stat(filepath.Join(shop, "current/salt")); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: salt: %v, %v", when, info.Mode(), err)
		}
	}
	closed("after the push")
	if os.Geteuid() != 0 {
		return // only root can change the owner back
	}
	for _, name := range private {
		if err := os.Chmod(filepath.Join(shop, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out := d.ok("corpus-agent", "project", "fixperms", "shop"); !strings.Contains(out,
		"/git/project.git had mode 0755") {
		t.Errorf("fixperms prints:\n%s", out)
	}
	closed("after fixperms")
}

func TestPushOfPillarConvergesProject(t *testing.T) {
	d := newDeveloper(t)
	d.commit(".salt/PILLAR.sample", "data: {text: sample}\n")
	d.commit(".salt/00.sls", writes)
	if out, err := d.push(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d.tree = t.TempDir()
	d.ok("git", "init", "-q", "-b", "main")
	d.commit("init.sls", "makina-projects.shop:\n  data: {text: private}\n")
	push := func() (string, error) { return d.run("git", "push", d.repository("pillar"), "HEAD:main") }
	if out, err := push(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d.host("srv/out", "private")
	if info, err := os.Stat(filepath.Join(d.root, "srv/projects/shop/pillar")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the pillar is %v, %v, want a private directory", info.Mode(), err)
	}
	d.commit("init.sls", "makina-projects.shop: [\n")
	if out, err := push(); err == nil || !strings.Contains(out, "is restored") {
		t.Errorf("a broken pillar: %v\n%s", err, out)
	}
	d.host("srv/out", "private")
	d.host("srv/projects/shop/pillar/init.sls", "makina-projects.shop:\n  data: {text: private}")
}

func TestProdRefusesPushUnlessAllowed(t *testing.T) {
	d := newDeveloper(t, "--env", "prod")
	d.commit(".salt/PILLAR.sample", "data: {text: one}\n")
	d.commit(".salt/00.sls", writes)
	if out, err := d.push(); err == nil || !strings.Contains(out, "no key signed it") ||
		!strings.Contains(out, "allow_unsigned") {
		t.Errorf("a push to prod: %v\n%s", err, out)
	}
	if d.head() != "" {
		t.Error("the ref was accepted")
	}
	d.env = append(d.env, "CORPUS_ALLOW_UNSIGNED=shop")
	if out, err := d.push(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d.host("srv/out", "one")
}

func TestEditableTreeRequiresDev(t *testing.T) {
	d := newDeveloper(t)
	tree := filepath.Join(d.root, "home/me/shop")
	d.tree = tree
	if err := os.MkdirAll(filepath.Join(tree, ".salt"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(tree, ".salt/00.sls"),
			[]byte(strings.ReplaceAll(writes, "{{ cfg.data.text }}", text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	if out, err := d.run("corpus-agent", "project", "deploy", "shop", "--editable", tree); err == nil ||
		!strings.Contains(out, "switchmode shop dev") {
		t.Errorf("in staging: %v\n%s", err, out)
	}
	d.ok("corpus-agent", "project", "switchmode", "shop", "dev")
	d.ok("corpus-agent", "project", "deploy", "shop", "--editable", tree)
	d.host("srv/out", "first")
	write("second")
	d.ok("corpus-agent", "project", "install", "shop")
	d.host("srv/out", "second")
	if target, err := filepath.EvalSymlinks(filepath.Join(d.root, "srv/projects/shop/current")); err != nil ||
		target != tree {
		t.Errorf("current leads to %s, %v, want the working tree", target, err)
	}
}

func TestUnknownProjects(t *testing.T) {
	d := newDeveloper(t)
	for _, c := range []struct{ command, want string }{
		{"project install shpo", `did you mean "shop"?`},
		{"project deploy other", "corpus-agent project init other"},
		{"project init base", "deployed together with the service"},
		{"project switchmode shop test", "dev, staging and prod"},
		{"project set-configuration shop nothing", "write key=value"},
		{"project deploy shop --only instal", `did you mean "install"?`},
	} {
		out, err := d.run("corpus-agent", strings.Fields(c.command)...)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s", c.command, err, out)
		}
	}
}

func TestPushOverSSH(t *testing.T) {
	d := newDeveloper(t)
	// This program replaces ssh: it runs the command here, with the host's paths below the root.
	ssh := filepath.Join(t.TempDir(), "ssh")
	shim := "#!/bin/sh\n[ \"$1\" = root@dev1 ] || exit 9\nexec sh -c \"$(printf %s \"$2\" | sed 's#/srv/projects#" +
		d.root + "/srv/projects#')\"\n"
	if err := os.WriteFile(ssh, []byte(shim), 0o755); err != nil {
		t.Fatal(err)
	}
	d.env = append(d.env, "GIT_SSH="+ssh, "GIT_SSH_VARIANT=simple")
	d.commit(".salt/PILLAR.sample", "data: {text: pushed}\n")
	d.commit(".salt/00.sls", writes)
	out, err := d.run("corpus", "push", "root@dev1", "shop", "--init", "--env", "dev")
	if err != nil || !strings.Contains(out, "initialised shop") || !strings.Contains(out, "pushed shop to root@dev1") {
		t.Fatalf("%v\n%s", err, out)
	}
	d.host("srv/out", "pushed")
	for _, bad := range [][]string{{"-oProxyCommand=x", "shop"}, {"root@dev1", "../x"},
		{"root@dev1", "shop", "--branch", "$(x)"}, {"root@other", "shop", "--init"}} {
		if out, err := d.run("corpus", append([]string{"push"}, bad...)...); err == nil {
			t.Errorf("push %v was accepted\n%s", bad, out)
		}
	}
}

func TestRunContinuesWhenItsClientEnds(t *testing.T) {
	d := newDeveloper(t)
	d.commit(".salt/PILLAR.sample", "data: {text: one}\n")
	d.commit(".salt/00.sls", writes)
	if out, err := d.push(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(d.root, "srv/out")); err != nil {
		t.Fatal(err)
	}
	// The reader closes the output after the first line.
	d.ok("sh", "-c", "corpus-agent -v project install shop 2>&1 | true")
	d.host("srv/out", "one")
	if out := d.ok("corpus-agent", "status"); !strings.Contains(out, "shop: shop "+d.head()[:12]+" (unsigned) since") {
		t.Errorf("the status is\n%s", out)
	}
}

// TestPushIntoARepositoryOfAUser checks that a repository of which a user controls a part is refused before git runs
// there: git would run the user's programs as root.
func TestPushIntoARepositoryOfAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of several users")
	}
	d := newDeveloper(t)
	d.commit(".salt/00_install.sls", "t: test.nop\n")
	d.ok("git", "push", "-q", d.repository("project"), "HEAD:main")
	pwned := filepath.Join(d.root, "pwned")
	program := filepath.Join(d.root, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n>"+pwned+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.ok("git", "--git-dir="+d.repository("project"), "config", "core.fsmonitor", program)
	config := filepath.Join(d.repository("project"), "config")
	for _, c := range []struct {
		path string
		uid  int
		mode os.FileMode
	}{{config, 64001, 0o644}, {filepath.Join(d.repository("pillar"), "hooks"), 64001, 0o755}, {config, 0, 0o666}} {
		if err := errors.Join(os.Chown(c.path, c.uid, c.uid), os.Chmod(c.path, c.mode)); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"project", "deploy", "shop"}, {"project", "init", "shop", "--git"}} {
			if out, err := d.run("corpus-agent", command...); err == nil ||
				!strings.Contains(out, "git does not run in the repositories of shop") ||
				!strings.Contains(out, "cp -PR ") {
				t.Errorf("%s of user %d: %v: %v\n%s", c.path, c.uid, command, err, out)
			}
		}
		if err := errors.Join(os.Chown(c.path, 0, 0), os.Chmod(c.path, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(pwned); err == nil {
		t.Error("the user's program ran")
	}
}

// TestPushOfATreeWithoutStates checks that such a tree is deployed, with a note in the output of the push.
func TestPushOfATreeWithoutStates(t *testing.T) {
	d := newDeveloper(t, "--env", "dev")
	d.commit("index.html", "hello\n")
	out, err := d.push()
	if err != nil || !strings.Contains(out, "has no states: its files are in place at /srv/projects/shop/current") ||
		!strings.Contains(out, ".salt/00_install.sls") {
		t.Errorf("the push: %v\n%s", err, out)
	}
	d.host("srv/projects/shop/current/index.html", "hello")
}

// TestStatusShowsAFailedPush fails the first push to a project of a dev host, and one after a successful push.
func TestStatusShowsAFailedPush(t *testing.T) {
	d := newDeveloper(t, "--env", "dev")
	d.commit(".salt/00.sls", "out:\n  test.fail_without_changes: []\n")
	if out, err := d.push(); err == nil {
		t.Fatalf("a failing push was accepted\n%s", out)
	}
	first := d.ok("corpus-agent", "status")
	d.commit(".salt/00.sls", "out:\n  test.succeed_without_changes: []\n")
	if out, err := d.push(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out := d.ok("corpus-agent", "status"); strings.Contains(out, "fail") {
		t.Errorf("status after a successful push\n%s", out)
	}
	d.commit(".salt/00.sls", "out:\n  test.fail_without_changes: []\n")
	if out, err := d.push(); err == nil {
		t.Fatalf("a failing push was accepted\n%s", out)
	}
	for _, out := range []string{first, d.ok("corpus-agent", "status")} {
		for _, want := range []string{"the host stays on shop ", ", which failed", "failed: test.fail_without_changes out"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in the status\n%s", want, out)
			}
		}
	}
	if out := d.ok("corpus-agent", "status", "--json"); !strings.Contains(out, `"failed_in": "`) {
		t.Errorf("status --json\n%s", out)
	}
}
