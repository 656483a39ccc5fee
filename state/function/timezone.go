package function

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

type timezone struct{ *Facts }

func timezoneTable(f *Facts) Table {
	t := timezone{f}
	return Table{
		"timezone.get_zone":     Of("", t.zone),
		"timezone.get_offset":   Of("", func() (string, error) { return t.now("-0700") }),
		"timezone.get_zonecode": Of("", func() (string, error) { return t.now("MST") }),
		"timezone.zone_compare": Of("timezone", t.is),
		"timezone.get_hwclock":  Of("", t.clock),
	}
}

const zoneDir = "/usr/share/zoneinfo/"

// zone is the name of the host's time zone: where /etc/localtime leads to, or what Debian notes.
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
	text, err := readText(t.Host, "/etc/timezone")
	if err != nil {
		return "", errors.New("neither /etc/localtime nor /etc/timezone names a time zone")
	}
	return strings.TrimSpace(text), nil
}

// now writes the present time there.
func (t timezone) now(layout string) (string, error) {
	data, err := t.Host.Files.ReadFile("/etc/localtime")
	if absent(err) {
		return t.Facts.now().UTC().Format(layout), nil
	}
	if err != nil {
		return "", err
	}
	there, err := time.LoadLocationFromTZData("localtime", data)
	if err != nil {
		return "", fmt.Errorf("reading /etc/localtime: %w", err)
	}
	return t.Facts.now().In(there).Format(layout), nil
}

// is compares the host's time zone with a named one by what they say.
func (t timezone) is(name string) (bool, error) {
	wanted, err := t.Host.Files.ReadFile(zoneDir + name)
	if err != nil {
		return false, fmt.Errorf("there is no time zone %s: %w", name, err)
	}
	have, err := t.Host.Files.ReadFile("/etc/localtime")
	return string(have) == string(wanted), err
}

// clock says whether the hardware clock runs in UTC or in localtime.
func (t timezone) clock() (string, error) {
	text, err := readText(t.Host, "/etc/adjtime")
	if err != nil && !absent(err) {
		return "", err
	}
	if strings.HasSuffix(strings.TrimSpace(text), "LOCAL") {
		return "localtime", nil
	}
	return "UTC", nil
}

// timezoneActs set the time zone.
func timezoneActs(f *Facts) Table {
	return byState(f, map[string]deed{
		"timezone.set_zone": {signature: "timezone", state: "timezone.system", rename: map[string]string{"timezone": "name"}, yes: true},
	})
}
