// Package system implements system.*: the clock and the name of the host, and its reboot.
package system

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// machine reads and changes the running system as a whole: its clock, its name, and its shutdown.
type machine struct{ *function.Facts }

// Functions returns the functions of system that templates may call.
func Functions(f *function.Facts) function.Table {
	m := machine{f}
	return function.Table{
		"system.get_system_time":               function.Of("utc_offset=None", m.clock("03:04:05 PM")),
		"system.get_system_date":               function.Of("utc_offset=None", m.clock("01/02/2006")),
		"system.get_system_date_time":          function.Of("utc_offset=None", m.clock("2006-01-02 15:04:05")),
		"system.has_settable_hwclock":          function.Of("", func() bool { _, ok := f.Host.Which("hwclock"); return ok }),
		"system.get_computer_desc":             function.Of("", m.description),
		"system.get_computer_name":             function.Of("", func() string { return f.Hostname() }),
		"system.get_reboot_required_witnessed": function.Of("", func() bool { return f.IsFile(rebootWitness) }),
	}
}

// rebootWitness is a file that exists if a reboot is needed. The reboot removes it.
const rebootWitness = "/run/salt/reboot-required.witnessed"

// Acting returns the functions of system that change the host.
func Acting(f *function.Facts) function.Table {
	m := machine{f}
	return function.Table{
		"system.reboot":   function.Of("at_time=None", m.end("-r")),
		"system.shutdown": function.Of("at_time=None", m.end("-P")),
		"system.poweroff": function.Of("", func(ctx context.Context) (string, error) {
			return m.end("-P")(ctx, nil)
		}),
		"system.halt": function.Of("", func(ctx context.Context) (string, error) {
			return m.end("-H")(ctx, nil)
		}),
		"system.set_reboot_required_witnessed": function.Of("", m.witness),
		"system.init":                          function.Of("runlevel", m.level),
		"system.set_computer_name":             function.Of("hostname", m.name("--static", "--transient")),
		"system.set_computer_desc":             function.Of("desc", m.name("--pretty")),
		"system.set_system_date":               function.Of("newdate, utc_offset=None", m.setDate),
		"system.set_system_time":               function.Of("newtime, utc_offset=None, posix_form=None", m.setTime),
		"system.set_system_date_time": function.Of(
			"years=None, months=None, days=None, hours=None, minutes=None, seconds=None, utc_offset=None",
			m.setDateTime),
	}
}

func (m machine) clock(layout string) func(offset string) (string, error) {
	return func(offset string) (string, error) {
		now, err := m.in(offset)
		return now.Format(layout), err
	}
}

// description returns the pretty name of the host, or False if it has none.
func (m machine) description() any {
	text, err := function.ReadText(m.Host, "/etc/machine-info")
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

// end returns a function that reboots or stops the machine: immediately, in some minutes, or at a time such as
// 23:30.
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
		return program.Program{Name: "shutdown", Package: "systemd-sysv", Limit: time.Minute}.Do(ctx, m.Host, how, when)
	}
}

func (m machine) witness() (bool, error) {
	if err := m.Host.Kernel.Allowed("recording that a reboot is needed"); err != nil {
		return false, err
	}
	err := m.Host.WriteText(rebootWitness, "")
	return err == nil, err
}

// level changes the run level.
func (m machine) level(ctx context.Context, level any) (string, error) {
	text := value.Str(level)
	if len(text) != 1 || !strings.ContainsRune("0123456sS", rune(text[0])) {
		return "", fmt.Errorf("there is no run level %q", text)
	}
	if err := m.Host.Kernel.Allowed("changing the run level"); err != nil {
		return "", err
	}
	return program.Program{Name: "init", Package: "systemd-sysv", Limit: time.Minute}.Do(ctx, m.Host, text)
}

// name returns a function that sets the host name or its description.
func (m machine) name(kinds ...string) func(ctx context.Context, name string) (bool, error) {
	return func(ctx context.Context, name string) (bool, error) {
		if name == "" || strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\n\x00") {
			return false, fmt.Errorf("%q is not a valid host name", name)
		}
		if err := m.Host.Kernel.Allowed("naming the host"); err != nil {
			return false, err
		}
		if err := m.Host.Announce("/etc/hostname", "/etc/machine-info"); err != nil {
			return false, err
		}
		args := append([]string{"set-hostname"}, kinds...)
		_, err := program.Program{Name: "hostnamectl", Package: "systemd", Limit: time.Minute}.Do(ctx, m.Host,
			append(args, name)...)
		return err == nil, err
	}
}

// setDate sets the day of the clock.
func (m machine) setDate(ctx context.Context, date, offset string) (bool, error) {
	now, err := m.in(offset)
	if err != nil {
		return false, err
	}
	for _, layout := range []string{"01-02-2006", "01-02-06", "01/02/2006", "01/02/06", "2006/01/02", "2006-01-02"} {
		if day, err := time.Parse(layout, date); err == nil {
			return m.set(ctx, time.Date(day.Year(), day.Month(), day.Day(), now.Hour(), now.Minute(), now.Second(), 0,
				now.Location()))
		}
	}
	return false, fmt.Errorf("%q is not a date such as 2024-01-31", date)
}

// setTime sets the time of the clock.
func (m machine) setTime(ctx context.Context, clock, offset string, _ any) (bool, error) {
	now, err := m.in(offset)
	if err != nil {
		return false, err
	}
	for _, layout := range []string{"03:04:05 PM", "03:04 PM", "15:04:05", "15:04"} {
		if t, err := time.Parse(layout, clock); err == nil {
			return m.set(ctx, time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()))
		}
	}
	return false, fmt.Errorf("%q is not a time such as 23:30:00", clock)
}

// setDateTime sets the parts of date and time that are given.
func (m machine) setDateTime(ctx context.Context, years, months, days, hours, minutes, seconds *int,
	offset string) (bool, error) {
	now, err := m.in(offset)
	if err != nil {
		return false, err
	}
	part := func(given *int, otherwise int) int {
		if given != nil {
			return *given
		}
		return otherwise
	}
	return m.set(ctx, time.Date(part(years, now.Year()), time.Month(part(months, int(now.Month()))), part(days, now.Day()),
		part(hours, now.Hour()), part(minutes, now.Minute()), part(seconds, now.Second()), 0, now.Location()))
}

// in returns the current time at an offset from UTC.
func (m machine) in(offset string) (time.Time, error) {
	now := m.Time()
	if offset == "" {
		return now, nil
	}
	zone, err := time.Parse("-0700", offset)
	if err != nil {
		return now, fmt.Errorf("the offset %q is not written like +0200", offset)
	}
	return now.In(zone.Location()), nil
}

// set sets the clock, and the hardware clock where possible.
func (m machine) set(ctx context.Context, to time.Time) (bool, error) {
	if err := m.Host.Kernel.Allowed("setting the clock"); err != nil {
		return false, err
	}
	_, err := program.Program{Name: "date", Package: "coreutils", Limit: time.Minute}.Do(ctx, m.Host, "--set",
		to.Format("2006-01-02T15:04:05-07:00"))
	if _, ok := m.Host.Which("hwclock"); ok && err == nil {
		_, err = program.Program{Name: "hwclock", Package: "util-linux-extra", Limit: time.Minute}.Do(ctx, m.Host,
			"--systohc")
	}
	return err == nil, err
}
