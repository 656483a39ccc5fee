package units

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

func openrcHost(t *testing.T, answers map[string]host.Output) (*Units, *hosttest.Scripted) {
	t.Helper()
	files := hosttest.Root(t, map[string]string{
		"/etc/init.d/web": initScript, "/etc/init.d/db": initScript, "/etc/runlevels/default/web": "",
		"/etc/runlevels/boot/web": "", "/sbin/rc-service": "",
	}).Files
	for _, name := range []string{"web", "db"} {
		if err := files.Chmod("/etc/init.d/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	commands := &hosttest.Scripted{T: t, Answers: answers}
	u := &Units{init: initSystemOf(files, commands, true, false)}
	if _, ok := u.init.(*openrc); !ok {
		t.Fatalf("the init system is %T", u.init)
	}
	return u, commands
}

func TestOpenRCStatus(t *testing.T) {
	for code, want := range map[int]string{0: "active", 3: "inactive", 4: "deactivating", 8: "activating",
		16: "activating", 32: "failed"} {
		u, _ := openrcHost(t, map[string]host.Output{"rc-service --nocolor web status": {Code: code}})
		if got, err := u.Unit(context.Background(), "web", ""); err != nil ||
			got != (host.Unit{Name: "web.service", Found: true, Active: want, Boot: "enabled"}) {
			t.Errorf("code %d: web is %+v, %v", code, got, err)
		}
	}
	u, _ := openrcHost(t,
		map[string]host.Output{"rc-service --nocolor db status": {Code: 1, Stderr: "rc-service: not today\n"}})
	if _, err := u.Unit(context.Background(), "db", ""); err == nil || !strings.Contains(err.Error(), "not today") ||
		diag.HintOf(err) == "" {
		t.Errorf("a failing status command: %v", err)
	}
	if got, err := u.Unit(context.Background(), "none", ""); err != nil || got.Found {
		t.Errorf("a service that does not exist is %+v, %v", got, err)
	}
}

func TestOpenRCActions(t *testing.T) {
	u, commands := openrcHost(t, map[string]host.Output{
		"rc-service --nocolor web reload":  {Code: 1, Stderr: " * web: unknown function `reload'\n"},
		"rc-service --nocolor web restart": {},
		"rc-service --nocolor db start":    {Code: 1, Stderr: " * no disk\n * ERROR: db failed to start\n"}, "rc-update": {},
	})
	ctx := context.Background()
	if err := errors.Join(u.Act(ctx, host.ReloadOrRestart, "web", true), u.SetBoot(ctx, host.Disable, "web", false),
		u.SetBoot(ctx, host.Enable, "db", false)); err != nil {
		t.Error(err)
	}
	want := []string{"rc-service --nocolor web reload", "rc-service --nocolor web restart",
		"rc-update delete web boot default", "rc-update add db default"}
	if !reflect.DeepEqual(commands.Writes, want) {
		t.Errorf("ran %q, want %q", commands.Writes, want)
	}
	if err := u.Act(ctx, host.Start, "db", true); err == nil || !strings.Contains(err.Error(), "no disk") ||
		diag.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	if err := u.SetBoot(ctx, host.Mask, "web", false); err == nil || diag.HintOf(err) == "" {
		t.Errorf("masking: %v", err)
	}
	if err := u.Act(ctx, host.Start, "wbe", true); !errors.Is(err, errNoUnit) ||
		diag.HintOf(err) != `did you mean "web"? [C137]` {
		t.Errorf("got %v, hint %q", err, diag.HintOf(err))
	}
}
