package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const ownProgram = "/usr/bin/corpus-agent"

// working is a program that passes every test, and records its arguments.
const working = `#!/bin/sh
echo "$*" >> "$ASKED"
echo corpus-agent %s
`

// withProgram gives a host the program and the units with which it starts its agent.
func withProgram(t *testing.T, version string) (l *lab, requests func() string) {
	t.Helper()
	l = newNativeLab(t)
	path := l.Layout.Path(ownProgram)
	log := filepath.Join(t.TempDir(), "asked")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, working, version), 0o755); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "running") // the file of the running process
	if err := os.WriteFile(image, fmt.Appendf(nil, working, version), 0o755); err != nil {
		t.Fatal(err)
	}
	l.Self = &self.Self{
		Executable: path, Image: image, Files: []string{l.Layout.Config()},
		UnitDirs: []string{l.Layout.Path("/etc/systemd/system")},
		Env:      []string{"PATH=/usr/bin:/bin", "ASKED=" + log, "CONFIG=" + l.Layout.Config()}, Limit: 5 * time.Second,
	}
	return l, func() string {
		data, _ := os.ReadFile(log)
		return strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", ", ")
	}
}

// program returns a state that replaces the program.
func program(script string) string {
	return ownProgram + ":\n  file.managed:\n    - mode: '0755'\n    - contents: |\n        " +
		strings.ReplaceAll(strings.TrimSpace(script), "\n", "\n        ") + "\n"
}

// runs checks the version of the host's program.
func (l *lab) runs(version string) {
	l.t.Helper()
	data, err := os.ReadFile(l.Layout.Path(ownProgram))
	if err != nil || string(data) != fmt.Sprintf(working, version) {
		l.t.Errorf("the host's program is %q, %v; want that of version %s", data, err, version)
	}
	if info, err := os.Stat(l.Layout.Path(ownProgram)); err == nil && info.Mode().Perm() != 0o755 {
		l.t.Errorf("the host's program has mode %v", info.Mode())
	}
}

func TestANewAgentIsTriedBeforeTheReleaseCounts(t *testing.T) {
	l, requests := withProgram(t, "1")
	l.states("1", "nothing:\n  test.nop: []\n")
	l.expect(exit.OK)
	if got := requests(); got != "" {
		t.Errorf("a deploy that does not change the agent ran a trial: %s", got)
	}
	l.states("2", program(fmt.Sprintf(working, "2")))
	noted(t, l.expect(exit.OK), "was tried and works: corpus-agent 2")
	if got := requests(); got != "version, config check, status, converge --test" {
		t.Errorf("the trial ran the new agent with %s", got)
	}
	l.runs("2")
	l.expect(exit.OK)
	if got := requests(); strings.Count(got, "version") != 1 {
		t.Errorf("a run without changes ran a trial: %s", got)
	}
}

// broken are programs that do not work, by the expected error.
func broken() map[string]string {
	return map[string]string{
		"version: exit status 1":             program("#!/bin/sh\nexit 1"),
		"segmentation fault":                 program("#!/bin/sh\nkill -SEGV $$"),
		"no answer within":                   program("#!/bin/sh\nsleep 600"),
		"exec format error":                  program("a program for another machine"),
		"it cannot be started: no such file": program("#!/no/such/interpreter"),
		"config check: exit status 2: unknown setting": program("#!/bin/sh\n[ $1 = version ] && exit\necho unknown " +
			"setting >&2; exit 2"),
		"status: exit status 2":                         program("#!/bin/sh\n[ $1 != status ] || exit 2"),
		"converge --test: exit status 3":                program("#!/bin/sh\n[ $1 != converge ] || exit 3"),
		"it cannot be started: no such file or directo": ownProgram + ":\n  file.absent: []\n",
		"it cannot be started: permission denied": ownProgram + ":\n  file.managed:\n    - mode: '0644'\n    - " +
			"replace: False\n",
	}
}

