package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// leaving are states by what they leave at PATH in a directory of all users: a file, a dir(ectory), a link, a pipe, or
// nothing.
var leaving = map[string]struct{ states, leaves string }{
	"file.managed":             {"file.managed: [{name: PATH}, {contents: x}]", "file"},
	"file.append":              {"file.append: [{name: PATH}, {text: x}]", "file"},
	"file.serialize":           {"file.serialize: [{name: PATH}, {dataset: {a: b}}]", "file"},
	"file.touch":               {"file.touch: [{name: PATH}]", "file"},
	"file.copy":                {"file.copy: [{name: PATH}, {source: /etc/one}]", "file"},
	"file.hardlink":            {"file.hardlink: [{name: PATH}, {target: /etc/one}]", "file"},
	"file.rename":              {"file.rename: [{name: PATH}, {source: /etc/movedNEEDED}]", "file"},
	"file.directory":           {"file.directory: [{name: PATH}]", "dir"},
	"file.directory parent":    {"file.directory: [{name: PATH/g}, {makedirs: true}]", "dir"},
	"file.managed parent":      {"file.managed: [{name: PATH/k}, {contents: x}, {makedirs: true}]", "dir"},
	"file.recurse":             {"file.recurse: [{name: PATH}, {source: 'salt://tree'}]", "dir"},
	"archive.extracted":        {"archive.extracted: [{name: PATH}, {source: 'salt://a.tar.gz'}]", "dir"},
	"archive.extracted member": {"archive.extracted: [{name: ABOVE}, {source: 'salt://a.tar.gz'}]", "dir"},
	"archive.extracted below":  {"archive.extracted: [{name: ABOVE}, {source: 'salt://a.tar.gz'}]", "file"},
	"git.present":              {"git.present: [{name: PATH}]", "dir"},
	"file.symlink":             {"file.symlink: [{name: PATH}, {target: /etc/one}]", "link"},
	"file.mknod":               {"file.mknod: [{name: PATH}, {ntype: p}]", "pipe"},
	"file.absent":              {"file.absent: [{name: PATH}]", "nothing"},
	"file.missing":             {"file.missing: [{name: PATH}]", "nothing"},
	"file.pruned":              {"file.pruned: [{name: PATH}]", "nothing"},
	"file.rename source":       {"file.rename: [{name: PATHaway}, {source: PATH}]", "nothing"},
	"a removed directory": {"file.directory: [{name: PATH}]\nthen:\n  file.rename: [{name: PATHaway}, {source: PATH}]",
		"nothing"},
	"a directory that replaces a file": {"file.touch: [{name: PATH}]\nthen:\n  file.directory: " +
		"[{name: PATH}, {force: true}]", "dir"},
}

// needing are states by what they need at PATH: each fails if one of the kinds is there.
var needing = map[string]struct {
	states string
	fails  []string
}{
	"a file":      {"file.managed: [{name: PATH}, {contents: y}, {replace: false}]", []string{"dir", "pipe"}},
	"a directory": {"file.directory: [{name: PATH}]", []string{"file", "link", "pipe"}},
	"a directory above": {"file.managed: [{name: PATH/g/h}, {contents: y}, {makedirs: true}]",
		[]string{"file", "link", "pipe"}},
	"a link":      {"file.symlink: [{name: PATH}, {target: /etc/one}]", []string{"file", "dir", "pipe"}},
	"anything":    {"file.exists: [{name: PATH}]", []string{"nothing"}},
	"an old file": {"file.replace: [{name: PATH}, {pattern: x}, {repl: y}]", []string{"nothing", "dir", "pipe"}},
	"nothing":     {"file.missing: [{name: PATH}]", []string{"file", "dir", "link", "pipe"}},
}

// tools are the commands of a host: mknod and git init make what they would.
type tools struct{ root string }

func (tools) Allowed(string) error { return nil }
func (p tools) Run(_ context.Context, c host.Command) (out host.Output, err error) {
	at := filepath.Join(p.root, c.Argv[len(c.Argv)-1])
	switch {
	case strings.HasSuffix(c.Argv[0], "mknod"):
		at = filepath.Join(p.root, c.Argv[2])
		err = unix.Mkfifo(at, 0o644)
	case slices.Contains(c.Argv, "init"):
		err = os.MkdirAll(filepath.Join(at, ".git"), 0o755)
	}
	return out, err
}

