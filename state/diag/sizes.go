package diag

import (
	"fmt"
	"time"
)

// Size formats a number of bytes with a unit.
func Size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	size, unit := float64(n), 0
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// Elapsed formats a duration with a unit, rounded for people.
func Elapsed(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Stamp formats a time for people: in the time zone of this machine, to the second, with the zone's name.
func Stamp(t time.Time) string { return t.Local().Format(stampLayout) }

// StampUTC formats a time for text that must be the same on every machine, as the grounds of a signed record.
func StampUTC(t time.Time) string { return t.UTC().Format(stampLayout) }

const stampLayout = "2006-01-02 15:04:05 MST"
