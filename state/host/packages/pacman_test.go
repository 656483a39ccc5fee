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

const pacmanConfText = "# of Arch\n[options]\nHoldPkg = pacman glibc\nIgnorePkg = linux* foo\n#IgnorePkg = no\n" +
	"IgnorePkg=bar\n\n[core]\nIgnorePkg = neither\nServer = https://example.com\n"

func pacmanOf(t *testing.T, answers map[string]host.Output) (*Packages, *hosttest.Scripted) {
	t.Helper()
	commands := &hosttest.Scripted{T: t, Answers: answers}
	files := rootWith(t, map[string]string{
		pacmanConf:                          pacmanConfText,
		pacmanDB + "/local/ALPM_DB_VERSION": "9\n",
		pacmanDB + "/local/foo-1.0-1/desc": "%NAME%\nfoo\n\n%VERSION%\n1.0-1\n\n%PROVIDES%\nvirt\n" +
			"libfoo.so=1-64\n\n%DEPENDS%\nglibc\n",
		pacmanDB + "/local/baz-2:1-1/desc":                "%NAME%\nbaz\n\n%VERSION%\n2:1-1\n",
		pacmanCache + "/python-foo-1.0-1-any.pkg.tar.zst": "", pacmanCache + "/python-foo-1.0-1-any.pkg.tar.zst.sig": "",
	}).Files
	return &Packages{manager: &pacman{client{files: files, commands: commands, lockWait: time.Millisecond}}}, commands
}

func TestPacman(t *testing.T) {
	const list = "core foo 2.0-1 [installed: 1.0-1]\nextra foo 3.0-1\nextra bar 1-1\n"
	p, _ := pacmanOf(t, map[string]host.Output{
		"pacman -Sl": {Stdout: list},
		"pacman -Sp": {Code: 1, Stderr: "error: target not found: nope\n"},
		"pacman -S --print --print-format step: %n %v --noconfirm --noprogressbar --needed -- bar": {
			Stdout: ":: foo is in IgnorePkg/IgnoreGroup. Install anyway? [Y/n] \nloading packages...\nstep: foo 2.0-1\n" +
				"step: bar 1-1\n"},
		"pacman -S --print --print-format step: %n %v --noconfirm --noprogressbar --needed -- foo=2.0-1": {
			Stdout: "step: foo 2.0-1\n"},
		"pacman -Sy": {Code: 1, Stderr: "error: failed to synchronize all databases (unable to lock database)\n"},
	})
	ctx := context.Background()
	v, err := p.Installed()
	if err != nil || v.Version("foo") != "1.0-1" || !v.Held("foo") || v.Held("baz") ||
		!reflect.DeepEqual(v.Providers("virt"), []string{"foo"}) || len(v.Names()) != 2 {
		t.Errorf("installed are %v, %v", v.Names(), err)
	}
	offers, err := p.Offers(ctx, []string{"foo", "nope"}, "")
	if want := (map[string]host.Offer{"foo": {Candidate: "2.0-1", Versions: []string{"3.0-1", "2.0-1"}}}); err != nil ||
		!reflect.DeepEqual(offers, want) {
		t.Errorf("offers are %+v, %v", offers, err)
	}
	if _, err := p.Plan(ctx, host.Transaction{Packages: []host.Wanted{{Name: "bar"}}}); err == nil ||
		!strings.Contains(err.Error(), "on hold") || diag.HintOf(err) == "" {
		t.Errorf("changing a package on hold: %v", err)
	}
	if got, err := p.Plan(ctx, host.Transaction{Packages: []host.Wanted{{Name: "foo", Version: "2.0-1"}}}); err != nil ||
		!reflect.DeepEqual(got, []host.PackageChange{{Name: "foo", Old: "1.0-1", New: "2.0-1"}}) {
		t.Errorf("the plan is %v, %v", got, err)
	}
	if _, err := p.Refresh(ctx); err == nil || !strings.Contains(diag.HintOf(err), "db.lck") {
		t.Errorf("refreshing while pacman is locked: %v", err)
	}
	if got, err := p.Cached(); err != nil || !reflect.DeepEqual(got,
		[]host.Package{{Name: "python-foo", Version: "1.0-1", Arch: "any"}}) {
		t.Errorf("downloaded are %v, %v", got, err)
	}
}

func TestPacmanMalformedOutput(t *testing.T) {
	files := rootWith(t, map[string]string{pacmanDB + "/local/foo-1.0-1/desc": "%NAME%\nfoo\n"}).Files
	p := &Packages{manager: &pacman{client{files: files}}}
	if _, err := p.Installed(); err == nil || diag.HintOf(err) == "" {
		t.Errorf("an incomplete package is read: %v", err)
	}
	for _, text := range []string{"step: foo\n", "step: a b c\n"} {
		if got, err := parsePacmanPlan(text, rpmInventory(), false); err == nil {
			t.Errorf("%q is parsed as %v", text, got)
		}
	}
	if got, err := parsePacmanList("core foo\n"); err == nil {
		t.Errorf("an incomplete line is parsed as %v", got)
	}
}

func TestEditIgnored(t *testing.T) {
	for _, c := range []struct {
		text, want string
		names      []string
		held       bool
	}{
		{"", "[options]\nIgnorePkg = a\n", []string{"a"}, true},
		{"[options]\nx\n[core]\n", "[options]\nIgnorePkg = a b\nx\n[core]\n", []string{"a", "b"}, true},
		{"[options]\nIgnorePkg = a\nIgnorePkg = b c\n[core]\n", "[options]\nIgnorePkg = a c\nIgnorePkg = b\n[core]\n",
			[]string{"c"}, true},
		{"[options]\nIgnorePkg = a\nIgnorePkg = b a\n#IgnorePkg = a\n", "[options]\nIgnorePkg = b\n#IgnorePkg = a\n",
			[]string{"a"}, false},
		{"[core]\nIgnorePkg = a\n", "[core]\nIgnorePkg = a\n", []string{"a"}, false},
	} {
		if got := editIgnored(c.text, c.names, c.held); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
	}
	p, _ := pacmanOf(t, nil)
	if err := p.Hold(context.Background(), []string{"linux-lts"}, false); err == nil || diag.HintOf(err) == "" {
		t.Errorf("a pattern is accepted as a name: %v", err)
	}
}

func FuzzPacman(f *testing.F) {
	f.Add(pacmanConfText)
	f.Add("%NAME%\nfoo\n\n%VERSION%\n1\n")
	f.Add("core foo 1 [installed]\nstep: foo 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		edited := editIgnored(text, []string{"new-name"}, true)
		if !parseIgnored(edited).holds("new-name") {
			t.Errorf("%q becomes %q, which does not hold the package", text, edited)
		}
		if again := editIgnored(edited, []string{"new-name"}, false); parseIgnored(again).holds("new-name") &&
			!parseIgnored(text).holds("new-name") {
			t.Errorf("%q becomes %q, which still holds the package", edited, again)
		}
		parseLocal(text)
		_, _ = parsePacmanList(text) // these must not panic
		_, _ = parsePacmanPlan(text, rpmInventory(), true)
	})
}
