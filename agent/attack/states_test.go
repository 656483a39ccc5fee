package attack_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStates tries each attack on each state, once with --root and once with the world as the root directory.
func TestStates(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"entered", "relocated"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			eachAttack(t, func(t *testing.T, a attack) { newStates(t, how).try(a) })
		})
	}
}

// states is a world with the files that states need.
type states struct {
	*world
	how string
	all []operation
}

func newStates(t *testing.T, how string) *states {
	t.Helper()
	s := &states{world: newWorld(t), how: how}
	for _, o := range operations() {
		if (how == "entered" || !o.entered) && os.Getenv("ATTACK_STATE") == "" ||
			strings.HasPrefix(o.String(), os.Getenv("ATTACK_STATE")) && os.Getenv("ATTACK_STATE") != "" {
			s.all = append(s.all, o)
		}
	}
	tree := map[string]string{"tree/a": "from the tree\n", "tree/sub/b": "from the tree\n",
		"patch": "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-one = 1\n+one = 7\n", "script": "#!/bin/sh\nid -u >pwned-script\n",
		"true": "#!/bin/sh\n", "top.sls": "base: {'*': [attack]}\n"}
	for name, text := range tree {
		file := filepath.Join(s.dir, "srv/states", name)
		s.must(os.MkdirAll(filepath.Dir(file), 0o755))
		s.must(os.WriteFile(file, []byte(text), 0o644))
	}
	s.must(os.MkdirAll(filepath.Join(s.dir, "srv/in/package"), 0o755))
	s.must(os.WriteFile(filepath.Join(s.dir, "srv/in/package/package.json"),
		[]byte(`{"name": "package", "version": "1.0.0"}`), 0o644))
	s.must(os.WriteFile(filepath.Join(s.dir, "srv/in/file"), []byte("root's, for all\n"), 0o644))
	s.must(os.WriteFile(filepath.Join(s.dir, "srv/in/tree.tar"), tarred(t, tree), 0o644))
	// These replace package managers: they leave files in their working directory, and report that nothing is
	// installed.
	for name, does := range map[string]string{"pip3": "id -u >pwned-ran", "npm": "id -u >pwned-ran",
		"gem":        "id -u >pwned-ran",
		"virtualenv": `for dir; do :; done; mkdir -p "$dir/bin" && : >"$dir/bin/pip" && id -u >"$dir/pwned-ran"`} {
		script := "#!/bin/sh\ncase \"$*\" in *list*--json*) echo '{}';; *list*) echo '[]';; *version*) echo 'Python " +
			"3.0';; *) " + does + ";; esac\n"
		s.must(os.WriteFile(filepath.Join(s.dir, "srv/in", name), []byte(script), 0o755))
	}
	s.repository()
	return s
}

func tarred(t *testing.T, tree map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"a", "sub/b"} {
		text := tree["tree/"+name]
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o666,
			ModTime: time.Unix(1, 0)}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// repository makes a git repository for states.
func (s *states) repository() {
	s.Helper()
	repo := filepath.Join(s.dir, "srv/in/repo.git")
	work := s.TempDir()
	sh := exec.Command("sh", "-ec",
		`git init -q -b main "$1"; cd "$1"; echo one >file; git add .; git -c user.name=x -c user.email=x@x commit -qm `+
			`one; git clone -q --bare "$1" "$2"`, "sh", work, repo)
	sh.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + work, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := sh.CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
}

// layHostileClone makes a clone of ann's whose configuration and hooks start programs of hers.
func layHostileClone(w *world, p place) {
	w.Helper()
	inside := strings.TrimPrefix(p.Dir, w.dir)
	program := filepath.Join(p.Dir, "program")
	w.must(os.WriteFile(program, []byte("#!/bin/sh\nid -u >>"+inside+"/pwned-$(id -u)\n"), 0o755))
	sh := exec.Command("sh", "-ec",
		`git clone -q --no-hardlinks "$1" "$2"; cd "$2"; git remote set-url origin /srv/in/repo.git
		git config core.fsmonitor "$3"; git config core.pager "$3"; git config core.sshCommand "$3"; git config filter.x.smudge "$3"; git config filter.x.clean "$3"; git config core.editor "$3"
		git config diff.external "$3"; git config alias.fetch "!$3"; git config credential.helper "$3"; git config core.hooksPath .git/hooks; git config uploadpack.packObjectsHook "$3"; git config remote.origin.uploadpack "$3"
		echo '* filter=x' >.git/info/attributes
		for h in post-checkout post-merge reference-transaction pre-auto-gc post-index-change; do cp "$4" .git/hooks/$h; done; echo changed >>file`, "sh",
		filepath.Join(w.dir, "srv/in/repo.git"), p.f(), inside+"/program", program)
	sh.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
	if out, err := sh.CombinedOutput(); err != nil {
		w.Fatalf("%v\n%s", err, out)
	}
	chownAll(w, p.Dir)
}

