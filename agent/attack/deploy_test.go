package attack_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// releases are the versions of the project whose deploys are attacked. Each version has its own store, beside the
// programs, that also has the earlier versions. ann is the project's user.
func releases() []map[string]string {
	tree := func(version string, more ...string) map[string]string {
		t := map[string]string{
			"corpus.yaml":  "writable: [var, var/lib/cache]\n",
			"version":      version,
			"var/file":     "data\n",
			"var/lib/keep": "data\n", "var/lib/cache/f/a": "data\n", "var/lib/cache/f/sub/b": "data\n",
			".salt/a.sls": "/home/ann/installed:\n  file.managed:\n    - contents: '" + version +
				"'\n    - user: myapp-user\n",
			"hooks/pre-release.d/10-hook":  "#!/bin/sh\nexit 0\n",
			"hooks/pre-archive.d/10-hook":  "#!/bin/sh\nexit 0\n",
			"salt/config/states/top.sls":   "base: {'*': [app]}\n",
			"salt/config/states/app.sls":   appStates(version),
			"salt/config/states/tree/a":    version + "\n",
			"salt/config/states/tree/s/b":  version + "\n",
			"hooks/post-release.d/10-hook": "#!/bin/sh\nexit 0\n",
		}
		for i := 0; i < len(more); i += 2 {
			t[more[i]] = more[i+1]
		}
		return t
	}
	return []map[string]string{tree("1"), tree("2"), tree("3", "hooks/post-release.d/20-fails", "#!/bin/sh\nexit 1\n"),
		tree("4")}
}

// appStates are the states of a release that write below ann's home. The second version removes what the first made, so
// that a rollback restores it.
func appStates(version string) string {
	s := `
/home/ann/0/d/f:
  file.managed:
    - contents: "VERSION"
    - user: myapp-user
    - group: myapp-user
    - mode: '0666'
    - makedirs: True
/home/ann/1/d/f:
  file.recurse:
    - source: salt://tree
    - user: myapp-user
    - file_mode: '0666'
    - dir_mode: '0777'
    - clean: True
`
	if version != "1" {
		s += `
/home/ann/2/d/f:
  file.absent
/home/ann/3/d/f:
  file.directory:
    - user: myapp-user
    - mode: '0777'
    - makedirs: True
    - clean: True
`
	}
	return strings.ReplaceAll(s, "VERSION", version)
}

// stores makes the stores, once.
var stores = sync.OnceValue(func() error {
	bin, err := programs()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "corpus-attack-stores-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	env := append(os.Environ(), "CORPUS_STORE=file://"+work+"/store", "CORPUS_KEYS="+work+"/keys")
	corpus := func(args ...string) error {
		cmd := exec.Command(filepath.Join(bin, "corpus"), args...)
		cmd.Env, cmd.Dir = env, work
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("corpus %v: %w\n%s", args, err, out)
		}
		return nil
	}
	err = errors.Join(os.Mkdir(work+"/store", 0o755), corpus("keys", "new"), corpus("store", "init"))
	for i, tree := range releases() {
		version := fmt.Sprint(i + 1)
		err = errors.Join(err, written(filepath.Join(work, version), tree),
			corpus("build", version, "-o", version+".tar.zst"),
			corpus("publish", "myapp", version, version+".tar.zst", "--channel", "testing"),
			os.CopyFS(filepath.Join(bin, "store"+version), os.DirFS(work+"/store")))
	}
	root, e := os.ReadFile(work + "/keys/root.json")
	return errors.Join(err, e, os.WriteFile(filepath.Join(bin, "root.json"), root, 0o644))
})

func written(dir string, tree map[string]string) error {
	for name, text := range tree {
		file, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), mode)); err != nil {
			return err
		}
	}
	return nil
}

// step is one command of the agent for a project.
type step struct {
	name string
	args []string
	code int // exit code without an attack
}

func fromStore(n int, more ...string) []string {
	return append([]string{"deploy", "myapp", "testing", "--trust-root", "/opt/corpus/root.json", "--store",
		fmt.Sprintf("file:///opt/corpus/store%d", n)}, more...)
}

// steps is the table of steps in their order. The last ones depend on those before them.
func steps() []step {
	return []step{
		{"project init", []string{"project", "init", "myapp"}, 0},
		{"a first deploy", fromStore(1), 0},
		{"an upgrade", fromStore(2), 0},
		{"a deploy that is rolled back", fromStore(3), 7},
		{"converge", []string{"converge"}, 0},
		{"archive and fixperms", []string{"deploy", "--only", "archive,sync,fixperms,install"}, 0},
		{"rollback --converge", []string{"rollback", "--converge"}, 0},
		{"an upgrade after a rollback, which prunes", fromStore(4), 0},
		{"rollback to the first", []string{"rollback"}, 0},
		{"verify", []string{"verify"}, 0},
	}
}

// newProject returns a world with a project whose user is ann.
func newProject(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.must(stores())
	return w
}

// project makes the world's accounts and configuration.
func (w *world) project() {
	w.Helper()
	w.must(os.RemoveAll(filepath.Join(w.dir, "srv")))
	w.must(os.MkdirAll(filepath.Join(w.dir, "srv/out"), 0o755))
	for _, rel := range []string{"opt/corpus"} {
		w.must(os.MkdirAll(filepath.Join(w.dir, rel), 0o755))
	}
	w.begin()
	w.accounts()
}

