package session_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/git"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// clones has a repository of root, from which each test makes a clone.
type clones struct {
	*testing.T
	dir string
	ran string // a file with the IDs of the users that ran the program evil
}

func newClones(t *testing.T) clones {
	t.Helper()
	if _, err := osexec.LookPath("git"); err != nil || os.Geteuid() != 0 {
		t.Skip("this requires root and a git")
	}
	c := clones{t, t.TempDir(), ""}
	c.ran = filepath.Join(c.dir, "ran")
	c.must(errors.Join(os.Chmod(filepath.Dir(c.dir), 0o755), os.Chmod(c.dir, 0o755)))
	hosttest.Put(t, filepath.Join(c.dir, "evil"), "#!/bin/sh\nid -u >> "+c.ran+"\n", 0o755)
	c.must(os.Chmod(filepath.Join(c.dir, "evil"), 0o755))
	for _, words := range []string{
		"init --quiet --initial-branch=master remote", "-C remote commit --quiet --allow-empty -m one",
		"init --quiet --initial-branch=master part", "-C part commit --quiet --allow-empty -m one",
		"-C remote -c protocol.file.allow=always submodule --quiet add " + c.dir + "/part sub",
		"-C remote commit --quiet -m two", "-C remote branch other",
	} {
		c.git(strings.Fields(words)...)
	}
	return c
}

func (c clones) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c clones) git(args ...string) {
	c.Helper()
	cmd := osexec.Command("git", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b", "SUDO_UID=")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.Fatalf("git %q: %v: %s", args, err, out)
	}
}

// fresh replaces the clone by a new one.
func (c clones) fresh() string {
	c.Helper()
	clone := filepath.Join(c.dir, "clone")
	c.must(errors.Join(os.RemoveAll(clone), os.RemoveAll(c.ran), os.RemoveAll(filepath.Join(c.dir, "more"))))
	c.git("-c", "protocol.file.allow=always", "clone", "--quiet", "--recurse-submodules", filepath.Join(c.dir, "remote"),
		clone)
	return clone
}

// apply runs the state in an SLS text. CLONE and REMOTE in it stand for the repositories.
func (c clones) apply(sls string) *exec.Result {
	c.Helper()
	sls = strings.NewReplacer("REMOTE", filepath.Join(c.dir, "remote"), "CLONE",
		filepath.Join(c.dir, "clone")).Replace(sls)
	hosttest.Put(c.T, filepath.Join(c.dir, "states/t.sls"), sls, 0o644)
	h, err := machine.New(host.Options{})
	c.must(err)
	s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t"),
		States: []roots.Env{{Name: "base", Dirs: []string{filepath.Join(c.dir, "states")}}}})
	p, err := s.Program(c.Context(), s.Named("t"))
	if err != nil { // a function in the template failed
		return &exec.Result{Outcome: exec.Failed, Comment: err.Error()}
	}
	return s.Run(c.Context(), p, nil).All()[0]
}

const gitLatest = "t: {git.latest: [{name: REMOTE}, {target: CLONE}, {rev: master}, {branch: master}]}"

