package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// tool is a program in its own directory that writes a file when it runs.
type tool struct{ dir, file, ran string }

func newTool(t *testing.T, first string) tool {
	t.Helper()
	top := t.TempDir()
	for dir := top; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := tool{dir: filepath.Join(top, "tools"), ran: filepath.Join(top, "ran")}
	p.file = filepath.Join(p.dir, "tool")
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file, []byte(first+"\ntouch "+p.ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProgramsThatOtherUsersCanReplaceAreNotRun checks the programs of agent.yaml, which root runs.
func TestProgramsThatOtherUsersCanReplaceAreNotRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	shares := map[string]func(p tool) error{
		"the program":   func(p tool) error { return os.Chown(p.file, projectUser, projectUser) },
		"its directory": func(p tool) error { return os.Chown(p.dir, projectUser, projectUser) },
		"its mode":      func(p tool) error { return os.Chmod(p.file, 0o777) },
	}
	names := map[string]func(l *lab, program string){
		"notify.command": func(l *lab, program string) { l.Config.Notify.Command = []string{program} },
		"notify.mail.sendmail": func(l *lab, program string) {
			l.Config.Notify.MailTo, l.Config.Notify.Sendmail = []string{"ops@example.com"}, program
		},
		"event_command": func(l *lab, program string) { l.Config.EventCommand = []string{program} },
		"engine_command": func(l *lab, program string) {
			l.Config.Engine, l.Config.EngineCommand = "command", []string{program}
		},
	}
	for setting, name := range names {
		for what, share := range shares {
			t.Run(setting+" "+what, func(t *testing.T) {
				l, p := newLab(t), newTool(t, "#!/bin/sh")
				name(l, p.file)
				l.Config.Notify.On = []string{"success", "failure"}
				if err := share(p); err != nil {
					t.Fatal(err)
				}
				l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
				expectRefusedProgram(t, l, setting, p)
			})
		}
	}
	t.Run("interpreter", func(t *testing.T) {
		l, runs := newLab(t), newTool(t, "#!/bin/sh")
		if err := os.Chown(runs.file, projectUser, projectUser); err != nil {
			t.Fatal(err)
		}
		l.Config.Notify.Command = []string{newTool(t, "#!"+runs.file).file}
		l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
		expectRefusedProgram(t, l, "notify.command", runs)
	})
	t.Run("PATH", func(t *testing.T) {
		l, p := newLab(t), newTool(t, "#!/bin/sh")
		if err := os.Chown(p.dir, projectUser, projectUser); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", p.dir+":"+os.Getenv("PATH"))
		l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
		expectRefusedProgram(t, l, "PATH", p)
	})
}

// expectRefusedProgram runs a deploy that the agent must refuse because of a program.
func expectRefusedProgram(t *testing.T, l *lab, setting string, p tool) {
	t.Helper()
	_, err := l.deploy()
	if exit.Code(err) != exit.Refused || err == nil || !strings.Contains(err.Error(), "("+setting+")") ||
		!strings.Contains(err.Error(), p.dir) {
		t.Errorf("got code %d, %v", exit.Code(err), err)
	}
	// A directory is given to root; a file is replaced, since a user may have the earlier one open.
	if hint := diag.HintOf(err); !strings.Contains(hint, "chown root: "+p.dir) &&
		!strings.Contains(hint, "mv -f "+p.file+".new "+p.file) {
		t.Errorf("the hint is %q", hint)
	}
	if _, err := os.Stat(p.ran); err == nil {
		t.Error("the program was run")
	}
}

// TestHooksAreNotRunByProgramsOfOtherUsers has a hook whose first line names a program that a user can replace.
func TestHooksAreNotRunByProgramsOfOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	l := newHookLab(t)
	tools := filepath.Join(l.Layout.Root, "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(l.Layout.Root, "bin/sh"), filepath.Join(tools, "sh")); err != nil {
		t.Fatal(err)
	}
	release := func(version, runs string) {
		l.repo.Release("myapp", version, "testing",
			artifacttest.Files{"version": version, "hooks/pre-release.d/10": "#!" + runs + "\necho " + version + " ran\n"})
	}
	release("1", "/bin/sh")
	l.expect(exit.OK)
	if err := os.Chown(tools, projectUser, projectUser); err != nil {
		t.Fatal(err)
	}
	release("2", "/tools/sh")
	r, err := l.deploy()
	if exit.Code(err) != exit.RolledBack ||
		!strings.Contains(err.Error(), "is run by /tools/sh, and user 64011 can change "+tools) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(diag.HintOf(err), "chown root: "+tools) {
		t.Errorf("the hint is %q", diag.HintOf(err))
	}
	if bad := l.inQuarantine(); len(bad) != 0 || r.Fault == nil || r.Fault.Of != report.FaultOfHost {
		t.Errorf("the quarantine is %v, the fault is %+v", bad, r.Fault)
	}
	for _, h := range r.Hooks["pre-release"] {
		if strings.Contains(h.Output, "2 ran") {
			t.Errorf("the program was run: %+v", h)
		}
	}
	if err := os.Chown(tools, 0, 0); err != nil {
		t.Fatal(err)
	}
	if r := l.expect(exit.OK); len(r.Hooks["pre-release"]) != 1 || r.Hooks["pre-release"][0].Output != "2 ran" {
		t.Errorf("with a program of root's: %+v", r.Hooks)
	}
}

// TestGrainsAreNotMadeByProgramsOfOtherUsers has a grain program whose first line names a program that a user can
// replace.
func TestGrainsAreNotMadeByProgramsOfOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of other users")
	}
	l := newHookLab(t)
	tools, programs := filepath.Join(l.Layout.Root, "tools"), filepath.Join(l.Layout.Configuration(), "grains.d")
	for _, dir := range []string{tools, programs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(l.Layout.Root, "bin/sh"), filepath.Join(tools, "sh")); err != nil {
		t.Fatal(err)
	}
	program := "#!/tools/sh\necho '{\"rack\": \"r1\"}'\n"
	if err := os.WriteFile(filepath.Join(programs, "10"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, owner := range []int{0, projectUser} {
		if err := os.Chown(tools, owner, owner); err != nil {
			t.Fatal(err)
		}
		all, warnings, err := l.Grains(t.Context(), grains.Identity{}, site.GrainDirs{})
		if err != nil {
			t.Fatal(err)
		}
		refused := len(warnings) == 1 &&
			strings.Contains(warnings[0].Error(), "is run by /tools/sh, and user 64011 can change "+tools)
		if ran := all.Value("rack") == "r1"; ran != (owner == 0) || refused == ran {
			t.Errorf("tools of user %d: rack is %v, warnings %v", owner, all.Value("rack"), warnings)
		}
	}
}
