package units

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

func TestUnitName(t *testing.T) {
	for name, want := range map[string]string{
		"web": "web.service", "web.service": "web.service", "web.socket": "web.socket", "my.app": "my.app.service",
		"a@b": "a@b.service", "myservice": "myservice.service", "multi-user.target": "multi-user.target",
	} {
		if got := host.UnitName(name); got != want {
			t.Errorf("%s in full is %s, want %s", name, got, want)
		}
	}
}

const journal = `{"MESSAGE":"Started web.","SYSLOG_IDENTIFIER":"systemd","_PID":"1"}
{"MESSAGE":"cannot find my configuration","SYSLOG_IDENTIFIER":"web","PRIORITY":"3","_PID":"77"}
no json
{"MESSAGE":[72,105,255],"SYSLOG_IDENTIFIER":"web"}
{"MESSAGE":null}
{"MESSAGE":"without a name"}
{"MESSAGE":"\u001b[31mred\u001b[0m\u0007\u202e\nand a second line","SYSLOG_IDENTIFIER":"web"}
`

func TestParseJournal(t *testing.T) {
	want := []string{"web: cannot find my configuration", "web: Hi\uFFFD", "without a name", "web: red",
		"web: and a second line"}
	if got := parseJournal(journal); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	alone := `{"MESSAGE":"web.service: Failed to set up mount namespacing","SYSLOG_IDENTIFIER":"systemd","_PID":"1"}`
	if got := parseJournal(alone); len(got) != 1 {
		t.Errorf("with messages of systemd only: %q", got)
	}
}

func TestLastLines(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprint("line ", i))
	}
	if got := LastLines(many); len(got) != 10 || got[0] != "line 20" || got[9] != "line 29" {
		t.Errorf("of 30 short lines are shown %q", got)
	}
	words := strings.Repeat("word ", 95) + strings.Repeat("x", 100)
	got := LastLines([]string{words, words, words, words, words, words})
	if size := len(strings.Join(got, "\n")); size > 2<<10 || len(got) != 4 || strings.Contains(got[0], "x") {
		t.Errorf("of long lines are shown %d bytes: %q", size, got)
	}
	if got := LastLines([]string{""}); len(got) != 0 {
		t.Errorf("of an empty output are shown %q", got)
	}
}

func FuzzParseJournal(f *testing.F) {
	f.Add(journal)
	f.Add(`{"MESSAGE":[1e99,-1,256]}`)
	f.Fuzz(func(_ *testing.T, text string) { parseJournal(text) })
}

const initScript = "#!/bin/sh\n"

