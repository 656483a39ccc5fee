package session_test

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Arguments of states at one path, by what they declare there.
const (
	aFile    = "file.managed: [{name: PATH}, {contents: x}]"
	aDir     = "file.directory: [{name: PATH}]"
	forced   = "file.directory: [{name: PATH}, {force: true}]"
	plainDir = "file.directory: [{name: PATH}, {allow_symlink: false}]"
	aTree    = "file.recurse: [{name: PATH}, {source: 'salt://tree'}]"
	unpacked = "archive.extracted: [{name: PATH}, {source: 'salt://a.tar.gz'}]"
	cloned   = "git.latest: [{name: REMOTE}, {target: PATH}, {rev: master}, {branch: master}, {force_clone: true}]"
	toDir    = "file.symlink: [{name: PATH}, {target: DIR/dir}, {force: true}]"
	toFile   = "file.symlink: [{name: PATH}, {target: DIR/file}, {force: true}]"
	dangling = "file.symlink: [{name: PATH}, {target: none}, {force: true}]"
	removed  = "file.absent: [{name: PATH}]"
)

// undoing are pairs of states at one path. The second fails in a run if it has undone what the first declares, and in
// a dry run if that is certain without a look at the host. Where it may not, both succeed in a second run as well.
var undoing = map[string]struct {
	first, second string
	fails, dry    bool
}{
	"file, directory":               {aFile, forced, true, true},
	"file, directory with a backup": {aFile, "file.directory: [{name: PATH}, {backupname: DIR/old}]", true, true},
	"file, repository":              {aFile, cloned, true, true},
	"file, link to a directory":     {aFile, toDir, true, false},
	"file, link to a file":          {aFile, toFile, false, false},
	"file, dangling link":           {aFile, dangling, false, false},
	"file without links, link": {"file.managed: [{name: PATH}, {contents: x}, {follow_symlinks: false}]", toFile, true,
		false},
	"file, text":       {aFile, "file.append: [{name: PATH}, {text: y}]", false, false},
	"file, other text": {aFile, "file.replace: [{name: PATH}, {pattern: z}, {repl: y}]", false, false},
	"file, line": {aFile, "file.line: [{name: PATH}, {content: x}, {mode: ensure}, {after: x}]", false,
		false},
	"file, nothing":                  {aFile, removed, false, false},
	"directory, link to a directory": {aDir, toDir, false, false},
	"directory, link to a file":      {aDir, toFile, true, false},
	"directory, dangling link":       {aDir, dangling, true, false},
	"directory without links, link":  {plainDir, toDir, true, false},
	"forced directory, link":         {forced, toDir, true, false},
	"tree, link to a file":           {aTree, toFile, true, false},
	"tree, link to a directory":      {aTree, toDir, false, false},
	"archive, link to a file":        {unpacked, toFile, true, false},
	"repository, link to a file":     {cloned, toFile, true, false},
	"directory, tree":                {aDir, aTree, false, false},
	"directory, archive":             {aDir, unpacked, false, false},
	"directory, repository":          {aDir, cloned, false, false},
	"tree, directory":                {aTree, forced, false, false},
	"repository, directory":          {cloned, forced, false, false},
	"archive, directory":             {unpacked, forced, false, false},
	"link, directory through it":     {toDir, aDir, false, false},
	"link, tree through it":          {toDir, aTree, false, false},
	"link, archive through it":       {toDir, unpacked, false, false},
	"link, file through it":          {toFile, aFile, false, false},
	"link, directory":                {toDir, forced, true, false},
	"link to a file, directory":      {toFile, forced, true, false},
	"link, file in its place": {toFile, "file.managed: [{name: PATH}, {contents: x}, {follow_symlinks: false}]", true,
		false},
	"nothing, file":          {removed, aFile, false, false},
	"nothing, directory":     {removed, aDir, false, false},
	"link, link":             {toFile, toDir, false, false},
	"guarded file":           {aFile + "\n    - unless: test -d PATH", forced, false, false},
	"guarded directory":      {aFile, forced + "\n    - unless: test -d PATH", true, false},
	"file after a condition": {aFile + "\n    - onchanges: [{file: DIR/changed}]", forced, false, false},
}

// inLines writes the arguments of a state in lines, so that more can follow.
func inLines(state string) string {
	args, more, _ := strings.Cut(state, "\n")
	name, list, _ := strings.Cut(args, ": [{")
	list = strings.TrimSuffix(list, "}]")
	return "  " + name + ":\n    - " + strings.ReplaceAll(list, "}, {", "\n    - ") + "\n" + more + "\n"
}

// TestStatesThatUndoEachOther runs pairs of states at one path, of which the second one can replace what the first one
// made, so that the first one would fail in each later run.
func TestStatesThatUndoEachOther(t *testing.T) {
	remote := t.TempDir()
	git, err := osexec.LookPath("git")
	if err == nil {
		hosttest.Put(t, filepath.Join(remote, "f"), "f\n", 0o644)
		for _, words := range []string{"init -q -b master", "add f", "-c user.name=a -c user.email=a@b commit -q -m f"} {
			if out, err := osexec.Command(git, append([]string{"-C", remote}, strings.Fields(words)...)...).
				CombinedOutput(); err != nil {
				t.Fatalf("git %s: %v: %s", words, err, out)
			}
		}
	}
	for name, c := range undoing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if git == "" && strings.Contains(c.first+c.second, "git.") {
				t.Skip("this machine has no git")
			}
			dir := t.TempDir()
			err := errors.Join(os.Mkdir(dir+"/dir", 0o755), os.WriteFile(dir+"/file", []byte("x\n"), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			sls := fmt.Sprintf("DIR/changed:\n  file.managed:\n    - contents: x\none:\n%stwo:\n%s", inLines(c.first),
				inLines(c.second))
			sls = strings.NewReplacer("PATH", dir+"/p", "DIR", dir, "REMOTE", remote).Replace(sls)
			dry, first := runUndoing(t, sls, true), runUndoing(t, sls, false)
			again := first
			if !c.fails {
				again = runUndoing(t, sls, false)
			}
			for i, run := range [][]*exec.Result{dry, first, again} {
				for _, r := range run {
					fails := r.ID() == "two" && (c.fails && i > 0 || c.dry && i == 0)
					says := strings.Contains(r.Comment, "two (") && strings.Contains(r.Comment, "one (") &&
						strings.Contains(r.Comment, dir+"/p") && strings.Contains(r.Hint, "remove one of the two")
					if (r.Outcome == exec.Failed) != fails ||
						fails && (!says || host.ByUser(r.Cause()) || r.Obstruction() != nil) {
						t.Errorf("run %d: %s: %v: %s (%s)", i, r.ID(), r.Outcome, r.Comment, r.Hint)
					}
				}
			}
		})
	}
}

// runUndoing runs states on this machine, for which every path is below the test's own directory.
func runUndoing(t *testing.T, sls string, dry bool) []*exec.Result {
	t.Helper()
	states := t.TempDir()
	for name, text := range map[string]string{"tree/f": "f\n", "a.tar.gz": string(packed(t)), "t.sls": sls} {
		hosttest.Put(t, filepath.Join(states, name), text, 0o644)
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t", "os_family", "Debian", "kernel",
		"Linux", "shell", "/bin/sh"), States: []roots.Env{{Name: "base", Dirs: []string{states}}}, Test: dry})
	p, err := s.Program(t.Context(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(t.Context(), p, nil).All()
}
