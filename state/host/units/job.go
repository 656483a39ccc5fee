package units

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

func (s *systemd) act(ctx context.Context, verb host.UnitVerb, name string, wait bool) error {
	unit, start := host.UnitName(name), time.Now()
	return s.connected(ctx, func(c *dbus.Conn) error {
		if err := s.prepare(ctx, c, unit); err != nil {
			return explainBus(err, string(verb), unit)
		}
		if verb != host.Stop {
			// Failed starts may have used up the start limit of the unit. A unit that is not loaded has none.
			_ = c.ResetFailedUnitContext(ctx, unit)
		}
		result, err := s.job(ctx, c, verb, unit, wait)
		if err != nil {
			return explainBus(err, string(verb), unit)
		}
		if !wait || result == "done" || result == "skipped" && verb != host.Reload {
			return nil
		}
		return s.lastWords(ctx, c, verb, unit, result, start)
	})
}

// prepare makes systemd reload its files if a state changed one of them, if those of the unit have changed since it was
// loaded, or if the unit could not be loaded. It returns an error if the unit does not exist.
func (s *systemd) prepare(ctx context.Context, c *dbus.Conn, unit string) error {
	state, from, stale, err := loadState(ctx, c, unit)
	if err != nil {
		return err
	}
	if s.stale.Load() || stale || from.differs(s.files) || state != "loaded" && state != "masked" {
		if err := s.reload(ctx, c); err != nil {
			return err
		}
		if state, _, _, err = loadState(ctx, c, unit); err != nil {
			return err
		}
	}
	if state == "not-found" {
		return fmt.Errorf("%w: %s", errNoUnit, unit)
	}
	return nil
}

// loadState returns the load state of a unit, the files it was loaded from, and whether systemd reports that one of
// them has changed since.
func loadState(ctx context.Context, c *dbus.Conn, unit string) (state string, from loadedFrom, stale bool, err error) {
	all, err := c.GetUnitPropertiesContext(ctx, unit)
	state, _ = all["LoadState"].(string)
	stale, _ = all["NeedDaemonReload"].(bool)
	from.names, _ = all["Names"].([]string)
	from.fragment, _ = all["FragmentPath"].(string)
	from.dropIns, _ = all["DropInPaths"].([]string)
	return state, from, stale, err
}

// job queues a job for a unit and, if wait is true, waits for its result.
func (s *systemd) job(ctx context.Context, c *dbus.Conn, verb host.UnitVerb, unit string, wait bool) (string, error) {
	call := map[host.UnitVerb]func(context.Context, string, string, chan<- string) (int, error){
		host.Start: c.StartUnitContext, host.Stop: c.StopUnitContext, host.Restart: c.RestartUnitContext,
		host.Reload: c.ReloadUnitContext, host.ReloadOrRestart: c.ReloadOrRestartUnitContext,
	}[verb]
	if !wait {
		_, err := call(ctx, unit, "replace", nil)
		return "", err
	}
	// Without a subscriber systemd sends no signal when a job ends.
	if err := c.Subscribe(); err != nil {
		return "", err
	}
	done := make(chan string, 1)
	id, err := call(ctx, unit, "replace", done)
	if err != nil {
		return "", err
	}
	return s.waitForJob(ctx, c, unit, id, done)
}

// waitForJob waits for the end of a job. Since the signal can get lost, for example when the bus is restarted, it also
// queries the unit for its job. It frees a job that waits for the end of this run.
func (s *systemd) waitForJob(ctx context.Context, c *dbus.Conn, unit string, id int, done <-chan string) (
	string, error) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	q := queue{conn: c, own: Own(), since: time.Now()}
	for {
		select {
		case result := <-done:
			return result, nil
		case <-ctx.Done():
			return "", ctx.Err()
		case <-tick.C:
			current, err := c.GetUnitPropertyContext(ctx, unit, "Job")
			if err != nil {
				return "", fmt.Errorf("waiting for its job: %w", err)
			}
			if pair, ok := current.Value.Value().([]any); ok && len(pair) > 0 && fmt.Sprint(pair[0]) != fmt.Sprint(id) {
				return lost(done), nil
			}
			freed, err := q.free(ctx, unit)
			if err != nil {
				return "", err
			}
			s.own.Passed(freed)
		}
	}
}

// lost returns the result of a job that no longer exists: the result that has arrived meanwhile, or else "done", since
// the state of the unit is checked afterwards in any case.
func lost(done <-chan string) string {
	select {
	case result := <-done:
		return result
	case <-time.After(200 * time.Millisecond):
		return "done"
	}
}

// lastWords returns an error with the reason why a job failed and the lines that the unit has logged since.
func (s *systemd) lastWords(ctx context.Context, c *dbus.Conn, verb host.UnitVerb, unit, result string,
	since time.Time) error {
	err := fmt.Errorf("%s of %s failed: %s", verb, unit, s.reason(ctx, c, unit, result))
	if lines := LastLines(s.journal(ctx, unit, since)); len(lines) > 0 {
		err = fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
	}
	return diag.Unit.Hint(err, "`systemctl status %s` and `journalctl -u %s` on the host show more", unit, unit)
}

// reason returns a description of the result of a job and of the unit's process.
func (s *systemd) reason(ctx context.Context, c *dbus.Conn, unit, result string) string {
	switch result {
	case "dependency":
		return "a unit that it requires did not start"
	case "timeout":
		return "it exceeded the time limit of its unit"
	case "canceled":
		return "another job for the unit replaced it"
	}
	if !strings.HasSuffix(unit, ".service") {
		return result
	}
	all, err := c.GetUnitTypePropertiesContext(ctx, unit, "Service")
	if err != nil {
		return result
	}
	if why, _ := all["Result"].(string); why != "" && why != "success" {
		result = why
	}
	if status, _ := all["ExecMainStatus"].(int32); status != 0 {
		result += fmt.Sprintf(", status %d", status)
	}
	return result
}
