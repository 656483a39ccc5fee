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

// rpmInventory returns an inventory of some packages.
func rpmInventory() *host.Inventory {
	return host.InventoryOf("x86_64", rpmNames(), []host.Package{
		{Name: "foo", Version: "1.0-1", Arch: "noarch", State: host.InstalledPackage, Held: true},
		{Name: "old", Version: "3-1", Arch: "x86_64", State: host.InstalledPackage},
		{Name: "kernel", Version: "5-1", Arch: "x86_64", State: host.InstalledPackage},
		{Name: "kernel", Version: "6-1", Arch: "x86_64", State: host.InstalledPackage},
		{Name: "glibc", Version: "2-1", Arch: "i686", State: host.InstalledPackage},
	})
}

func TestRPMNames(t *testing.T) {
	v := rpmInventory()
	for name, want := range map[string]string{"foo.noarch": "foo", "foo.x86_64": "foo", "glibc.i686": "glibc.i686",
		"python3.11": "python3.11", "foo": "foo"} {
		if got := v.ListName(name); got != want {
			t.Errorf("%s is listed as %s, want %s", name, got, want)
		}
	}
	if v.Version("kernel") != "5-1,6-1" || v.Version("glibc.i686") != "2-1" || v.Version("glibc") != "" {
		t.Errorf("versions are %q, %q, %q", v.Version("kernel"), v.Version("glibc.i686"), v.Version("glibc"))
	}
}

