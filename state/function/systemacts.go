package function

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// machine is the running system as a whole: its clock, and its end.
type machine struct{ *Facts }

func systemTable(f *Facts) Table {
	m := machine{f}
	return Table{
		"system.get_system_time":               Of("utc_offset=None", m.clock("03:04:05 PM")),
		"system.get_system_date":               Of("utc_offset=None", m.clock("01/02/2006")),
		"system.get_system_date_time":          Of("utc_offset=None", m.clock("2006-01-02 15:04:05")),
		"system.has_settable_hwclock":          Of("", func() bool { _, ok := f.Host.Which("hwclock"); return ok }),
		"system.get_computer_desc":             Of("", m.description),
		"system.get_computer_name":             Of("", func() string { return network{f}.hostname() }),
		"system.get_reboot_required_witnessed": Of("", func() bool { return file{f}.exists(rebootWitness) }),
	}
}

// rebootWitness exists from the moment when a reboot is known to be needed until that has taken place.
const rebootWitness = "/run/salt/reboot-required.witnessed"

func systemActs(f *Facts) Table {
	m := machine{f}
	return Table{
		"system.reboot":                        Of("at_time=None", m.end("-r")),
		"system.shutdown":                      Of("at_time=None", m.end("-P")),
		"system.poweroff":                      Of("", func(ctx context.Context) (string, error) { return m.end("-P")(ctx, nil) }),
		"system.halt":                          Of("", func(ctx context.Context) (string, error) { return m.end("-H")(ctx, nil) }),
		"system.set_reboot_required_witnessed": Of("", m.witness),
	}
}

func (m machine) clock(layout string) func(offset string) (string, error) {
	return func(offset string) (string, error) {
		now := m.now()
		if offset != "" {
			zone, err := time.Parse("-0700", offset)
			if err != nil {
				return "", fmt.Errorf("the offset %q is not written like +0200", offset)
			}
			now = now.In(zone.Location())
		}
		return now.Format(layout), nil
	}
}

// description is the name of the host for people; False where it has none.
func (m machine) description() any {
	text, err := readText(m.Host, "/etc/machine-info")
	if err != nil {
		return false
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_HOSTNAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return false
}

// end reboots or stops the machine: at once, in some minutes, or at a time such as 23:30.
func (m machine) end(how string) func(ctx context.Context, at any) (string, error) {
	return func(ctx context.Context, at any) (string, error) {
		when := "now"
		if at != nil {
			when = value.Str(at)
		}
		if n, err := strconv.Atoi(strings.TrimPrefix(when, "+")); err == nil && n >= 0 {
			when = "+" + strconv.Itoa(n)
		} else if _, err := time.Parse("15:04", when); err != nil && when != "now" {
			return "", fmt.Errorf("at_time is %q, and now, a number of minutes or a time such as 23:30 was expected", when)
		}
		if err := m.Host.Kernel.Allowed("shutdown " + how); err != nil {
			return "", err
		}
		return host.Program{Name: "shutdown", Package: "systemd-sysv", Limit: time.Minute}.Do(ctx, m.Host, how, when)
	}
}

func (m machine) witness() (bool, error) {
	if err := m.Host.Kernel.Allowed("noting that a reboot is needed"); err != nil {
		return false, err
	}
	err := m.Host.WriteText(rebootWitness, "")
	return err == nil, err
}
