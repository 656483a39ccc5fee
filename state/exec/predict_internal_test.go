package exec

import (
	"errors"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestUnitFiles(t *testing.T) {
	for file, want := range map[string]bool{
		"/etc/systemd/system/web.service": true, "/usr/lib/systemd/system/web.service": true, "/etc/init.d/web": true,
		"/etc/systemd/system/other.service": false, "/etc/web.service": false, "/etc/init.d/web.sh": false,
	} {
		if got := isUnitFile(file, "web"); got != want {
			t.Errorf("%s: %t, want %t", file, got, want)
		}
	}
	if !isUnitFile("/etc/systemd/system/web.socket", "web.socket") {
		t.Error("a unit that is named with its suffix is not found")
	}
}

// TestUnknownMissingObjectNamesNoStep checks that a missing object of unknown kind names no step, since the nearest one
// need not be the cause.
func TestUnknownMissingObjectNamesNoStep(t *testing.T) {
	got := unknownUntil(host.MissingOf(errors.New("the server does not answer")), nil)
	if !strings.Contains(got, "the server does not answer") || strings.Contains(got, "runs before") {
		t.Error(got)
	}
}

// TestStatesThatMayProvideAPackage checks which earlier states may add a repository with a package that no repository
// has now.
func TestStatesThatMayProvideAPackage(t *testing.T) {
	for name, c := range map[string]struct {
		state, fun, name string
		more             []any
		may              bool
	}{
		"a repository":                 {state: "pkgrepo", fun: "managed", name: "deb http://x y main", may: true},
		"a repository that is removed": {state: "pkgrepo", fun: "absent", name: "deb http://x y main"},
		"a list of apt":                {state: "file", fun: "managed", name: "/etc/apt/sources.list.d/x.list", may: true},
		"another file":                 {state: "file", fun: "managed", name: "/etc/motd"},
		"a command":                    {state: "cmd", fun: "run", name: "add-repo", may: true},
		"a package":                    {state: "pkg", fun: "installed", name: "vim"},
		"a package with a list":        {state: "pkg", fun: "installed", name: "epel-release", may: true},
		"one of several packages": {state: "pkg", fun: "installed", name: "x",
			more: []any{"pkgs", value.Strings("vim", "remi-release")}, may: true},
		"packages from their files": {state: "pkg", fun: "installed", name: "x", more: []any{"sources", value.NewList("x")},
			may: true},
	} {
		s := &compile.Step{Chunk: value.NewMap(append([]any{"state", c.state, "fun", c.fun, "name", c.name}, c.more...)...)}
		if got := mayMake(s, host.APackage); got != c.may {
			t.Errorf("%s: %t, want %t", name, got, c.may)
		}
	}
}

// TestPackagesThatLaterStepsChange checks that a dry run notices when an earlier step installs a package that a later
// one removes, and vice versa.
func TestPackagesThatLaterStepsChange(t *testing.T) {
	step := func(fun string, args ...any) *compile.Step {
		return &compile.Step{Chunk: value.NewMap(append([]any{"state", "pkg", "fun", fun}, args...)...)}
	}
	for name, c := range map[string]struct {
		earlier, later *compile.Step
		counts         bool
	}{
		"installed, then removed": {step("installed", "name", "unzip"), step("removed", "name", "unzip"), true},
		"removed, then installed": {step("removed", "name", "unzip"), step("installed", "name", "unzip"), true},
		"one of several packages": {step("installed", "name", "x", "pkgs", value.Strings("vim", "unzip")),
			step("purged", "name", "unzip"), true},
		"a package with a version": {step("installed", "name", "x", "pkgs", value.NewList(value.NewMap("unzip", "6.0"))),
			step("removed", "name", "unzip"), true},
		"another package": {step("installed", "name", "vim"), step("removed", "name", "unzip"), false},
		"installed twice": {step("installed", "name", "unzip"), step("installed", "name", "unzip"), false},
		"the name of a state with pkgs": {step("installed", "name", "unzip", "pkgs", value.Strings("vim")),
			step("removed", "name", "unzip"), false},
	} {
		result := &Result{Step: c.later, Outcome: Succeeded, Changes: value.NewMap()}
		try{step: c.later, predicted: []*compile.Step{c.earlier}}.overtaken(result)
		if result.Unknown != c.counts {
			t.Errorf("%s: unknown is %t, want %t (%s)", name, result.Unknown, c.counts, result.Comment)
		}
	}
}

// TestGuardsThatNamePathsOfCommands checks which earlier commands may change the result of a guard.
func TestGuardsThatNamePathsOfCommands(t *testing.T) {
	step := func(state, fun, name string, args ...any) *compile.Step {
		return &compile.Step{Chunk: value.NewMap(append([]any{"state", state, "fun", fun, "name", name}, args...)...)}
	}
	run := func(line string, args ...any) *compile.Step { return step("cmd", "run", line, args...) }
	for name, c := range map[string]struct {
		guard   string
		earlier *compile.Step
		counts  bool
	}{
		"the path":              {"test -e /opt/x/y", run("touch /opt/x/y"), true},
		"its directory":         {"test -e /opt/x/y", run("mkdir -p /opt/x"), true},
		"a path below it":       {"test -d /opt/x", run("umask 022; touch /opt/x/y"), true},
		"an option":             {"test -e /opt/x/bin/app", run("make install --prefix=/opt/x"), true},
		"a redirection":         {"test -e /opt/x", run("date >/opt/x"), true},
		"in a list of commands": {"test -e /opt/x", run("cd /srv && (true; touch '/opt/x')"), true},
		"relative to cwd":       {"test -e /opt/x", run("touch x", "cwd", "/opt"), true},
		"arguments of a script": {"test -e /opt/x", step("cmd", "script", "salt://make.sh", "args", "--to "+
			"/opt/x"), true},
		"a function that runs a command": {"test -e /opt/x", step("module", "run", "m", "cmd.run",
			value.NewList(value.NewMap("cmd", "touch /opt/x"))), true},
		"another path":           {"test -e /opt/x", run("touch /opt/y"), false},
		"a longer name":          {"test -e /opt/x", run("touch /opt/xy"), false},
		"the program":            {"test -x /opt/x/bin/app", run("/opt/x/bin/app --check"), false},
		"a setting of a command": {"test -x /usr/bin/app", run("PATH=/usr/bin:/bin make"), false},
		"a device":               {"test -e /opt/x >/dev/null", run("make >/dev/null 2>&1"), false},
		"only the cwd":           {"test -e /opt/x", run("make all", "cwd", "/opt"), false},
	} {
		t.Run(name, func(t *testing.T) {
			later := step("cmd", "run", "true", "unless", c.guard)
			if _, s := (try{step: later, predicted: []*compile.Step{c.earlier}}).guardTouched(); (s != nil) != c.counts {
				t.Errorf("the command may change the result of the guard: %t, want %t", s != nil, c.counts)
			}
		})
	}
}