func TestParseRPM(t *testing.T) {
	got, err := parseRPM(
		"foo\t(none)\t1.0\t1\tnoarch\nbar\t3\t1.0\t1\tx86_64\nkernel\t0\t6\t1\tx86_64\nkernel\t0\t5.10\t1\tx86_64\n" +
			"gpg-pubkey\t(none)\tabc\tdef\t(none)\n")
	want := []host.Package{
		{Name: "bar", Version: "3:1.0-1", Arch: "x86_64", State: host.InstalledPackage},
		{Name: "foo", Version: "1.0-1", Arch: "noarch", State: host.InstalledPackage},
		{Name: "gpg-pubkey", Version: "abc-def", Arch: "(none)", State: host.InstalledPackage},
		{Name: "kernel", Version: "5.10-1", Arch: "x86_64", State: host.InstalledPackage},
		{Name: "kernel", Version: "6-1", Arch: "x86_64", State: host.InstalledPackage},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{"foo 1.0\n", "foo\t\t\t\t\n", "error: rpmdb damaged\n", "a\tb\tc\td\te\tf\n"} {
		if _, err := parseRPM(text); err == nil || diag.HintOf(err) == "" {
			t.Errorf("%q is parsed as packages: %v", text, err)
		}
	}
}

const (
	// Output of dnf 4.14, with the heads of its tables.
	dnfHead = `Last metadata expiration check: 0:00:38 ago on Sun Nov 22 01:58:03 2026.
Dependencies resolved.
================================================================================
 Package         Architecture       Version              Repository        Size
================================================================================
`
	dnfUpgrade = dnfHead + `Installing:
 bar             noarch             3:1.0-1              test             5.4 k
Upgrading:
 foo             noarch             2.0-2                test             5.4 k
     replacing  old.x86_64 3-1
Installing dependencies:
 a-very-long-package-name-that-does-not-fit-into-a-column-of-eighty-signs
                 noarch             1.0-1.20260101gitabcdef0123456789
                                                         test             5.7 k
Installing weak dependencies:
 glibc           i686               2-2                  test              10 M

Transaction Summary
================================================================================
Install  3 Packages
Upgrade  1 Package

Total size: 22 k
Operation aborted.
`
	dnfRemove = dnfHead + `Removing:
 foo             noarch             1.0-1                @test               0  
Removing unused dependencies:
 kernel          x86_64             5-1                  @anaconda         1.0 M

Transaction Summary
================================================================================
Remove  2 Packages
`
	// Output of dnf5, from its documentation.
	dnf5Upgrade = `Updating and loading repositories:
Repositories loaded.
Package     Arch   Version Repository      Size
Upgrading:
 foo        noarch 0:2.0-2 updates      5.4 KiB
   replacing foo noarch 1.0-1 fedora    5.4 KiB
Installing dependencies:
 bar        noarch 1.0-1   fedora       0.0   B
   replacing old x86_64 3-1 fedora      1.0 KiB

Transaction Summary:
 Installing:         1 package
Operation aborted by the user.
`
)

func TestParseDnfPlan(t *testing.T) {
	long := "a-very-long-package-name-that-does-not-fit-into-a-column-of-eighty-signs"
	for _, c := range []struct {
		name, text string
		want       []host.PackageChange
	}{
		{"nothing", "Package foo-1.0-1.noarch is already installed.\nDependencies resolved.\nNothing to do.\nComplete!\n",
			nil},
		{"upgrade", dnfUpgrade, []host.PackageChange{
			{Name: long, New: "1.0-1.20260101gitabcdef0123456789"}, {Name: "bar", New: "3:1.0-1"},
			{Name: "foo", Old: "1.0-1", New: "2.0-2"},
			{Name: "glibc.i686", Old: "2-1", New: "2-2"}, {Name: "old", Old: "3-1"},
		}},
		{"remove", dnfRemove, []host.PackageChange{{Name: "foo", Old: "1.0-1"},
			{Name: "kernel", Old: "5-1,6-1", New: "6-1"}}},
		{"dnf5", dnf5Upgrade, []host.PackageChange{{Name: "bar", New: "1.0-1"}, {Name: "foo", Old: "1.0-1", New: "2.0-2"},
			{Name: "old", Old: "3-1"}}},
	} {
		got, err := parseDnfPlan("dnf", c.text, rpmInventory())
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
	for _, text := range []string{
		dnfHead + "Teleporting:\n foo noarch 1 test 1 k\n\nTransaction Summary\n",
		dnfHead + "Installing:\n foo noarch\n\nTransaction Summary\n",
		dnfHead + "Installing:\n foo noarch 1.0 test 1 k\n", dnfHead +
			"Installing:\n     replacing  x.noarch 1\n\nTransaction Summary\n",
	} {
		if got, err := parseDnfPlan("dnf", text, rpmInventory()); err == nil || diag.HintOf(err) == "" {
			t.Errorf("%q is parsed as %v", text, got)
		}
	}
}

func TestVersionLocks(t *testing.T) {
	locks := parseVersionLocks(
		"# Added lock on Sun Nov 22 01:59:06 2026\nfoo-0:1.0-1.*\n1:bar-2.0-1.*\n!baz-0:1-1.*\n" +
			"python3-foo-bar-*:3.0-1.el9.*\nplain-1.0-1.el8.*\nglob*\n")
	for name, want := range map[string]bool{"foo": true, "bar": true, "baz": false, "python3-foo-bar": true, "plain": true,
		"globular": true, "fo": false} {
		if locks.holds(name) != want {
			t.Errorf("%s is on hold: %v, want %v", name, !want, want)
		}
	}
	table := parseLockTable(
		"version = \"1.0\"\n\n[[packages]]\nname = \"acl\"\n[[packages.conditions]]\nkey = \"evr\"\nname = \"no\"\n" +
			"[[packages]]\nname = 'bash'\n")
	if len(table) != 2 || !table.holds("acl") || !table.holds("bash") {
		t.Errorf("the table has %+v", table)
	}
}

// yumOf returns a fake yum of CentOS 7, whose output is taken from yum's documentation.
func yumOf(t *testing.T, answers map[string]host.Output) (*Packages, *hosttest.Scripted) {
	t.Helper()
	commands := &hosttest.Scripted{T: t, Answers: answers}
	files := rootWith(t, map[string]string{"/etc/yum/pluginconf.d/versionlock.list": "0:foo-1.0-1.*\n"}).Files
	return &Packages{manager: &dnf{client{files: files, commands: commands, lockWait: time.Millisecond}, "yum"}}, commands
}

func TestYum(t *testing.T) {
	rpm := host.Output{Stdout: "foo\t(none)\t1.0\t1\tnoarch\nold\t(none)\t3\t1\tnoarch\n"}
	p, commands := yumOf(t, map[string]host.Output{
		"rpm -qa": rpm,
		"yum -C -q --disableplugin=versionlock list available --showduplicates": {
			Stdout: "Available Packages\nfoo.noarch    1:2.0-1    base\nfoo.noarch\n             1:2.0-2    updates\n" +
				"x.i686  1-1  base\n"},
		"yum -C --assumeno downgrade": {Code: 1,
			Stdout: dnfHead + "Downgrading:\n old noarch 2-1 base 1 k\n\nTransaction Summary\n",
			Stderr: "Exiting on user command\n"},
		"yum -y --setopt=exit_on_lock=T": {},
		"yum -C -y versionlock delete": {Code: 1,
			Stderr: "Error: Failed to obtain the transaction lock (logged in as: root).\n"},
	})
	ctx := context.Background()
	offers, err := p.Offers(ctx, []string{"foo", "x", "x.i686", "nope"}, "")
	want := map[string]host.Offer{"foo": {Candidate: "1:2.0-2", Versions: []string{"1:2.0-2", "1:2.0-1"}},
		"x.i686": {Candidate: "1-1", Versions: []string{"1-1"}}}
	if err != nil || !reflect.DeepEqual(offers, want) {
		t.Errorf("offers are %+v, %v", offers, err)
	}
	older := host.Transaction{Packages: []host.Wanted{{Name: "old", Version: "2-1"}}}
	changes, err := p.Plan(ctx, older)
	if err != nil || !reflect.DeepEqual(changes, []host.PackageChange{{Name: "old", Old: "3-1", New: "2-1"}}) {
		t.Errorf("the plan is %+v, %v", changes, err)
	}
	if err := p.Do(ctx, older); err != nil || commands.Writes[0] != "yum -y --setopt=exit_on_lock=True downgrade old-2-1" {
		t.Errorf("ran %q, %v", commands.Writes, err)
	}
	err = p.Hold(ctx, []string{"foo"}, false)
	if err == nil || !strings.Contains(err.Error(), "another process") || diag.HintOf(err) == "" {
		t.Errorf("taking foo off hold while yum is locked: %v", err)
	}
	if last := commands.Writes[len(commands.Writes)-1]; last != "yum -C -y versionlock delete 0:foo-1.0-1.*" {
		t.Errorf("ran %q", last)
	}
}

func TestParseYumList(t *testing.T) {
	for _, text := range []string{"foo 1 base\n", "foo.noarch 1\n", "foo.noarch 1 base more\n"} {
		if got, err := parseYumList(text); err == nil {
			t.Errorf("%q is parsed as %v", text, got)
		}
	}
}

// TestDnfFailures checks the errors for failures of dnf 4.14 by their output.
func TestDnfFailures(t *testing.T) {
	for _, c := range []struct{ output, want, hint string }{
		{"Error: Unable to find a match: nope\n", "x: the repositories have no package nope", "pkgrepo.managed"},
		{"Error: \n Problem: conflicting requests\n  - nothing provides nothere needed by broken-1-1.noarch\n",
			"x: dependencies cannot be met: conflicting requests - nothing provides nothere needed by broken-1-1.noarch",
			"on hold"},
		{"Error: Cache-only enabled but no cache for 'test'\n", "x: the index of repository test was never fetched",
			"makecache"},
		{"Error: Failed to download metadata for repo 'bad': Cannot download repomd.xml: https://u:p@x.example.com\n",
			"x: the index of repository bad cannot be fetched: Cannot download repomd.xml: https://<secret>@x.example.com",
			"network"},
		{"No such command: versionlock. Please use /usr/bin/dnf --help\n", "x: the versionlock plugin is not installed",
			"plugin-versionlock"},
		{"Error: This command has to be run under the root user.\n", "x: this user may not change packages", "root"},
		{"All matches were filtered out by exclude filtering for argument: foo\nError: Unable to find a match: foo",
			"x: package foo is excluded by a hold, or by an exclude in the configuration", "pkg.unheld"},
		{"error: rpmdb open failed\n", "x: the database of rpm is damaged or locked", "rebuilddb"},
		{"Error: something new\n", "x: Error: something new", ""},
		{"", "x: it ended with code 1", ""},
	} {
		err := whyFailed("x", host.Output{Code: 1, Stderr: c.output}, dnfClues())
		if err.Error() != c.want || !strings.Contains(diag.HintOf(err), c.hint) {
			t.Errorf("%q becomes %q, hint %q", c.output, err, diag.HintOf(err))
		}
	}
}

func FuzzDnfAnswers(f *testing.F) {
	f.Add(dnfUpgrade)
	f.Add(dnf5Upgrade)
	f.Add("foo\t(none)\t1.0\t1\tnoarch\n")
	f.Add("Available Packages\nfoo.noarch 1 base\n")
	f.Add("foo-0:1.0-1.*\n[[packages]]\nname = \"x\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := parseDnfPlan("dnf", text, rpmInventory())
		for _, c := range changes {
			if err == nil && c.Name == "" {
				t.Errorf("%q changes a package without a name", text)
			}
		}
		if _, err := parseRPM(text); err != nil && diag.HintOf(err) == "" {
			t.Errorf("no hint for %v", err)
		}
		_, _ = parseOffers("dnf", text) // these must not panic
		_, _ = parseYumList(text)
		parseVersionLocks(text).holds("x")
		parseLockTable(text)
		_ = whyFailed("x", host.Output{Code: 1, Stderr: text}, dnfClues())
	})
}
