package packages

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// TestPlanningWaitsForTheLock simulates another process that holds the lock for two commands, then for longer than the
// agent waits. The messages are those of each family.
func TestPlanningWaitsForTheLock(t *testing.T) {
	const start = "zypper --xmlout --non-interactive --no-refresh "
	families := map[string]struct {
		busy host.Output
		host func(*testing.T) (*Packages, *hosttest.Scripted, *time.Duration)
	}{
		"apk": {host.Output{Code: 99,
			Stderr: "ERROR: Unable to lock database: temporary error (try again later)\n" +
				"ERROR: Failed to open apk database: temporary error (try again later)\n"},
			func(t *testing.T) (*Packages, *hosttest.Scripted, *time.Duration) {
				p, c := apkOf(t,
					map[string]host.Output{
						"apk --no-network --no-progress add --simulate": {
							Stdout: "(1/1) Installing new (1-r0)\nOK: 0 MiB in 1 packages\n"}})
				return p, c, &p.manager.(*apk).lockWait
			}},
		"pacman": {host.Output{Code: 1,
			Stderr: "error: failed to init transaction (unable to lock database)\nerror: could not lock database: File " +
				"exists\n"},
			func(t *testing.T) (*Packages, *hosttest.Scripted, *time.Duration) {
				p, c := pacmanOf(t, map[string]host.Output{"pacman -S --print": {Stdout: pacmanStep + "new 1-1\n"}})
				return p, c, &p.manager.(*pacman).lockWait
			}},
		"dnf": {host.Output{Code: 200,
			Stderr: "Another app is currently holding the yum lock; exiting as configured by exit_on_lock\n"},
			func(t *testing.T) (*Packages, *hosttest.Scripted, *time.Duration) {
				p, c := yumOf(t, map[string]host.Output{"rpm -qa": {Stdout: "foo\t(none)\t1.0\t1\tnoarch\n"},
					"yum -C --assumeno": {Code: 1, Stdout: dnfHead + "Installing:\n new noarch 1-1 base 1 k\n\nTransaction Summary\n",
						Stderr: "Exiting on user command\n"}})
				return p, c, &p.manager.(*dnf).lockWait
			}},
		"zypper": {host.Output{Code: 7,
			Stderr: "System management is locked by the application with pid 7 (zypper).\n" +
				"Close this application before trying again.\n"},
			func(t *testing.T) (*Packages, *hosttest.Scripted, *time.Duration) {
				p, c := zypperOf(t,
					map[string]host.Output{start +
						"install": {Stdout: `<stream><install-summary><to-install><solvable type="package" name="new" edition="1-1" ` +
						`arch="noarch"/></to-install></install-summary></stream>`}})
				return p, c, &p.manager.(*zypper).lockWait
			}},
	}
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			p, commands, wait := f.host(t)
			*wait = time.Minute
			commands.Busy, commands.Turns = f.busy, 2
			changes, err := p.Plan(context.Background(), host.Transaction{Packages: []host.Wanted{{Name: "new"}}})
			if err != nil || len(changes) != 1 || changes[0].Name != "new" || commands.Turns != 0 {
				t.Errorf("with a lock that is released the plan is %+v, %v; %d commands left to lock",
					changes, err, commands.Turns)
			}
			*wait = 100 * time.Millisecond
			commands.Turns = 1 << 20
			began := time.Now()
			_, err = p.Plan(context.Background(), host.Transaction{Packages: []host.Wanted{{Name: "other"}}})
			var busy *Busy
			if !errors.As(err, &busy) || time.Since(began) < 50*time.Millisecond {
				t.Errorf("with a lock that stays: %v after %s", err, time.Since(began))
			}
		})
	}
}
