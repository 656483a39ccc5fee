package units

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Stable is the time that a program must run before its unit is considered up, since the init system reports success
// even for a program that exits at once.
const Stable = time.Second

// Stays waits until a unit that was started at the given time has run for Stable. If its program ends before, the error
// says how, with the last lines of its journal. Stays does not wait for programs that notify systemd when they are
// ready.
func (u *Units) Stays(ctx context.Context, name string, started time.Time) error {
	s, ok := u.init.(*systemd)
	if !ok || u.refused || u.own.Is(name) {
		return nil
	}
	unit := host.UnitName(name)
	first, err := s.service(ctx, unit)
	for now := first; err == nil && now.Quiet; now, err = s.service(ctx, unit) {
		switch {
		case !now.Running() || now.MainPID != first.MainPID || now.Restarts > first.Restarts:
			u.init.forget()
			return s.notUp(ctx, now, started)
		case time.Since(started) >= Stable:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(Stable / 10):
		}
	}
	return err
}

// notUp returns the error of a unit whose program ended after it was started.
func (s *systemd) notUp(ctx context.Context, d Service, started time.Time) error {
	err := fmt.Errorf("%s was started, and is %s now: its program %s", d.Name, d.State(), d.Ending())
	hint := fmt.Sprintf("`systemctl status %s` and `journalctl -u %s` on the host show more", d.Name, d.Name)
	if d.Active == "inactive" {
		hint = "a unit that does its work and ends needs RemainAfterExit=yes to count as up, or a cmd.run state instead"
	}
	if lines := LastLines(s.journal(ctx, d.Name, started)); len(lines) > 0 {
		err = fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
	}
	return diag.Unit.Hint(err, "%s", hint)
}