// TestGitRefusesCloneConfiguredByOthers gives a part of root's clone to another user or a group, one part at a time.
func TestGitRefusesCloneConfiguredByOthers(t *testing.T) {
	c := newClones(t)
	group := func(p string, mode os.FileMode) error {
		return errors.Join(os.Chown(p, 0, nobody), os.Chmod(p, mode))
	}
	own := func(p string) error { return os.Lchown(p, nobody, 0) }
	put := func(p, text string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644))
	}
	for name, o := range map[string]struct {
		change func(clone string) error
		at     string // end of the path in the error; "" if the clone is accepted
	}{
		"root's":                     {func(string) error { return nil }, ""},
		"a user's file in the clone": {func(d string) error { return errors.Join(put(d+"/f", "x"), own(d+"/f")) }, ""},
		"a group's directory in the clone": {func(
			d string) error {
			return errors.Join(os.Mkdir(d+"/data", 0o755), group(d+"/data", 0o2775))
		}, ""},
		"packs of a group":           {func(d string) error { return group(d+"/.git/objects/pack", 0o2775) }, ""},
		"objects of a group":         {func(d string) error { return group(d+"/.git/objects", 0o2775) }, "/.git/objects"},
		"the clone":                  {func(d string) error { return group(d, 0o775) }, "/clone"},
		"the repository":             {func(d string) error { return group(d+"/.git", 0o775) }, "/clone/.git"},
		"configuration of a group":   {func(d string) error { return group(d+"/.git/config", 0o664) }, "/.git/config"},
		"configuration of a user":    {func(d string) error { return own(d + "/.git/config") }, "/.git/config"},
		"configuration of all users": {func(d string) error { return os.Chmod(d+"/.git/config", 0o666) }, "/.git/config"},
		"the work tree's configuration": {func(d string) error {
			return errors.Join(put(d+"/.git/config.worktree", ""), own(d+"/.git/config.worktree"))
		}, "/.git/config.worktree"},
		"hooks": {func(d string) error { return group(d+"/.git/hooks", 0o775) }, "/.git/hooks"},
		"a hook": {func(d string) error {
			return errors.Join(put(d+"/.git/hooks/post-merge", ""), own(d+"/.git/hooks/post-merge"))
		}, "/hooks/post-merge"},
		"attributes": {func(d string) error {
			return errors.Join(put(d+"/.git/info/attributes", "* filter=x"), own(d+"/.git/info/attributes"))
		}, "/info/attributes"},
		"alternates": {func(d string) error {
			return errors.Join(put(d+"/.git/objects/info/alternates", ""), own(d+"/.git/objects/info/alternates"))
		}, "/info/alternates"},
		"an included file": {func(d string) error {
			c.git("-C", d, "config", "Include.Path", "../../more/config")
			return errors.Join(put(c.dir+"/more/config", ""), own(c.dir+"/more/config"))
		}, "/more/config"},
		"a nested included file": {func(d string) error {
			return errors.Join(put(d+"/.git/one", "[includeIf \"gitdir:/a]b\"] path = \"../../more/con\\\nfig\" # x\n"),
				put(d+"/.git/config", "[include]\n\tpath=one"), put(c.dir+"/more/config", ""), own(c.dir+"/more/config"))
		}, "/more/config"},
		"a directory of hooks": {func(d string) error {
			c.git("-C", d, "config", "core.hooksPath", c.dir+"/more")
			return errors.Join(put(c.dir+"/more/x", ""), group(c.dir+"/more", 0o775))
		}, "/more"},
		"a submodule": {func(d string) error { return own(d + "/.git/modules/sub/config") },
			"/modules/sub/config"},
		"directory of a submodule": {func(d string) error { return group(d+"/sub", 0o775) }, "/sub"},
		".gitmodules":              {func(d string) error { return own(d + "/.gitmodules") }, "/.gitmodules"},
		"a submodule without .gitmodules": {func(d string) error {
			return errors.Join(os.Remove(d+"/.gitmodules"), own(d+"/.git/modules/sub/config"))
		}, "/modules/sub/config"},
		"empty directory of a submodule": {func(d string) error {
			return errors.Join(os.Remove(d+"/.gitmodules"), os.RemoveAll(d+"/sub"), os.Mkdir(d+"/sub", 0o755), own(d+"/sub"))
		}, "/sub"},
		"a link to a user's file": {func(
			d string) error {
			return linked(d+"/.git/config", c.dir+"/more/config")
		}, "/.git/config"},
		"a repository in another directory": {func(
			d string) error {
			return group(moved(t, d, c.dir+"/more")+"/config", 0o664)
		}, "/more/git/config"},
		"the file with the path of the repository": {func(
			d string) error {
			_ = moved(t, d, c.dir+"/more")
			return own(d + "/.git")
		}, "/clone/.git"},
		"another work tree": {func(d string) error {
			c.must(os.Rename(d, c.dir+"/more"))
			c.git("-C", c.dir+"/more", "worktree", "add", "--quiet", "-b", "third", d)
			return own(c.dir + "/more/.git/config")
		}, "/more/.git/config"},
	} {
		t.Run(name, func(t *testing.T) {
			c.T = t
			clone := c.fresh()
			c.must(o.change(clone))
			for _, sls := range []string{gitLatest,
				"t: {test.nop: [{name: '{{ salt[\"git.status\"](\"CLONE\") | length }}'}]}"} {
				r := c.apply(sls)
				refused := r.Outcome == exec.Failed && strings.Contains(r.Comment, o.at+" is controlled by ") &&
					strings.Contains(r.Comment, "could have a program that root runs there run another")
				if (o.at == "") != (r.Outcome != exec.Failed) || o.at != "" && !refused {
					t.Errorf("%s: %v: %s", sls, r.Outcome, r.Comment)
				}
			}
			if !strings.HasPrefix(name, "configuration of") { // git itself refuses some of the others
				return
			}
			if r := c.apply(gitLatest[:len(gitLatest)-2] + ", {follow_unsafe: true}]}"); r.Outcome == exec.Failed {
				t.Errorf("with follow_unsafe: %s", r.Comment)
			}
		})
	}
}

// linked replaces a file by a link to a user's copy of it.
func linked(p, to string) error {
	data, err := os.ReadFile(p)
	return errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644), os.Lchown(to, nobody, 0),
		os.Remove(p), os.Symlink(to, p))
}