func chownAll(w *world, dir string) {
	w.Helper()
	w.must(filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(name, ann, ann)
		}
		return err
	}))
}

// try tries an attack on all states. The short form applies all of them in one run first, and then each alone to find
// the one that failed.
func (s *states) try(a attack) {
	s.Helper()
	var fit []operation
	for _, o := range s.all {
		if a.fits(o.kind) {
			fit = append(fit, o)
		}
	}
	if !full {
		_, found := s.together(a, fit)
		if len(found) == 0 {
			return
		}
		s.Errorf("while %s: %s", a.name, strings.Join(found, "\n\t"))
	}
	for _, o := range fit {
		got, found := s.together(a, []operation{o})
		if got.code != 0 && got.code != 1 && got.code != 3 && !got.hung {
			s.Errorf("%s, while %s: the run ended with %d:\n%s", o, a.name, got.code, got.out)
		}
		if len(found) > 0 {
			s.Errorf("%s, while %s: %s", o, a.name, strings.Join(found, "; "))
		}
	}
}

// together applies states, each in another place, while an attack continues in all of them.
func (s *states) together(a attack, fit []operation) (got outcome, found []string) {
	s.Helper()
	s.begin()
	var places []place
	var except []string
	sls := "#!jinja|yaml\n"
	for i, o := range fit {
		except = append(except, o.changes...)
		for n := range min(tries, cmp.Or(o.few, tries)) {
			number := i*tries + n
			p := place{Dir: filepath.Join(s.dir, "home/ann", fmt.Sprint(number)), Host: s.dir, Kind: o.kind}
			if o.lay != nil {
				p.prepare = func() { o.lay(s.world, p); chownAll(s.world, p.Dir) }
			}
			places = append(places, p)
			sls += filled(strings.ReplaceAll(o.sls(fmt.Sprintf("op%d", number), 1), "-0:\n", ":\n"),
				fmt.Sprintf("/home/ann/%d", number), number)
		}
	}
	s.must(os.WriteFile(filepath.Join(s.dir, "srv/states/attack.sls"), []byte(sls), 0o644))
	stop := a.begin(s.world, places)
	arguments := []string{"call", "state.apply", "attack", "--state-output", "full", "--states"}
	if s.how == "entered" {
		got = s.entered(append(arguments, "/srv/states")...)
	} else {
		got = s.relocated(append(arguments, filepath.Join(s.dir, "srv/states"))...)
	}
	stop()
	if os.Getenv("ATTACK_VERBOSE") != "" {
		s.Logf("%v: exit code %d\n%s", fit, got.code, got.out)
	}
	return got, s.breaks(got, except...)
}

// TestStatesWork checks that the states work without an attack, since a state that fails at once resists every attack.
func TestStatesWork(t *testing.T) {
	for _, how := range []string{"entered", "relocated"} {
		t.Run(how, func(t *testing.T) {
			s := newStates(t, how)
			var fit []operation
			for _, o := range s.all {
				if !strings.Contains(o.as, "programs") && !o.refused { // these may be refused
					fit = append(fit, o)
				}
			}
			got, found := s.together(attack{name: "none"}, fit)
			for _, f := range found {
				t.Errorf("without an attack: %s", f)
			}
			for _, m := range regexp.MustCompile(`(?ms)^ +ID: op(\d+)\n.*?Result: (\w+)\n.*?\n----------`).FindAllStringSubmatch(
				got.out+"\n----------", -1) {
				n, err := strconv.Atoi(m[1])
				s.must(err)
				if m[2] == "False" && !strings.Contains(m[0], "is not installed") { // a program that is not installed
					t.Errorf("%s fails without an attack: %s", fit[n/tries], m[0])
				}
			}
			if !strings.Contains(got.out, "Total states run") {
				t.Errorf("no states ran:\n%s", got.out)
			}
		})
	}
}

// TestEveryStateHasAnAttack compares the table with the functions that docs/states.md lists.
func TestEveryStateHasAnAttack(t *testing.T) {
	exempt := harmless()
	var have []string
	for _, o := range operations() {
		have = append(have, o.state)
	}
	documented := regexp.MustCompile("(?m)^- `([a-z_]+)\\.([a-z_]+)`")
	for _, file := range []string{"../../docs/states.md", "../../docs/states-applications.md"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range documented.FindAllStringSubmatch(string(data), -1) {
			name := m[1] + "." + m[2]
			_, family := exempt[m[1]]
			_, one := exempt[name]
			if !slices.Contains(have, name) && !family && !one {
				t.Errorf("%s has no attack: add it to operations, or say in harmless why it touches no path of a user",
					name)
			}
		}
	}
}
