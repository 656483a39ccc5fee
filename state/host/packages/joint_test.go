package packages

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestInstallationsAreSimulatedInOneCall plans three transactions, of which the first two need one library, and
// one of a package that does not exist. apt runs five times in all, three times because of that, and each plan has
// the changes of its transaction.
func TestInstallationsAreSimulatedInOneCall(t *testing.T) {
	install := func(names ...string) (t host.Transaction) {
		for _, name := range names {
			t.Packages = append(t.Packages, host.Wanted{Name: name})
		}
		return t
	}
	simulated := "Inst lib (1 Debian [amd64])\nInst web (2 Debian [amd64])\nInst tool (3 Debian [all])\n" +
		"Inst mailer (4 Debian [amd64])\nConf lib (1)\n"
	shown := "Package: lib\nVersion: 1\n\nPackage: web\nVersion: 2\nDepends: libc6 (>= 2), lib:any (>= 1) | other\n\n" +
		"Package: tool\nRecommends: lib, dpkg\n\nPackage: mailer\nProvides: mail-agent (= 4)\n"
	p, commands := aptWith(t, nil, map[string]host.Output{
		"apt-get --simulate": {Stdout: simulated}, "apt-cache -q show": {Stdout: shown}, "apt-cache pkgnames": {},
		"apt-get --simulate -q -y -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef --allow-downgrades " +
			"install -- web tool mail-agent unknown": {Code: 100, Stderr: "E: Unable to locate package unknown\n"},
		"apt-cache -q policy": {Stdout: "web:\n  Candidate: 2\ntool:\n  Candidate: 3\nmail-agent:\n  Candidate: (none)\n"},
	})
	list := []host.Transaction{install("web"), install("tool"), install("mail-agent")}
	if err := p.PlanAhead(context.Background(), append(list, install("unknown"))); err != nil {
		t.Fatal(err)
	}
	want := [][]host.PackageChange{{{Name: "lib", New: "1"}, {Name: "web", New: "2"}}, {{Name: "tool", New: "3"}},
		{{Name: "mailer", New: "4"}}}
	for range 2 { // a step may be planned twice
		for i, one := range list {
			if err := p.PlanAhead(context.Background(), list[i:]); err != nil {
				t.Fatal(err)
			}
			if got, err := p.Plan(context.Background(), one); err != nil || !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s: %+v, %v, want %+v", one, got, err, want[i])
			}
		}
	}
	if len(commands.Ran) != 5 {
		t.Errorf("apt ran %d times:\n%s", len(commands.Ran), strings.Join(commands.Ran, "\n"))
	}
}

// TestAJointPlanWithRemovals plans two transactions, of which the first removes a package because of what that
// provides, and upgrades another one that it breaks.
func TestAJointPlanWithRemovals(t *testing.T) {
	p, commands := aptWith(t, nil, map[string]host.Output{
		"apt-get --simulate": {Stdout: "Remv foo [1:1.0-2]\nInst clock (1 Debian [amd64])\nInst libc6:i386 [2.35] (2.37 " +
			"Debian [i386])\nInst tool (3 Debian [all])\n"},
		"apt-cache -q show --": {Stdout: "Package: clock\nConflicts: virt\nBreaks: libc6 (<< 2.37), tool (<< 2)\n\n" +
			"Package: tool\n\nPackage: libc6\n"},
	})
	p.manager.(*apt).files = rootWith(t, map[string]string{
		dpkgStatus: strings.ReplaceAll(status, "hold ok", "install ok")}).Files
	no := false
	list := []host.Transaction{{Packages: []host.Wanted{{Name: "clock"}}, Recommends: &no},
		{Packages: []host.Wanted{{Name: "tool"}}, Recommends: &no}}
	want := [][]host.PackageChange{{{Name: "clock", New: "1"}, {Name: "foo", Old: "1:1.0-2"},
		{Name: "libc6:i386", Old: "2.35", New: "2.37"}}, {{Name: "tool", New: "3"}}}
	for i, one := range list {
		if err := p.PlanAhead(t.Context(), list[i:]); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Plan(t.Context(), one); err != nil || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("%s: %+v, %v, want %+v", one, got, err, want[i])
		}
	}
	if len(commands.Ran) != 2 || strings.Contains(commands.Ran[1], "foo") {
		t.Errorf("apt ran\n%s", strings.Join(commands.Ran, "\n"))
	}
}

// TestIncompatibleInstallsArePlannedSeparately plans an installation that removes a package which does not
// conflict with it, and transactions of two kinds.
func TestIncompatibleInstallsArePlannedSeparately(t *testing.T) {
	a, b := host.Transaction{Packages: []host.Wanted{{Name: "a"}}}, host.Transaction{Packages: []host.Wanted{{Name: "b"}}}
	p, commands := aptWith(t, nil, map[string]host.Output{
		"apt-get --simulate":  {Stdout: "Inst a (1 Debian [all])\nRemv foo [1]\n"},
		"apt-cache -q show":   {Stdout: "Package: a\n"},
		"apt-cache -q policy": {Stdout: "a:\n  Candidate: 1\nb:\n  Candidate: 1\n"},
	})
	if err := p.PlanAhead(context.Background(), []host.Transaction{a, b}); err != nil || p.joint[kindOf(a)] != nil {
		t.Errorf("a plan with a removal: %v", err)
	}
	b.Release = "testing"
	p.Forget()
	ran := len(commands.Ran)
	for range 3 {
		if err := p.PlanAhead(context.Background(), []host.Transaction{a, b}); err != nil || p.joint[kindOf(a)] != nil ||
			len(commands.Ran) != ran {
			t.Errorf("transactions of two kinds: %v, %q", err, commands.Ran[ran:])
		}
	}
}