// moved moves the repository out of a clone, and leaves a .git file with its new path.
func moved(t *testing.T, clone, to string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(to, 0o755), os.RemoveAll(clone+"/sub/.git"), os.Rename(clone+"/.git", to+"/git"),
		os.WriteFile(clone+"/.git", []byte("gitdir: ../more/git\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return to + "/git"
}

// TestEveryGitFunctionRefusesForeignConfiguration calls each state and function of git in a clone whose configuration a
// group may write to, or a user owns.
func TestEveryGitFunctionRefusesForeignConfiguration(t *testing.T) {
	c := newClones(t)
	calls := []string{gitLatest,
		"t: {git.detached: [{name: REMOTE}, {target: CLONE}, {rev: master}]}",
		"t: {git.cloned: [{name: REMOTE}, {target: CLONE}, {branch: other}]}",
		"t: {git.config_set: [{name: a.b}, {repo: CLONE}, {value: c}]}",
		"t: {git.config_unset: [{name: core.filemode}, {repo: CLONE}]}",
		"t: {git.latest: [{name: REMOTE}, {target: CLONE}, {user: root}]}",
		"t: {test.nop: [{onlyif: [{fun: git.status, cwd: CLONE}]}]}",
	}
	h, err := machine.New(host.Options{})
	c.must(err)
	for _, name := range slices.Sorted(maps.Keys(git.Functions(&function.Facts{Host: h}))) {
		args := map[string]string{"git.symbolic_ref": "\"CLONE\", \"HEAD\"", "git.config_get": "\"a.b\", \"CLONE\"",
			"git.version": ""}
		if _, ok := args[name]; !ok {
			args[name] = "\"CLONE\""
		}
		if args[name] != "" {
			calls = append(calls, fmt.Sprintf("t: {test.nop: [{name: '{{ salt[\"%s\"](%s) }}'}]}", name, args[name]))
		}
	}
	clone := c.fresh()
	c.git("-C", clone, "config", "core.fsmonitor", c.dir+"/evil")
	for _, sls := range calls {
		for _, uid := range []int{0, nobody} {
			c.must(errors.Join(os.Chown(clone+"/.git/config", 0, 0), os.Chmod(clone+"/.git/config", 0o644)))
			if uid == 0 {
				c.must(errors.Join(os.Chown(clone+"/.git/config", 0, nobody), os.Chmod(clone+"/.git/config", 0o664)))
			} else {
				c.must(os.Lchown(clone+"/.git/config", nobody, 0))
			}
			r := c.apply(sls)
			if r.Outcome != exec.Failed || !strings.Contains(r.Comment, "/.git/config is controlled by ") {
				t.Errorf("%s: %v: %s", sls, r.Outcome, r.Comment)
			}
			if by, err := os.ReadFile(c.ran); err == nil {
				t.Errorf("%s: the program ran as %q", sls, by)
			}
		}
	}
}

// TestGitOfUsersRefusesForeignConfiguration checks that git does not run for a user in a clone that another user
// configured.
func TestGitOfUsersRefusesForeignConfiguration(t *testing.T) {
	c := newClones(t)
	clone := c.fresh()
	for _, dir := range []string{"clone", "remote"} {
		c.must(filepath.WalkDir(filepath.Join(c.dir, dir), func(p string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(p, nobody, nobody))
		}))
	}
	if r := c.apply(gitLatest); r.Outcome == exec.Failed {
		t.Errorf("in the user's own clone: %s", r.Comment)
	}
	c.must(os.Chown(clone+"/.git/config", 64009, nobody))
	if r := c.apply(gitLatest); r.Outcome != exec.Failed || !strings.Contains(r.Hint, "runuser -u nobody -- cp -PR ") ||
		!strings.Contains(r.Comment, "/.git/config is controlled by user 64009, who could have a program that nobody runs") {
		t.Errorf("with a configuration of another user: %v: %s (%s)", r.Outcome, r.Comment, r.Hint)
	}
}

// TestUsersChangesOfACloneAreTheUsers checks that what a user does to a clone of that user's counts as that user's, and
// not as a fault of the release.
func TestUsersChangesOfACloneAreTheUsers(t *testing.T) {
	c := newClones(t)
	commit := func(d string) error { c.git("-C", d, "commit", "--quiet", "--allow-empty", "-m", "own"); return nil }
	for name, change := range map[string]func(clone string) error{
		"commits": commit,
		"changes": func(d string) error {
			c.git("-C", d, "reset", "--quiet", "--hard", "HEAD~")
			return os.WriteFile(d+"/.gitmodules", []byte("x"), 0o644)
		},
		"broken configuration": func(d string) error { return os.WriteFile(d+"/.git/config", []byte("[x"), 0o644) },
		"a bare repository": func(d string) error {
			return errors.Join(os.RemoveAll(d), osexec.Command("git", "init", "--quiet", "--bare", d).Run())
		},
	} {
		clone := c.fresh()
		c.must(change(clone))
		if name == "changes" {
			c.git("-C", clone, "add", ".gitmodules")
		}
		out, err := osexec.Command("chown", "-R", "nobody", clone, filepath.Join(c.dir, "remote")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r := c.apply("t: {git.latest: [{name: REMOTE}, {target: CLONE}, {rev: master}, {user: nobody}]}")
		if r.Outcome != exec.Failed || r.Obstruction() == nil {
			t.Errorf("%s: %v, the obstruction is %v: %s", name, r.Outcome, r.Obstruction(), r.Comment)
		}
		c.must(osexec.Command("chown", "-R", "root", filepath.Join(c.dir, "remote")).Run())
	}
}
