package exec_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/packages"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestPackageStatesShareProcesses counts the processes of runs of 40 states that install packages, of which ten
// have an option. A dry run has one simulation for each set of options, for any number of states, and a query if
// more changes than they name. A run has apt-get update, and for the states of each set, which follow each other,
// one simulation and one transaction.
func TestPackageStatesShareProcesses(t *testing.T) {
	const options = " -q -y -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef --allow-downgrades"
	var tree, plain, optional, shown strings.Builder
	plain.WriteString("Inst lib (1 Debian [all])\n")
	for n := range 40 {
		arguments, simulated := "[]", &plain
		if n >= 30 {
			arguments, simulated = "[{install_recommends: false}]", &optional
		}
		fmt.Fprintf(&tree, "p%d: {pkg.installed: %s}\n", n, arguments)
		fmt.Fprintf(simulated, "Inst p%d (1 Debian [all])\n", n)
		fmt.Fprintf(&shown, "Package: p%d\nDepends: lib\n\n", n)
	}
	for test, want := range map[bool]string{
		true: "apt-cache apt-get apt-get", false: "apt-get apt-get apt-get apt-get apt-get",
	} {
		h := statetest.NewHost(t)
		h.Put("/etc/apt/sources.list", "deb http://example.com stable main\n")
		h.Put("/var/lib/dpkg/status", "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n")
		h.Put("/srv/t.sls", tree.String())
		commands := &installing{h, &hosttest.Scripted{T: t, Answers: map[string]host.Output{
			"apt-get --simulate" + options + " install":                         {Stdout: plain.String()},
			"apt-get --simulate" + options + " --no-install-recommends install": {Stdout: optional.String()},
			"apt-cache -q show": {Stdout: shown.String()}, "apt-get -q update": {}, "apt-get -q -y": {},
		}}}
		h.Commands = commands
		h.Packages = packages.New(h.Host, host.Options{})
		s := families.New(session.Settings{Host: h.Host, ID: "h", Grains: value.NewMap("id", "h"), Test: test,
			States: []roots.Env{{Name: "base", Dirs: []string{"/srv"}}}})
		answer, err := s.Call(t.Context(), "state.apply", []any{"t"}, value.NewMap(), nil)
		if err != nil || answer.Code != 0 {
			t.Errorf("code %d, %v", answer.Code, err)
		}
		var programs []string
		for _, line := range commands.Ran {
			program, _, _ := strings.Cut(line, " ")
			programs = append(programs, program)
		}
		slices.Sort(programs)
		if got := strings.Join(programs, " "); got != want {
			t.Errorf("test=%t: %s, want %s:\n%s", test, got, want, strings.Join(commands.Ran, "\n"))
		}
	}
}

// installing is a fake apt that enters the packages of each transaction in the database.
type installing struct {
	h *statetest.Host
	*hosttest.Scripted
}

func (i *installing) Run(ctx context.Context, c host.Command) (host.Output, error) {
	out, err := i.Scripted.Run(ctx, c)
	if at := slices.Index(c.Argv, "--"); at > 0 && !c.Quiet {
		status, unread := i.h.Files.ReadFile("/var/lib/dpkg/status")
		if unread != nil {
			i.T.Error(unread)
		}
		text := string(status)
		for _, name := range c.Argv[at+1:] {
			text += "\nPackage: " + name + "\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n"
		}
		i.h.Put("/var/lib/dpkg/status", text)
	}
	return out, err
}
