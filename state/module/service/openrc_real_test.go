//go:build integration

package service_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module/service"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// inside runs commands with chroot in a root.
type inside struct{ root string }

func (i inside) Allowed(string) error { return nil }

func (i inside) Run(ctx context.Context, c host.Command) (host.Output, error) {
	cmd := exec.CommandContext(ctx, "chroot", append([]string{i.root}, c.Argv...)...)
	var stdout, stderr strings.Builder
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, &stdout, &stderr
	err := cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = nil
	}
	return host.Output{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}, err
}

const initScript = `#!/sbin/openrc-run
extra_started_commands="reload"
start() { echo started >> /var/log/%; }
stop() { echo stopped >> /var/log/%; }
reload() { echo reloaded >> /var/log/%; }
`

// openRC returns a root in which OpenRC has booted, with the services web and db, and one that fails to start.
func openRC(t *testing.T) string {
	t.Helper()
	root := hosttest.Distribution(t, "ID=alpine\n", "openrc")
	hosttest.Put(t, root+"/run/openrc/softlevel", "", 0o644)
	for _, name := range []string{"web", "db"} {
		hosttest.Put(t, root+"/etc/init.d/"+name, strings.ReplaceAll(initScript, "%", name), 0o755)
	}
	hosttest.Put(t, root+"/etc/init.d/broken", "#!/sbin/openrc-run\nstart() { eerror 'no disk'; return 1; }\n", 0o755)
	return root
}

func TestOpenRC(t *testing.T) {
	root := openRC(t)
	h, err := machine.New(host.Options{Root: root, Commands: inside{root}})
	if err != nil {
		t.Fatal(err)
	}
	table := service.Functions()
	converge := func(function string, arguments ...any) {
		t.Helper()
		hosttest.Converge(t, h, table, function, value.NewMap(arguments...))
	}
	want := func(name, active, boot string) {
		t.Helper()
		u, err := h.Units.Unit(t.Context(), name, "")
		if err != nil || !u.Found || u.Active != active || u.Boot != boot {
			t.Errorf("%s is %+v, %v, want %s and %s", name, u, err, active, boot)
		}
	}
	want("web", "inactive", "disabled")
	converge("running", "name", "web", "enable", true)
	want("web", "active", "enabled")
	if shown := hosttest.In(t, root, "rc-update", "show", "default"); !strings.Contains(shown, "web") {
		t.Errorf("rc-update shows %q", shown)
	}
	if err := h.Units.Act(t.Context(), host.ReloadOrRestart, "web", true); err != nil {
		t.Error(err)
	}
	converge("dead", "name", "web", "enable", false)
	want("web", "inactive", "disabled")
	if log := hosttest.In(t, root, "cat", "/var/log/web"); log != "started\nreloaded\nstopped\n" {
		t.Errorf("the log of the service is %q", log)
	}
	converge("enabled", "name", "db")
	want("db", "inactive", "enabled")
	converge("disabled", "name", "db")
	want("db", "inactive", "disabled")
	names, err := h.Units.Names(t.Context())
	if err != nil || !strings.Contains(strings.Join(names, " "), "broken") ||
		!strings.Contains(strings.Join(names, " "), "db") {
		t.Errorf("services are %v, %v", names, err)
	}
}

func TestOpenRCRefuses(t *testing.T) {
	root := openRC(t)
	h, err := machine.New(host.Options{Root: root, Commands: inside{root}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Units.Act(t.Context(), host.Start, "broken", true); err == nil ||
		!strings.Contains(err.Error(), "no disk") {
		t.Errorf("starting a service that cannot start: %v", err)
	}
	if err := h.Units.Act(t.Context(), host.Start, "wbe", true); err == nil ||
		!strings.Contains(err.Error(), "no such unit") {
		t.Errorf("starting a missing service: %v", err)
	}
	if err := h.Units.SetBoot(t.Context(), host.Mask, "web", false); err == nil || !strings.Contains(err.Error(), "mask") {
		t.Errorf("masking: %v", err)
	}
	asleep, err := machine.New(host.Options{Root: root, Chroot: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := asleep.Units.SetBoot(t.Context(), host.Enable, "web", false); err != nil {
		t.Error(err)
	}
	if u, err := asleep.Units.Unit(t.Context(), "web", ""); err != nil || u.Boot != "enabled" || u.Running() {
		t.Errorf("in a root without processes web is %+v, %v", u, err)
	}
	var skipped *host.Skipped
	if err := asleep.Units.Act(t.Context(), host.Start, "web", true); !errors.As(err, &skipped) {
		t.Errorf("starting in a root without processes: %v", err)
	}
}
