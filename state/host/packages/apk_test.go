package packages

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// Files and output of apk 2.14.
const (
	apkInstalled = `C:Q1gVE0LVgizHeJL72MYE8ThYaOY8M=
P:baz
V:1.0-r1
A:noarch
p:virt so:libbaz.so.1=1 cmd:baz=1.0-r1
F:usr
R:v
Z:Q16NwFfTNG5WrtfPJSGF2+H6ZFRBE=

C:Q15msZTbaAS8r92LHYP7knchKdND0=
P:foo
V:1.0-r1
A:x86_64

`
	apkPolicy = `foo policy:
  1.0-r1:
    lib/apk/db/installed
    file:///srv/apk
  2.0-r1:
    file:///srv/apk
    https://example.com/main
  3.0-r0:
    @edge https://example.com/edge
  0.9-r0:
    lib/apk/db/installed
`
)

func apkOf(t *testing.T, answers map[string]host.Output) (*Packages, *hosttest.Scripted) {
	t.Helper()
	commands := &hosttest.Scripted{T: t, Answers: answers}
	files := rootWith(t, map[string]string{"/lib/apk/db/installed": apkInstalled,
		apkWorld: "bar\nfoo=1.0-r1\nbaz><Q1abc=\nz@edge=3\n!no\nx>1\n"}).Files
	return &Packages{manager: &apk{client{files: files, commands: commands, lockWait: time.Millisecond}}}, commands
}

func TestAPK(t *testing.T) {
	const start = "apk --no-network --no-progress "
	p, commands := apkOf(t, map[string]host.Output{
		start + "policy -- foo nope": {Stdout: apkPolicy},
		start + "add --simulate -- foo=2.0-r1": {Stdout: "(1/2) Upgrading foo (1.0-r1 -> 2.0-r1)\n(2/2) Installing " +
			"lib@edge (1-r0)\nOK: 0 MiB in 2 packages\n"},
		start + "add --simulate --upgrade -- baz": {Stdout: "(1/1) Downgrading foo (1.0-r1 -> 0.9-r0)\n"},
		start + "del --simulate -- baz": {Stdout: "World updated, but the following packages are not removed " +
			"due to:\n  baz: bar foo\n\n(1/1) Purging x (1)\n"},
		start + "add -- foo":                  {},
		start + "add -- foo=1.0-r1":           {},
		"apk --no-progress add -- foo=2.0-r1": {},
		"apk --no-progress update": {Code: 1, Stdout: "1 unavailable, 0 stale; 6 distinct packages available\n",
			Stderr: "WARNING: updating https://u:p@example.com: temporary error\n"},
	})
	ctx := context.Background()
	v, err := p.Installed()
	if err != nil || v.Version("foo") != "1.0-r1" || !v.Held("foo") || v.Held("baz") ||
		!reflect.DeepEqual(v.Providers("virt"), []string{"baz"}) {
		t.Errorf("installed are %v, %v", v.Names(), err)
	}
	offers, err := p.Offers(ctx, []string{"foo", "nope"}, "")
	if want := (map[string]host.Offer{"foo": {Candidate: "2.0-r1", Versions: []string{"2.0-r1", "1.0-r1"}}}); err != nil ||
		!reflect.DeepEqual(offers, want) {
		t.Errorf("offers are %+v, %v", offers, err)
	}
	tagged, err := parseAPKPolicy(apkPolicy, "edge")
	if err != nil || tagged["foo"].Candidate != "3.0-r0" {
		t.Errorf("with a tag the offers are %+v, %v", tagged, err)
	}
	newer := host.Transaction{Packages: []host.Wanted{{Name: "foo", Version: "2.0-r1"}}}
	changes, err := p.Plan(ctx, newer)
	if err != nil ||
		!reflect.DeepEqual(changes, []host.PackageChange{{Name: "foo", Old: "1.0-r1", New: "2.0-r1"},
			{Name: "lib", New: "1-r0"}}) {
		t.Errorf("the plan is %+v, %v", changes, err)
	}
	if err := p.Do(ctx, newer); err != nil {
		t.Error(err)
	}
	if want := []string{start + "add -- foo", "apk --no-progress add -- foo=2.0-r1",
		start + "add -- foo=1.0-r1"}; !reflect.DeepEqual(commands.Writes, want) {
		t.Errorf("ran %q, want %q", commands.Writes, want)
	}
	if _, err := p.Plan(ctx, host.Transaction{Packages: []host.Wanted{{Name: "baz"}}}); err == nil ||
		!strings.Contains(err.Error(), "on hold") {
		t.Errorf("changing a package on hold: %v", err)
	}
	if _, err := p.Plan(ctx, host.Transaction{Action: host.RemovePackages,
		Packages: []host.Wanted{{Name: "baz"}}}); err == nil || !strings.Contains(err.Error(), "need them: baz: bar foo") {
		t.Errorf("removing a package that others require: %v", err)
	}
	if warnings, err := p.Refresh(ctx); err != nil || !reflect.DeepEqual(warnings,
		[]string{"updating https://<secret>@example.com: temporary error"}) {
		t.Errorf("refreshing warns of %q, %v", warnings, err)
	}
}

