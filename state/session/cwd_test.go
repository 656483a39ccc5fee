package session_test

import (
	"os"
	exec2 "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestWorkingDirectories checks the working directories of commands of the user nobody. A command may start in a
// directory that its user may enter, also through links of that user, but not through links of another user. A refusal
// must not say that the directory is missing.
func TestWorkingDirectories(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("commands of other users require root")
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nobody, known, err := h.Accounts.User("nobody")
	if err != nil || !known {
		t.Skip("this machine has no user nobody")
	}
	dir, err := os.MkdirTemp("/tmp", "cwd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, mode := range map[string]os.FileMode{"": 0o755, "home": 0o755, "bob": 0o755, "open": 0o755, "closed": 0o700,
		"closed/in": 0o755, "states": 0o755} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"home/open": "open", "home/closed": "closed", "home/in": "closed/in",
		"bob/open": "open"} {
		if err := os.Symlink(filepath.Join(dir, target), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, uid := range map[string]int{"home": nobody.UID, "home/open": nobody.UID, "home/closed": nobody.UID,
		"home/in": nobody.UID, "bob": ann, "bob/open": ann} {
		if err := os.Lchown(filepath.Join(dir, name), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	for cwd, want := range map[string]string{
		"home": "", "home/open": "", "open": "", "home/none": "does not exist",
		"closed": "", "closed/in": "", "home/closed": "cannot enter", "home/in": "cannot enter", "bob/open": "refused",
	} {
		sls := "t: {cmd.run: [{name: 'readlink /proc/self/cwd || readlink /proc/$PPID/cwd'}, {runas: nobody}, {cwd: " + dir +
			"/" + cwd + "}]}"
		r := runLocally(t, h, dir, sls)
		if want == "" {
			if got, _ := filepath.EvalSymlinks(filepath.Join(dir, cwd)); r.Outcome != exec.Succeeded ||
				value.Str(r.Changes.Value("stdout")) != got {
				t.Errorf("%s: %v: %s, %s", cwd, r.Outcome, r.Comment, value.Repr(r.Changes))
			}
			continue
		}
		if r.Outcome != exec.Failed || !strings.Contains(r.Comment, want) ||
			strings.Contains(r.Comment, "does not exist") != (want == "does not exist") || r.Hint == "" {
			t.Errorf("%s: %v: %s\nhint: %s", cwd, r.Outcome, r.Comment, r.Hint)
		}
	}
	if r := runLocally(t, h, dir, "t: {cmd.run: [{name: pwd -P}, {cwd: "+dir+"/home/open}]}"); r.Outcome != exec.Failed ||
		strings.Contains(r.Comment, "does not exist") || !strings.Contains(r.Comment, "refused") {
		t.Errorf("as root: %v: %s", r.Outcome, r.Comment)
	}
}

// TestACommandInARoot runs a command in a root that has only a shell. The command must not act on the machine.
func TestACommandInARoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("entering a root requires root")
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"states", "root/srv", "root/proc"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shell(t, dir+"/root")
	r := runLocally(t, h, dir, "t: {cmd.run: [{name: 'pwd; echo inside > /made'}, {root: "+dir+"/root}, {cwd: /srv}]}")
	if got, _ := os.ReadFile(dir + "/root/made"); r.Outcome != exec.Succeeded ||
		value.Str(r.Changes.Value("stdout")) != "/srv" || string(got) != "inside\n" {
		t.Errorf("%v: %s, %s, made %q", r.Outcome, r.Comment, value.Repr(r.Changes), got)
	}
	for sls, want := range map[string]string{
		"t: {cmd.run: [{name: id}, {root: " + dir + "/none}]}":                   "does not exist",
		"t: {cmd.run: [{name: id}, {root: root}]}":                               "not an absolute path",
		"t: {cmd.script: [{name: 'salt://t.sls'}, {root: " + dir + "/root}]}":    "has no root",
		"t: {cmd.run: [{name: 'exit 7'}, {root: " + dir + "/root}]}":             "code 7",
		"t: {cmd.run: [{name: 'true'}, {root: " + dir + "/root}, {cwd: /none}]}": "code 126",
	} {
		if r := runLocally(t, h, dir, sls); r.Outcome != exec.Failed || !strings.Contains(r.Comment, want) {
			t.Errorf("%s: %v: %s", sls, r.Outcome, r.Comment)
		}
	}
}

// shell copies a shell and its libraries into a root.
func shell(t *testing.T, root string) {
	t.Helper()
	libraries, err := exec2.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Skip("ldd does not list the libraries of the shell")
	}
	for _, file := range append(strings.Fields(string(libraries)), "/bin/sh") {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a word that is not a file
		}
		if err := os.MkdirAll(filepath.Dir(root+file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+file, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func runLocally(t *testing.T, h *host.Host, dir, sls string) *exec.Result {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "states/t.sls"), []byte(sls), 0o644); err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t", "os_family", "Debian", "kernel",
		"Linux"), States: []roots.Env{{Name: "base", Dirs: []string{dir + "/states"}}}})
	p, err := s.Program(t.Context(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(t.Context(), p, nil).All()[0]
}
