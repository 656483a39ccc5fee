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

// Output of zypper 1.14.
const (
	zypperPlan = `<?xml version='1.0'?>
<stream>
<message type="info">Loading repository data...</message>
<install-summary download-size="11018" space-usage-diff="0" packages-to-change="2">
<to-upgrade>
<solvable type="package" name="foo" edition="2.0-2" arch="noarch" edition-old="1.0-1" arch-old="noarch" summary="x">
<description>x &amp; y</description></solvable>
<solvable type="patch" name="security" edition="1" arch="noarch"/>
</to-upgrade>
<to-install>
<solvable type="package" name="bar" edition="3:1.0-1" arch="noarch" summary="x"/>
</to-install>
<to-remove><solvable type="package" name="old" edition="3-1" arch="x86_64"/></to-remove>
<recommended><solvable type="package" name="other" edition="1" arch="noarch"/></recommended>
</install-summary>
<prompt id="0"><text>Continue?</text><option default="1" value="y" desc="Yes"/></prompt>
</stream>
`
	zypperFound = `<?xml version='1.0'?>
<stream>
<search-result version="0.0">
<solvable-list>
<solvable status="other-version" name="foo" kind="package" edition="2.0-1" arch="noarch" repository="Test"/>
<solvable status="other-version" name="foo" kind="package" edition="2.0-2" arch="noarch" repository="Test"/>
<solvable status="installed" name="foo" kind="package" edition="9.0-1" arch="noarch" repository="(System Packages)"/>
<solvable status="not-installed" name="foo" kind="srcpackage" edition="9.9-1" arch="noarch" repository="Test"/>
</solvable-list>
</search-result>
</stream>
`
	zypperProblem = `<?xml version='1.0'?>
<stream>
<prompt id="1">
<description>Problem: nothing provides nothere needed by broken-1-1.noarch
 Solution 1: do not install broken-1-1.noarch
 Solution 2: break broken-1-1.noarch by ignoring some of its dependencies
</description>
</prompt>
</stream>
`
)

func TestZypperPlan(t *testing.T) {
	answer, err := parseZypper("Warning: something before it\n" + zypperPlan)
	if err != nil {
		t.Fatal(err)
	}
	got, err := answer.changes(rpmInventory())
	want := []host.PackageChange{{Name: "bar", New: "3:1.0-1"}, {Name: "foo", Old: "1.0-1", New: "2.0-2"},
		{Name: "old", Old: "3-1"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"", "no XML\n", "<stream><install-summary></stream>"} {
		if _, err := parseZypper(text); err == nil || diag.HintOf(err) == "" {
			t.Errorf("%q is parsed: %v", text, err)
		}
	}
	for _, text := range []string{
		`<stream><install-summary><to-install><solvable type="package" name="x"/></to-install></install-summary></stream>`,
		`<stream><install-summary><teleported><solvable type="package" name="x" ` +
			`edition="1"/></teleported></install-summary></stream>`,
	} {
		answer, err := parseZypper(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := answer.changes(rpmInventory()); err == nil {
			t.Errorf("%s is parsed as %v", text, got)
		}
	}
}

func TestZypperLocks(t *testing.T) {
	got := parseZypperLocks(
		"\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: foo\n\ntype: patch\nsolvable_name: no\n\n" +
			"solvable_name: bar\n# a: comment\n")
	if want := []string{"foo", "bar"}; !reflect.DeepEqual(got, want) {
		t.Errorf("on hold are %v, want %v", got, want)
	}
}

func zypperOf(t *testing.T, answers map[string]host.Output) (*Packages, *hosttest.Scripted) {
	t.Helper()
	commands := &hosttest.Scripted{T: t, Answers: answers}
	answers["rpm -qa"] = host.Output{Stdout: "foo\t(none)\t1.0\t1\tnoarch\ngpg-pubkey\t(none)\t1\t2\t(none)\n"}
	files := rootWith(t, map[string]string{"/etc/zypp/locks": "solvable_name: foo\n"}).Files
	return &Packages{manager: &zypper{client{files: files, commands: commands, lockWait: time.Millisecond}}}, commands
}

func TestZypper(t *testing.T) {
	const start = "zypper --xmlout --non-interactive --no-refresh "
	p, commands := zypperOf(t, map[string]host.Output{
		start + "search --details":     {Stdout: zypperFound},
		start + "search --provides":    {Code: 104, Stdout: "<stream></stream>"},
		start + "install --auto-agree": {Code: 4, Stdout: zypperProblem},
		start + "addlock": {Code: 7,
			Stderr: "System management is locked by the application with pid 7 (zypper).\n" +
				"Close this application before trying again.\n"},
		"zypper --non-interactive refresh --force": {Code: 106,
			Stdout: "Skipping repository 'bad' because of the above error.\n"},
	})
	ctx := context.Background()
	offers, err := p.Offers(ctx, []string{"foo", "nope"}, "")
	if want := (map[string]host.Offer{"foo": {Candidate: "2.0-2", Versions: []string{"2.0-2", "2.0-1"}}}); err != nil ||
		!reflect.DeepEqual(offers, want) {
		t.Errorf("offers are %+v, %v", offers, err)
	}
	if v, err := p.Installed(); err != nil || !v.Held("foo") || v.Version("gpg-pubkey.(none)") != "" {
		t.Errorf("installed are %v, %v", v.Names(), err)
	}
	// A change of a package on hold cannot be simulated; its result is predicted from the offers.
	changes, err := p.Plan(ctx, host.Transaction{Packages: []host.Wanted{{Name: "foo"}}})
	if err != nil || !reflect.DeepEqual(changes, []host.PackageChange{{Name: "foo", Old: "1.0-1", New: "2.0-2"}}) {
		t.Errorf("the plan is %+v, %v", changes, err)
	}
	_, err = p.Plan(ctx, host.Transaction{Packages: []host.Wanted{{Name: "broken"}}})
	if err == nil ||
		err.Error() != "installing packages: dependencies cannot be met: nothing provides nothere needed by "+
			"broken-1-1.noarch" {
		t.Errorf("got %v", err)
	}
	err = p.Hold(ctx, []string{"foo"}, true)
	if err == nil || !strings.Contains(err.Error(), "pid 7 (zypper) is changing packages") || diag.HintOf(err) == "" {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
	if warnings, err := p.Refresh(ctx); err != nil || len(warnings) != 1 {
		t.Errorf("refreshing warns of %q, %v", warnings, err)
	}
	if len(commands.Writes) < 2 {
		t.Errorf("ran %q", commands.Writes)
	}
}

func FuzzZypper(f *testing.F) {
	for _, text := range []string{zypperPlan, zypperFound, zypperProblem, "solvable_name: foo\n\n:\n"} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		if answer, err := parseZypper(text); err == nil {
			_, _ = answer.changes(rpmInventory()) // these must not panic
			answer.offer("foo", "")
			answer.errors()
		}
		parseZypperLocks(text)
	})
}
