// Package timezone implements timezone.*: the time zone of the host.
package timezone

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/function"
)

type timezone struct{ *function.Facts }

// Functions returns the functions of timezone that templates may call.
func Functions(f *function.Facts) function.Table {
	t := timezone{f}
	return function.Table{
		"timezone.get_zone":     function.Of("", t.zone),
		"timezone.get_offset":   function.Of("", func() (string, error) { return t.now("-0700") }),
		"timezone.get_zonecode": function.Of("", func() (string, error) { return t.now("MST") }),
		"timezone.zone_compare": function.Of("timezone", t.is),
		"timezone.get_hwclock":  function.Of("", t.clock),
	}
}

const zoneDir = "/usr/share/zoneinfo/"

// zone returns the name of the host's time zone: the target of /etc/localtime, or the content of Debian's
// /etc/timezone.
func (t timezone) zone() (string, error) {
	target, err := t.Host.Files.Readlink("/etc/localtime")
	if err == nil {
		if !path.IsAbs(target) {
			target = path.Join("/etc", target)
		}
		if name, ok := strings.CutPrefix(target, zoneDir); ok {
			return name, nil
		}
	}
	text, err := function.ReadText(t.Host, "/etc/timezone")
	if err != nil {
		return "", errors.New("neither /etc/localtime nor /etc/timezone names a time zone")
	}
	return strings.TrimSpace(text), nil
}

// now formats the current time in the host's time zone.
func (t timezone) now(layout string) (string, error) {
	data, err := t.Host.Files.ReadFile("/etc/localtime")
	if function.Absent(err) {
		return t.Facts.Time().UTC().Format(layout), nil
	}
	if err != nil {
		return "", err
	}
	there, err := time.LoadLocationFromTZData("localtime", data)
	if err != nil {
		return "", fmt.Errorf("reading /etc/localtime: %w", err)
	}
	return t.Facts.Time().In(there).Format(layout), nil
}

// is reports whether a named time zone has the same rules as the host's.
func (t timezone) is(name string) (bool, error) {
	wanted, err := t.Host.Files.ReadFile(zoneDir + name)
	if err != nil {
		return false, fmt.Errorf("there is no time zone %s: %w", name, err)
	}
	have, err := t.Host.Files.ReadFile("/etc/localtime")
	return string(have) == string(wanted), err
}

// clock returns UTC or localtime: the time zone of the hardware clock.
func (t timezone) clock() (string, error) {
	text, err := function.ReadText(t.Host, "/etc/adjtime")
	if err != nil && !function.Absent(err) {
		return "", err
	}
	if strings.HasSuffix(strings.TrimSpace(text), "LOCAL") {
		return "localtime", nil
	}
	return "UTC", nil
}

// Acting returns the functions that set the time zone.
func Acting(f *function.Facts) function.Table {
	return function.StateFunctions(f, map[string]function.ByState{
		"timezone.set_zone": {Signature: "timezone", State: "timezone.system", Rename: map[string]string{"timezone": "name"},
			True: true},
	})
}