func TestReleaseWithBrokenAgentIsRolledBack(t *testing.T) {
	for want, states := range broken() {
		t.Run(want, func(t *testing.T) {
			l, _ := withProgram(t, "1")
			if strings.Contains(want, "no answer") {
				l.Self.Limit = 500 * time.Millisecond
			}
			l.states("1", "nothing:\n  test.nop: []\n")
			l.expect(exit.OK)
			l.states("2", states)
			r := l.expect(exit.RolledBack)
			if !strings.Contains(r.Error, "the agent that this host would run next does not work") ||
				!strings.Contains(r.Error, want) || !strings.Contains(r.Hint, "troubleshooting") {
				t.Errorf("error %q, hint %q; want %q in it", r.Error, r.Hint, want)
			}
			l.links("1", "1", "")
			l.runs("1")
			noted(t, r, "was tried and works: corpus-agent 1")
			l.expect(exit.OK)
			l.runs("1")
		})
	}
}

func TestFirstDeployWithBrokenAgentFails(t *testing.T) {
	l, _ := withProgram(t, "1")
	l.states("1", program("#!/bin/sh\nexit 1"))
	r := l.expect(exit.Failed)
	if !strings.Contains(r.Error, "does not work") {
		t.Errorf("error %q", r.Error)
	}
	l.links("1", "", "")
	l.runs("1")
}

func TestAgentLargerThanJournalLimitIsRestored(t *testing.T) {
	l, _ := withProgram(t, "1")
	l.Config.UndoFileLimit = 10
	l.states("1", "nothing:\n  test.nop: []\n")
	l.expect(exit.OK)
	l.states("2", program("#!/bin/sh\nexit 1"))
	noted(t, l.expect(exit.RolledBack), "this run restored their earlier content")
	l.runs("1")
}