// accounts creates the account of ann, the project's user.
func (w *world) accounts() {
	w.Helper()
	for file, line := range map[string]string{"passwd": "myapp-user:x:64001:64001::/home/ann:/bin/sh\n",
		"group": "myapp-user:x:64001:\n", "shadow": "myapp-user:*:19000:0:99999:7:::\n"} {
		f, err := os.OpenFile(filepath.Join(w.dir, "etc", file), os.O_APPEND|os.O_WRONLY, 0)
		w.must(err)
		_, err = f.WriteString(line)
		w.must(errors.Join(err, f.Close()))
	}
	w.must(os.MkdirAll(filepath.Join(w.dir, "etc/corpus"), 0o755))
	w.must(os.WriteFile(filepath.Join(w.dir, "etc/corpus/agent.yaml"),
		[]byte("keep:\n  releases: 2\n  failed: 1\n  archives: 1\nmetadata:\n  enabled: false\n"), 0o600))
	w.before = w.snapshot()
}

// places are the places of a project that ann attacks: files of states below her home, writable paths, and the file of
// her key.
func (w *world) places() []place {
	w.Helper()
	all := []place{
		{Dir: w.dir + "/home/ann/0", Kind: file}, {Dir: w.dir + "/home/ann/1", Kind: dir},
		{Dir: w.dir + "/home/ann/2", Kind: dir}, {Dir: w.dir + "/home/ann/3", Kind: dir},
		{Dir: w.dir + "/home/ann", D: ".ssh", F: "id_ed25519", Kind: none},
	}
	if w.is("srv/projects/myapp/data") {
		all = append(all, place{Dir: w.dir + "/srv/projects/myapp/data", Kind: dir})
	}
	found, err := filepath.Glob(w.dir + "/srv/projects/myapp/releases/*/var")
	w.must(err)
	for _, dir := range found {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			all = append(all, place{Dir: dir, D: "lib/cache", F: "f", Kind: "dir"},
				place{Dir: dir, D: "lib", F: "cache", Kind: "dir"})
		}
	}
	for i := range all {
		all[i].Host = w.dir
	}
	return all
}

func (w *world) is(rel string) bool {
	_, err := os.Lstat(filepath.Join(w.dir, rel))
	return err == nil
}

// TestDeployWorks checks that the steps work without an attack.
func TestDeployWorks(t *testing.T) {
	w := newProject(t)
	w.project()
	w.deploy(attack{name: "none"}, "", always, func(s step, got outcome, found []string) {
		if got.code != s.code || len(found) > 0 {
			t.Errorf("%s, without an attack: exit code %d, want %d; %v\n%s", s.name, got.code, s.code, found, got.out)
		}
	})
}

// always and duringRollback select the steps during which an attack continues. A file that a rollback restores has to
// be removed without one.
func always(step) bool           { return true }
func duringRollback(s step) bool { return strings.HasPrefix(s.name, "rollback") }

// deploy runs the steps while an attack continues.
func (w *world) deploy(a attack, where string, during func(step) bool, done func(step, outcome, []string)) {
	w.Helper()
	for _, s := range steps() {
		now := a
		if !during(s) {
			now = attack{name: "none"}
		}
		var fit []place
		for _, p := range w.places() {
			if now.fits(p.Kind) && w.annControls(p) && strings.Contains(p.d(), where) {
				fit = append(fit, p)
			}
		}
		stop := now.begin(w, fit)
		began := time.Now()
		got := w.entered(s.args...)
		stop()
		if os.Getenv("ATTACK_VERBOSE") != "" {
			w.Logf("%s took %v", s.name, time.Since(began))
		}
		if os.Getenv("ATTACK_VERBOSE") != "" {
			w.Logf("%s: %d\n%s", s.name, got.code, got.out)
		}
		done(s, got, w.breaks(got))
	}
}

// annControls reports whether ann can make the place: the directory belongs to her, or is in her home.
func (w *world) annControls(p place) bool {
	if strings.HasPrefix(p.Dir, w.dir+"/home/ann") {
		return true
	}
	info, err := os.Lstat(p.Dir)
	return err == nil && owner(info) == ann
}

// placeGroups are parts of the paths of places that are attacked together. An attack in one of them may end a deploy
// before it reaches the others.
func placeGroups() []string { return []string{"/home/ann/.ssh", "/home/ann/", "/data/", "/var/"} }

// TestDeploy tries each attack on each step of a deploy, in each place that ann controls.
func TestDeploy(t *testing.T) {
	t.Parallel()
	all := attacks()
	eachAttack(t, func(t *testing.T, a attack) {
		i := slices.IndexFunc(all, func(b attack) bool { return b.name == a.name })
		w := newProject(t)
		for j, where := range placeGroups() {
			for round := range 2 * rounds {
				if full || (i+j+round)%8 == 0 {
					w.attackDeploy(a, where, []func(step) bool{always, duringRollback}[round%2])
				}
			}
		}
	})
}

func (w *world) attackDeploy(a attack, where string, during func(step) bool) {
	w.Helper()
	w.project()
	w.deploy(a, where, during, func(s step, _ outcome, found []string) {
		if len(found) > 0 {
			w.Errorf("%s, while in %s %s: %s", s.name, where, a.name, strings.Join(found, "; "))
			w.plant()
			w.accounts()
		}
	})
}