func TestAPKMalformedOutput(t *testing.T) {
	for _, text := range []string{"(1/1) Teleporting foo (1)\n", "(1/1) Installing foo\n"} {
		if got, err := parseAPKPlan(text, rpmInventory()); err == nil || diag.HintOf(err) == "" {
			t.Errorf("%q is parsed as %v", text, got)
		}
	}
	for _, text := range []string{"what\n", "    deep\n"} {
		if got, err := parseAPKPolicy(text, ""); err == nil {
			t.Errorf("%q is parsed as %v", text, got)
		}
	}
	if got, err := parseInstalled([]byte("P:foo\n\nV:1\n")); err == nil {
		t.Errorf("an incomplete package is parsed as %v", got)
	}
}

// TestAPKFailures checks the errors for failures of apk 2.14 by their output.
func TestAPKFailures(t *testing.T) {
	for _, c := range []struct{ output, want string }{
		{"ERROR: unable to select packages:\n  nope (no such package):\n    required by: world[nope]\n",
			"x: the repositories have no package nope"},
		{"ERROR: unable to select packages:\n  nothere (no such package):\n    required by: broken-1-r1[nothere]\n",
			"x: dependencies cannot be met: nothere (no such package): required by: broken-1-r1[nothere]"},
		{"ERROR: unable to select packages:\n  virt (virtual):\n    note: please select one of the 'provided by'\n" +
			"          packages explicitly\n    provided by: baz qux\n    required by: world[virt]\n",
			"x: virt is a virtual package, which other packages provide"},
		{"ERROR: Unable to lock database: Resource temporarily unavailable\n" +
			"ERROR: Failed to open apk database: Resource temporarily unavailable\n",
			"x: the database is locked: another process is changing packages"},
		{"ERROR: Unable to lock database: Permission denied\n", "x: this user may not change packages"},
	} {
		err := whyFailed("x", host.Output{Code: 1, Stderr: c.output}, apkClues())
		if err.Error() != c.want || diag.HintOf(err) == "" {
			t.Errorf("%q becomes %q, hint %q", c.output, err, diag.HintOf(err))
		}
	}
}

func FuzzAPK(f *testing.F) {
	for _, text := range []string{apkInstalled, apkPolicy, "(1/1) Purging x (1)\n", "a=1 b@c=2 =3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		packages, err := parseInstalled([]byte(text))
		for _, p := range packages {
			if err == nil && (p.Name == "" || p.Version == "") {
				t.Errorf("%q has a package without a name or a version", text)
			}
		}
		_, _ = parseAPKPolicy(text, "") // these must not panic
		_, _ = parseAPKPlan(text, rpmInventory())
		parseWorld(text)
	})
}