// TestConvergeThatBreaksAgentIsUndone has the states of the good release replace the agent in a later tick, as
// pkg.latest does.
func TestConvergeThatBreaksAgentIsUndone(t *testing.T) {
	l, _ := withProgram(t, "1")
	source := filepath.Join(l.Layout.Root, "agent.src")
	if err := os.WriteFile(source, fmt.Appendf(nil, working, "1"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.states("1", ownProgram+":\n  file.managed:\n    - source: /agent.src\n    - mode: '0755'\n")
	l.expect(exit.OK)
	if err := os.WriteFile(source, []byte("#!/bin/sh\nexit 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := l.expect(exit.Failed)
	if !strings.Contains(r.Error, "what this run changed was undone") {
		t.Errorf("error %q", r.Error)
	}
	l.runs("1")
	l.links("1", "1", "")
}

func TestABrokenConfigurationIsRolledBack(t *testing.T) {
	l, _ := withProgram(t, "1")
	checking := "#!/bin/sh\n[ \"$1\" != config ] || ! grep -q nonsense $CONFIG 2>/dev/null || { echo unknown setting " +
		"nonsense; exit 2; }\n"
	l.states("1", program(checking))
	l.expect(exit.OK)
	l.states("2",
		program(checking)+"/etc/corpus/agent.yaml:\n  file.managed:\n    - makedirs: True\n    - contents: 'nonsense: 1'\n")
	if r := l.expect(exit.RolledBack); !strings.Contains(r.Error, "unknown setting nonsense") {
		t.Errorf("error %q", r.Error)
	}
	if _, err := os.Stat(l.Layout.Config()); err == nil {
		t.Error("the configuration remains on the host")
	}
}

// systemd replaces systemctl by a program that prints an answer; states change it like the files that it replaces.
func systemd(l *lab, answer string) {
	l.Self.Systemctl = func(context.Context, ...string) (string, error) {
		state, err := os.ReadFile(l.Layout.Path("/timer"))
		if err != nil {
			state = []byte("enabled active loaded")
		}
		words := strings.Fields(string(state))
		return fmt.Sprintf(answer, words[2], words[0], words[1]), nil
	}
}

const unitsAnswer = `Id=corpus-agent.service
LoadState=loaded
UnitFileState=static
ActiveState=activating
ExecStart={ path=/usr/bin/corpus-agent ; argv[]=/usr/bin/corpus-agent deploy ; ignore_errors=no ; start_time=[n/a] ; pid=0 }

Id=corpus-agent.timer
LoadState=%s
UnitFileState=%s
ActiveState=%s
`

func TestReleaseThatRemovesAgentUnitsIsRolledBack(t *testing.T) {
	for state, want := range map[string]string{
		"disabled active loaded":    "corpus-agent.timer was enabled and is disabled",
		"enabled inactive loaded":   "corpus-agent.timer ran and is inactive",
		"masked inactive masked":    "systemd does not load corpus-agent.timer any more: masked",
		"enabled active not-found":  "systemd does not load corpus-agent.timer any more: not-found",
		"enabled active bad-settng": "bad-settng",
	} {
		t.Run(state, func(t *testing.T) {
			l, _ := withProgram(t, "1")
			systemd(l, strings.ReplaceAll(unitsAnswer, ownProgram, l.Layout.Path(ownProgram)))
			l.states("1", "nothing:\n  test.nop: []\n")
			l.expect(exit.OK)
			l.states("2", "/timer:\n  file.managed:\n    - contents: "+state+"\n")
			if r := l.expect(exit.RolledBack); !strings.Contains(r.Error, want) {
				t.Errorf("error %q, want %q in it", r.Error, want)
			}
			l.expect(exit.OK)
		})
	}
}

func TestDisabledTimerIsAllowed(t *testing.T) {
	l, _ := withProgram(t, "1")
	systemd(l, strings.ReplaceAll(unitsAnswer, ownProgram, l.Layout.Path(ownProgram)))
	if err := os.WriteFile(l.Layout.Path("/timer"), []byte("disabled inactive loaded"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.states("1", "nothing:\n  test.nop: []\n")
	l.expect(exit.OK)
}

// TestAnInterruptedRunLeavesAnAgentThatWorks interrupts a run after it has replaced the agent.
func TestAnInterruptedRunLeavesAnAgentThatWorks(t *testing.T) {
	l, _ := withProgram(t, "1")
	l.states("1", "nothing:\n  test.nop: []\n")
	l.expect(exit.OK)
	l.states("2", program("#!/bin/sh\nexit 1")+"wait:\n  cmd.run:\n    - name: 'true'\n    - require: [file: "+ownProgram+
		"]\n")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	replaced := make(chan struct{})
	go func() {
		defer close(replaced)
		for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if data, _ := os.ReadFile(l.Layout.Path(ownProgram)); strings.Contains(string(data), "exit 1") {
				cancel()
				return
			}
		}
	}()
	_, err := l.Deploy(ctx, agent.Given{}, false)
	<-replaced
	l.runs("1")
	if code := exit.Code(err); code == exit.OK || code == exit.RollbackFailed {
		t.Errorf("exit code %d: %v, hint %s", code, err, diag.HintOf(err))
	}
}

// TestReleaseWithBrokenAgentIsQuarantined has a new base with the agent, beside a new service.
func TestReleaseWithBrokenAgentIsQuarantined(t *testing.T) {
	l, _ := withProgram(t, "1")
	base := func(version, states string) {
		l.repo.Release("base", version, "production", artifacttest.Files{"version": version, "states/own.sls": states})
	}
	top := "base:\n  '*':\n    - app\n    - own\n"
	service := func(version string) {
		files := stateFiles(version, "app:\n  test.nop: []\n")
		files["salt/config/states/top.sls"] = top
		l.repo.Release("myapp", version, "testing", files)
	}
	base("1", "own:\n  test.nop: []\n")
	service("1")
	l.expect(exit.OK)
	base("2", program("#!/bin/sh\nexit 1"))
	service("2")
	l.expect(exit.RolledBack)
	l.expect(exit.OK)
	l.links("2", "2", "1")
	if got := l.version("base/current"); got != "1" {
		t.Errorf("base is %s, although the agent of base 2 does not work", got)
	}
}