// sysvHost returns a host with the init scripts web, which starts at boot, and db, which does not.
func sysvHost(t *testing.T, answers map[string]host.Output) (*Units, *hosttest.Scripted) {
	files := hosttest.Root(t, map[string]string{
		"/etc/init.d/web": initScript, "/etc/init.d/db": initScript, "/etc/init.d/README": "",
		"/etc/rc2.d/S01web": "", "/etc/rc2.d/K01db": "", "/etc/rc2.d/S01webserver": "",
	}).Files
	for _, name := range []string{"web", "db"} {
		if err := files.Chmod("/etc/init.d/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	commands := &hosttest.Scripted{T: t, Answers: answers}
	return &Units{init: &sysv{files: files, commands: commands}}, commands
}

func TestInitScripts(t *testing.T) {
	u, commands := sysvHost(t, map[string]host.Output{"/etc/init.d/web status": {}, "/etc/init.d/db status": {Code: 3}})
	ctx := context.Background()
	for name, want := range map[string]host.Unit{
		"web":         {Name: "web.service", Found: true, Active: "active", Boot: "enabled"},
		"web.service": {Name: "web.service", Found: true, Active: "active", Boot: "enabled"},
		"db":          {Name: "db.service", Found: true, Active: "inactive", Boot: "disabled"},
		"README":      {Name: "README.service"}, "../x": {Name: "../x.service"}, "nothing": {Name: "nothing.service"},
	} {
		if got, err := u.Unit(ctx, name, ""); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", name, got, err, want)
		}
	}
	if len(commands.Writes) > 0 {
		t.Errorf("reading units ran %v as changes", commands.Writes)
	}
	if got, err := u.Unit(ctx, "db", "no such process anywhere"); err != nil || got.Running() {
		t.Errorf("a process that does not exist is found: %+v, %v", got, err)
	}
}

func TestInitScriptActions(t *testing.T) {
	recorder := &hosttest.Recorded{}
	u, commands := sysvHost(t, map[string]host.Output{"/etc/init.d/web": {},
		"/etc/init.d/db": {Code: 1, Stdout: "no disk\n"}, "update-rc.d": {}})
	u.recorder = recorder
	ctx := context.Background()
	if err := errors.Join(u.Act(ctx, host.Start, "web", true), u.Act(ctx, host.ReloadOrRestart, "web", true),
		u.SetBoot(ctx, host.Disable, "web", false)); err != nil {
		t.Fatal(err)
	}
	want := []string{"/etc/init.d/web start", "/etc/init.d/web force-reload", "update-rc.d web defaults",
		"update-rc.d web disable"}
	if !reflect.DeepEqual(commands.Writes, want) {
		t.Errorf("ran %q, want %q", commands.Writes, want)
	}
	if want := []string{"unit web.service", "unit web.service",
		"unit at boot web.service"}; !reflect.DeepEqual(recorder.Subjects, want) {
		t.Errorf("recorded %v, want %v", recorder.Subjects, want)
	}
	if err := u.Act(ctx, host.Start, "db", true); err == nil || !strings.Contains(err.Error(), "no disk") ||
		diag.HintOf(err) == "" {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
	if err := u.Act(ctx, host.Start, "wbe", true); !errors.Is(err, errNoUnit) ||
		diag.HintOf(err) != `did you mean "web"? [C137]` {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
	if err := u.SetBoot(ctx, host.Mask, "web", false); err == nil || diag.HintOf(err) == "" {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
}

const unitFiles = `web.service                  enabled         enabled
db.service                   disabled        enabled
many@.service                static          -
gone.service                 masked          enabled
`

func TestUnitsOfAChroot(t *testing.T) {
	files := hosttest.Root(t, map[string]string{"/etc/init.d/old": initScript}).Files
	if err := files.Chmod("/etc/init.d/old", 0o755); err != nil {
		t.Fatal(err)
	}
	commands := &hosttest.Scripted{T: t, Answers: map[string]host.Output{
		"systemctl list-unit-files": {Stdout: unitFiles}, "systemctl is-enabled many@1.service": {Stdout: "enabled\n"},
		"systemctl is-enabled none@1.service": {Code: 1, Stderr: "Failed to get unit file state"},
		"systemctl enable db.service":         {}, "systemctl --runtime mask web.service": {}, "update-rc.d": {},
		"systemctl enable nope.service": {Code: 1, Stderr: "Failed to enable unit: Unit file nope.service does not exist.\n"},
		"systemctl enable gone.service": {Code: 1, Stderr: "Failed to enable unit: Unit file gone.service is masked.\n"},
	}}
	u := &Units{refused: true, init: &offline{files: files, commands: commands}}
	ctx := context.Background()
	for name, want := range map[string]host.Unit{
		"web":    {Name: "web.service", Found: true, Active: "inactive", Boot: "enabled"},
		"many@1": {Name: "many@1.service", Found: true, Active: "inactive", Boot: "enabled"},
		"none@1": {Name: "none@1.service", Active: "inactive"},
		"old":    {Name: "old.service", Found: true, Active: "inactive", Boot: "disabled"},
		"nope":   {Name: "nope.service", Active: "inactive"},
	} {
		if got, err := u.Unit(ctx, name, ""); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", name, got, err, want)
		}
	}
	var skipped *host.Skipped
	if err := u.Act(ctx, host.Start, "web", true); !errors.As(err, &skipped) {
		t.Errorf("starting in a chroot: %v", err)
	}
	if err := errors.Join(u.SetBoot(ctx, host.Enable, "db", false), u.SetBoot(ctx, host.Mask, "web", true),
		u.SetBoot(ctx, host.Enable, "old", false)); err != nil {
		t.Error(err)
	}
	want := []string{"systemctl enable db.service", "systemctl --runtime mask web.service", "update-rc.d old defaults",
		"update-rc.d old enable"}
	if !reflect.DeepEqual(commands.Writes, want) {
		t.Errorf("ran %q, want %q", commands.Writes, want)
	}
	if err := u.SetBoot(ctx, host.Enable, "nope", false); !errors.Is(err, errNoUnit) || diag.HintOf(err) == "" {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
	if err := u.SetBoot(ctx, host.Enable, "gone", false); err == nil || !strings.Contains(err.Error(), "masked") {
		t.Errorf("got %v", err)
	}
}

func TestUnitsBelowARoot(t *testing.T) {
	h := hosttest.Root(t, map[string]string{"/etc/init.d/web": initScript})
	h.Units = New(h, host.Options{Root: "/relocated"})
	ctx := context.Background()
	_, lookErr := h.Units.Unit(ctx, "web", "")
	var skipped *host.Skipped
	for _, err := range []error{
		lookErr, h.Units.Allowed("x"), h.Units.AllowedAtBoot("x"), h.Units.Act(ctx, host.Start, "web", true),
		h.Units.SetBoot(ctx, host.Enable, "web", false),
	} {
		if !errors.As(err, &skipped) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
}