// TestContradictionsOfARun runs each state that leaves something at a path before each one that needs something else
// there, in a directory in which any user could have put it. The release is at fault, whether the first state changed
// something or found it.
func TestContradictionsOfARun(t *testing.T) {
	for name, first := range leaving {
		for _, changes := range []bool{true, false} {
			if !changes && slices.Contains(undeclared, name) {
				continue
			}
			t.Run(fmt.Sprintf("%s, with changes %v", name, changes), func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				var one, both strings.Builder
				for needed, second := range needing {
					dir := "/srv/data/" + strings.ReplaceAll(needed, " ", "_")
					prepareContradiction(t, root, dir+"/app", name)
					states := strings.NewReplacer("PATH", dir+"/app", "ABOVE", dir, "NEEDED",
						strings.TrimPrefix(dir, "/srv/data"), "then:", needed+" then:")
					fmt.Fprintf(&one, "%s first:\n  %s\n", needed, states.Replace(first.states))
					second := strings.ReplaceAll(second.states, "PATH", map[bool]string{true: "PATH/file",
						false: "PATH"}[strings.HasSuffix(name, " below")])
					fmt.Fprintf(&both, "%s first:\n  %s\n%s:\n  %s\n", needed, states.Replace(first.states), needed,
						states.Replace(second))
				}
				if !changes {
					runContradiction(t, root, one.String())
				}
				for _, r := range runContradiction(t, root, both.String()) {
					second, is := needing[r.ID()]
					fails := slices.Contains(second.fails, first.leaves)
					switch {
					case refused(r) && name == "file.symlink":
						if host.ByUser(r.Cause()) || !strings.Contains(r.Comment, "an earlier state of this run put the link there") {
							t.Errorf("%s: %v: %s", r.ID(), host.ByUser(r.Cause()), r.Comment)
						}
					case refused(r) && name == "file.hardlink":
						// users could exchange it
					case (r.Outcome == exec.Failed) != fails:
						t.Errorf("%s: %v: %s", r.ID(), r.Outcome, r.Comment)
					case is && fails && (r.Obstruction() != nil ||
						!strings.Contains(r.Comment, "an earlier state of this run")):
						t.Errorf("%s: obstructed by %v: %s", r.ID(), r.Obstruction(), r.Comment)
					}
				}
			})
		}
	}
}

// undeclared are those of leaving that count only if they change something: they leave whatever they find, or cannot
// run a second time.
var undeclared = []string{"archive.extracted below", "file.touch", "file.copy", "file.hardlink", "file.rename",
	"archive.extracted member", "git.present", "a directory that replaces a file", "a removed directory",
	"file.rename source"}

// prepareContradiction makes the directory of a path, which all users can write to, and there what a state removes.
func prepareContradiction(t *testing.T, root, at, name string) {
	t.Helper()
	above := filepath.Join(root, filepath.Dir(at))
	if err := errors.Join(os.MkdirAll(above, 0o755), os.Chmod(above, 0o777)); err != nil {
		t.Fatal(err)
	}
	switch name {
	case "file.pruned":
		if err := os.Mkdir(filepath.Join(root, at), 0o755); err != nil {
			t.Fatal(err)
		}
	case "file.rename":
		hosttest.Put(t, filepath.Join(root, "etc/moved", filepath.Base(filepath.Dir(at))), "x\n", 0o644)
	case "file.absent", "file.rename source":
		hosttest.Put(t, filepath.Join(root, at), "x\n", 0o644)
	}
}

func runContradiction(t *testing.T, root, sls string) []*exec.Result {
	t.Helper()
	for name, text := range map[string]string{"etc/one": "one\n", "etc/two": "two\n", "states/tree/f": "f\n",
		"states/a.tar.gz": string(packed(t)), "states/t.sls": sls, "usr/bin/mknod": "",
		"usr/bin/git": ""} {
		hosttest.Put(t, filepath.Join(root, name), text, 0o755)
	}
	h, err := machine.New(host.Options{Root: root, Commands: tools{root}})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t", "os_family", "Debian", "kernel",
		"Linux"), States: []roots.Env{{Name: "base", Dirs: []string{"/states"}}}})
	p, err := s.Program(t.Context(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(t.Context(), p, nil).All()
}
