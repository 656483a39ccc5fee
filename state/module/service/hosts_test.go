//go:build hosts

package service_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/host/units"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/service"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// thisMachine opens the machine that the test runs on. It skips the test unless the machine is declared
// disposable.
func thisMachine(t *testing.T) *host.Host {
	t.Helper()
	if os.Getenv("CORPUS_THROWAWAY_HOST") == "" {
		t.Skip("this changes the machine that it runs on; set CORPUS_THROWAWAY_HOST=1 on a disposable one")
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
}

func unitFile(t *testing.T, name, text string) { write(t, "/etc/systemd/system/"+name, text, 0o644) }

// systemctl queries systemd independently of the host package.
func systemctl(args ...string) string {
	out, _ := exec.Command("systemctl", args...).Output()
	return strings.TrimSpace(string(out))
}

type outcome struct {
	diff   module.Diff
	report module.Report
	err    error
}

// apply checks a state twice, applies it, and checks it again, each on a new host.Host as in separate runs.
func apply(t *testing.T, function string, pairs ...any) outcome {
	t.Helper()
	make := func() module.Resource {
		r := service.Functions()[function]()
		call := module.Call{Function: "service." + function, Arguments: value.NewMap(pairs...), At: func(string) diag.Pos {
			return diag.Pos{}
		}}
		if warnings, problems := module.Decode(r, call); len(warnings) > 0 || len(problems) > 0 {
			t.Fatal(warnings, problems)
		}
		return r
	}
	ctx, h := context.Background(), thisMachine(t)
	r := make()
	d, err := r.Check(ctx, h)
	if err != nil || d.Empty() {
		return outcome{diff: d, err: err}
	}
	report, err := r.Apply(ctx, h, d)
	if err != nil {
		return outcome{d, report, err}
	}
	if !d.Unknown && !value.Equal(d.Changes, report.Changes) {
		t.Errorf("%s predicted %s and did %s", function, value.Repr(d.Changes), value.Repr(report.Changes))
	}
	for name, h := range map[string]*host.Host{"the same run": h, "the next run": thisMachine(t)} {
		if again, err := make().Check(ctx, h); err != nil || !again.Empty() {
			t.Errorf("%s finds something to do in %s: %+v, %v", function, name, again, err)
		}
	}
	return outcome{d, report, nil}
}

const sleeper = "[Service]\nExecStart=/bin/sleep infinity\nExecReload=/bin/true\n[Install]\n" +
	"WantedBy=multi-user.target\n"

func TestServiceOnSystemd(t *testing.T) {
	thisMachine(t)
	unitFile(t, "corpus-web.service", sleeper)
	defer systemctl("disable", "--now", "corpus-web.service")
	// systemd has not been reloaded since the file was written.
	if o := apply(t, "running", "name", "corpus-web", "enable", true); o.err != nil ||
		!value.Equal(o.report.Changes, value.NewMap("corpus-web", true)) {
		t.Fatalf("%+v", o)
	}
	if systemctl("is-active", "corpus-web") != "active" || systemctl("is-enabled", "corpus-web") != "enabled" {
		t.Error("corpus-web should be up and enabled")
	}
	if o := apply(t, "dead", "name", "corpus-web.service", "enable", false); o.err != nil {
		t.Errorf("%+v", o)
	}
	if systemctl("is-active", "corpus-web") != "inactive" || systemctl("is-enabled", "corpus-web") != "disabled" {
		t.Error("corpus-web should be down and disabled")
	}
	if o := apply(t, "masked", "name", "corpus-dbus-none"); o.err != nil ||
		systemctl("is-enabled", "corpus-dbus-none.service") != "masked" {
		t.Errorf("%+v", o)
	}
	if o := apply(t, "running", "name", "corpus-dbus-none"); o.err == nil ||
		!strings.Contains(diag.HintOf(o.err), "unmask") {
		t.Errorf("a masked unit was started: %+v", o)
	}
	if o := apply(t, "unmasked", "name", "corpus-dbus-none"); o.err != nil {
		t.Errorf("%+v", o)
	}
	if o := apply(t, "masked", "name", "corpus-web", "runtime", true); o.err != nil {
		t.Errorf("%+v", o)
	}
	if o := apply(t, "running", "name", "corpus-web", "unmask_runtime", true); o.err != nil {
		t.Errorf("%+v", o)
	}
}

// TestInitScriptLinksWithUnit enables and disables a unit that has an init script of the same name, as in many
// packages.
func TestInitScriptLinksWithUnit(t *testing.T) {
	thisMachine(t)
	unitFile(t, "corpus-both.service", sleeper)
	write(t, "/etc/init.d/corpus-both",
		"#!/bin/sh\n### BEGIN INIT INFO\n# Provides: corpus-both\n# Required-Start:\n# Required-Stop:\n# Default-Start: 2 "+
			"3 4 5\n# Default-Stop: 0 1 6\n### END INIT INFO\n", 0o755)
	defer systemctl("disable", "corpus-both.service")
	links := func(kind string) int {
		found, _ := filepath.Glob("/etc/rc?.d/" + kind + "??corpus-both")
		return len(found)
	}
	if o := apply(t, "enabled", "name", "corpus-both"); o.err != nil || links("S") != 4 {
		t.Errorf("enabled: %d links, %+v", links("S"), o)
	}
	if o := apply(t, "disabled", "name", "corpus-both"); o.err != nil || links("S") != 0 {
		t.Errorf("disabled: %d links, %+v", links("S"), o)
	}
}

func TestChangedUnitIsReloaded(t *testing.T) {
	h := thisMachine(t)
	unitFile(t, "corpus-new.service", sleeper)
	defer systemctl("stop", "corpus-new.service")
	if o := apply(t, "running", "name", "corpus-new"); o.err != nil {
		t.Fatalf("%+v", o)
	}
	time.Sleep(10 * time.Millisecond) // wait for a different mtime, whose resolution is a clock tick
	unitFile(t, "corpus-new.service", strings.Replace(sleeper, "[Service]", "[Service]\nEnvironment=A=new", 1))
	r := service.Functions()["running"]()
	if _, problems := module.Decode(r, module.Call{Arguments: value.NewMap("name", "corpus-new"),
		At: func(string) diag.Pos { return diag.Pos{} }}); len(problems) > 0 {
		t.Fatal(problems)
	}
	w := r.(module.Watcher).Watched()
	d, err := w.Check(context.Background(), h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Apply(context.Background(), h, d); err != nil {
		t.Fatal(err)
	}
	if got := systemctl("show", "-p", "Environment", "corpus-new"); got != "Environment=A=new" {
		t.Errorf("the unit still has %s", got)
	}
}

// TestFirstDropInIsLoaded restarts a unit after its first drop-in, written by a state or by another program.
// systemd's NeedDaemonReload does not notice a directory created after the last reload.
func TestFirstDropInIsLoaded(t *testing.T) {
	for kind, put := range map[string]func(h *host.Host, path, text string) error{
		"state": func(h *host.Host, path, text string) error {
			if err := h.Files.Mkdir(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			return h.Files.Write(path, host.NewFile{Content: strings.NewReader(text), UID: -1, GID: -1})
		},
		"something else": func(_ *host.Host, path, text string) error {
			return errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			ctx, h := context.Background(), thisMachine(t)
			unit := "corpus-drop-" + kind[:2] + ".service"
			unitFile(t, unit, sleeper)
			defer systemctl("stop", unit)
			if err := h.Units.Act(ctx, host.Start, unit, true); err != nil {
				t.Fatal(err)
			}
			dir := "/etc/systemd/system/" + unit + ".d"
			defer func() { _ = os.RemoveAll(dir) }()
			if err := put(h, dir+"/x.conf", "[Service]\nEnvironment=A=dropped\n"); err != nil {
				t.Fatal(err)
			}
			if err := h.Units.Act(ctx, host.Restart, unit, true); err != nil {
				t.Fatal(err)
			}
			if got := systemctl("show", "-p", "Environment", unit); got != "Environment=A=dropped" {
				t.Errorf("after a restart the unit has %s", got)
			}
		})
	}
}

// TestSystemdIsReloadedAtTheEndOfARun checks that systemd is reloaded for changed files even if no state about a
// unit follows.
func TestSystemdIsReloadedAtTheEndOfARun(t *testing.T) {
	ctx, h := context.Background(), thisMachine(t)
	was, err := os.ReadFile("/etc/fstab")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	defer func() { _ = os.WriteFile("/etc/fstab", was, 0o644) }()
	line := "tmpfs /mnt/corpus-fstab tmpfs noauto 0 0\n"
	if err := h.Files.Write("/etc/fstab",
		host.NewFile{Content: strings.NewReader(string(was) + line), UID: -1, GID: -1}); err != nil {
		t.Fatal(err)
	}
	if err := units.Settle(ctx, h); err != nil {
		t.Fatal(err)
	}
	if got := systemctl("show", "-p", "LoadState", "--value", `mnt-corpus\x2dfstab.mount`); got != "loaded" {
		t.Errorf("after the run the mount unit of a line in /etc/fstab is %s", got)
	}
}

func TestFailuresOnSystemd(t *testing.T) {
	thisMachine(t)
	unitFile(t, "corpus-broken.service",
		"[Service]\nType=exec\nExecStartPre=/bin/sh -c 'echo cannot find my configuration; exit 3'\nExecStart=/bin/true\n")
	o := apply(t, "running", "name", "corpus-broken")
	if o.err == nil || !strings.Contains(o.err.Error(), "cannot find my configuration") ||
		!strings.Contains(o.err.Error(), "exit-code") || diag.HintOf(o.err) == "" {
		t.Errorf("got %v, hint %q; want the last words of the unit", o.err, diag.HintOf(o.err))
	}
	unitFile(t, "corpus-late.service", "[Service]\nExecStart=/bin/sh -c 'echo giving up; exit 4'\n")
	o = apply(t, "running", "name", "corpus-late")
	if o.err == nil || !strings.Contains(o.err.Error(),
		"is failed (failed) now: its program ended with status 4 (exit-code)") ||
		!strings.Contains(o.err.Error(), "giving up") {
		t.Errorf("a service that ends at once counts as running: %v", o.err)
	}
	unitFile(t, "corpus-again.service",
		"[Service]\nExecStart=/bin/sh -c 'sleep 0.2; echo giving up; exit 4'\nRestart=always\nRestartSec=10ms\n")
	defer systemctl("stop", "corpus-again.service")
	if o = apply(t, "running", "name", "corpus-again"); o.err == nil || !strings.Contains(o.err.Error(), "giving up") {
		t.Errorf("a service that systemd restarts again and again counts as running: %v", o.err)
	}
	unitFile(t, "corpus-job.service", "[Service]\nExecStart=/bin/true\n")
	if o = apply(t, "running", "name", "corpus-job"); o.err == nil ||
		!strings.Contains(diag.HintOf(o.err), "RemainAfterExit") {
		t.Errorf("a oneshot service that ended does not count as running: %v, hint %q", o.err, diag.HintOf(o.err))
	}
	unitFile(t, "corpus-wrong.service", "[Service]\nType=simple\n")
	if o = apply(t, "running", "name", "corpus-wrong"); o.err == nil ||
		!strings.Contains(diag.HintOf(o.err), "systemd-analyze verify") {
		t.Errorf("got %v, hint %q", o.err, diag.HintOf(o.err))
	}
	if o = apply(t, "running", "name", "corpus-borken"); o.err == nil ||
		diag.HintOf(o.err) != `did you mean "corpus-broken"? [C137]` {
		t.Errorf("got %v, hint %q", o.err, diag.HintOf(o.err))
	}
	if o = apply(t, "enabled", "name", "corpus-borken"); o.err == nil ||
		diag.HintOf(o.err) != `did you mean "corpus-broken"? [C137]` {
		t.Errorf("got %v, hint %q", o.err, diag.HintOf(o.err))
	}
}

func TestOtherUnits(t *testing.T) {
	thisMachine(t)
	unitFile(t, "corpus-many@.service", strings.Replace(sleeper, "infinity", "1000%i", 1))
	unitFile(t, "corpus-tick.service", "[Service]\nType=oneshot\nExecStart=/bin/true\n")
	unitFile(t, "corpus-tick.timer", "[Timer]\nOnActiveSec=1h\n[Install]\nWantedBy=timers.target\n")
	unitFile(t, "corpus-pipe.service", sleeper)
	unitFile(t, "corpus-pipe.socket", "[Socket]\nListenStream=/run/corpus-pipe\n[Install]\nWantedBy=sockets.target\n")
	defer systemctl("disable", "--now", "corpus-many@7.service", "corpus-tick.timer", "corpus-pipe.socket")
	for _, unit := range []string{"corpus-many@7", "corpus-tick.timer", "corpus-pipe.socket"} {
		if o := apply(t, "running", "name", unit, "enable", true); o.err != nil {
			t.Errorf("%s: %+v", unit, o)
		}
		if systemctl("is-active", unit) != "active" || systemctl("is-enabled", unit) != "enabled" {
			t.Errorf("%s should be up and enabled", unit)
		}
		if o := apply(t, "dead", "name", unit, "enable", false); o.err != nil {
			t.Errorf("%s: %+v", unit, o)
		}
	}
	if o := apply(t, "disabled", "name", "corpus-tick"); o.err != nil || len(o.diff.Warnings) == 0 {
		t.Errorf("disabling a static unit gives no warning: %+v", o)
	}
}

func TestAlias(t *testing.T) {
	thisMachine(t)
	unitFile(t, "corpus-real.service", sleeper+"Alias=corpus-nick.service\n")
	defer systemctl("disable", "--now", "corpus-real.service")
	if o := apply(t, "running", "name", "corpus-real", "enable", true); o.err != nil {
		t.Fatalf("%+v", o)
	}
	if o := apply(t, "running", "name", "corpus-nick", "enable", true); o.err != nil || !o.diff.Empty() {
		t.Errorf("the alias of a running unit: %+v", o)
	}
}

const script = `#!/bin/sh
### BEGIN INIT INFO
# Provides: corpus-old
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
case "$1" in
start) start-stop-daemon --start --background --make-pidfile --pidfile /run/corpus-old.pid --exec /bin/sleep -- 100000;;
stop) start-stop-daemon --stop --pidfile /run/corpus-old.pid;;
restart) $0 stop; $0 start;;
status) start-stop-daemon --status --pidfile /run/corpus-old.pid;;
esac
`

func TestInitScriptOnSystemd(t *testing.T) {
	thisMachine(t)
	write(t, "/etc/init.d/corpus-old", script, 0o755)
	systemctl("daemon-reload")
	defer func() { _ = exec.Command("update-rc.d", "-f", "corpus-old", "remove").Run() }()
	if o := apply(t, "running", "name", "corpus-old", "enable", true); o.err != nil {
		t.Fatalf("%+v", o)
	}
	if systemctl("is-active", "corpus-old") != "active" || systemctl("is-enabled", "corpus-old") != "enabled" {
		t.Errorf("corpus-old should be up and enabled: %s", systemctl("is-enabled", "corpus-old"))
	}
	if o := apply(t, "dead", "name", "corpus-old", "enable", false); o.err != nil {
		t.Errorf("%+v", o)
	}
	if systemctl("is-active", "corpus-old") != "inactive" || systemctl("is-enabled", "corpus-old") != "disabled" {
		t.Errorf("corpus-old should be down and disabled: %s", systemctl("is-enabled", "corpus-old"))
	}
}

// TestWithoutDBus stops D-Bus: root can then use systemd's private socket.
func TestWithoutDBus(t *testing.T) {
	thisMachine(t)
	unitFile(t, "corpus-alone.service", sleeper)
	defer systemctl("stop", "corpus-alone.service")
	systemctl("stop", "dbus.socket", "dbus.service")
	defer systemctl("start", "dbus.socket")
	if o := apply(t, "running", "name", "corpus-alone"); o.err != nil {
		t.Errorf("%+v", o)
	}
	if o := apply(t, "dead", "name", "corpus-alone"); o.err != nil {
		t.Errorf("%+v", o)
	}
}

func BenchmarkRunningService(b *testing.B) {
	h, err := machine.New(host.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for range 10 {
			if _, err := h.Units.Unit(context.Background(), "systemd-journald", ""); err != nil {
				b.Fatal(err)
			}
		}
	}
}
