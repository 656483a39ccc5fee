package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Window is a time of the week in which hosts may take a release: "Mon-Thu 09:00-16:00 Europe/Paris". The days and the
// time zone are optional; the defaults are every day, and UTC. A window whose end is before its start continues past
// midnight; its day is the one on which it opens.
type Window string

// times are the parts of a window.
type times struct {
	days       [7]bool // from Sunday on, as time.Weekday
	start, end int     // in minutes of the day
	zone       *time.Location
}

var dayNames = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

func (w Window) parse() (t times, err error) {
	words := strings.Fields(string(w))
	t.zone, t.days = time.UTC, [7]bool{true, true, true, true, true, true, true}
	hours := slices.IndexFunc(words, func(s string) bool { return strings.Contains(s, ":") })
	switch {
	case hours < 0 || hours > 1 || len(words) > hours+2:
		return t, w.mistake("it has no hours")
	case hours == 1:
		if t.days, err = parseDays(words[0]); err != nil {
			return t, w.mistake(err.Error())
		}
	}
	if t.start, t.end, err = parseHours(words[hours]); err != nil {
		return t, w.mistake(err.Error())
	}
	if len(words) > hours+1 {
		name := words[hours+1]
		if t.zone, err = time.LoadLocation(name); err != nil || name == "Local" {
			return t, diag.Plan.Hint(fmt.Errorf("window %q: there is no time zone %s here", string(w), name),
				"write one as Europe/Paris, or install the package tzdata")
		}
	}
	return t, nil
}

func (w Window) check() error {
	_, err := w.parse()
	return err
}

func (w Window) mistake(why string) error {
	return diag.Plan.Hint(fmt.Errorf("window %q: %s", string(w), why),
		"write one as: Mon-Thu 09:00-16:00 Europe/Paris; --window always, alone, removes them")
}

func parseDays(text string) (days [7]bool, err error) {
	for _, part := range strings.Split(text, ",") {
		from, to, several := strings.Cut(part, "-")
		first, last := slices.Index(dayNames, from), slices.Index(dayNames, to)
		if !several {
			last = first
		}
		if first < 0 || last < 0 {
			return days, fmt.Errorf("%s are not days; these are %s", part, strings.Join(dayNames, ", "))
		}
		for d := first; ; d = (d + 1) % 7 {
			days[d] = true
			if d == last {
				break
			}
		}
	}
	return days, nil
}

func parseHours(text string) (start, end int, err error) {
	from, to, ok := strings.Cut(text, "-")
	if start, err = parseTime(from); err != nil || !ok {
		return 0, 0, fmt.Errorf("%s is not a time of day", text)
	}
	if end, err = parseTime(to); err != nil || start == end {
		return 0, 0, fmt.Errorf("%s is not a time of day", text)
	}
	return start, end, nil
}

func parseTime(text string) (int, error) {
	if text == "24:00" {
		return 24 * 60, nil
	}
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), err
}

// next returns the time at which a window opens after a time; zero if the window cannot be parsed.
func (w Window) next(at time.Time) time.Time {
	t, err := w.parse()
	if err != nil {
		return time.Time{}
	}
	local := at.In(t.zone)
	for day := range 9 { // the eighth is the same day of the next week, and clocks change
		opens := time.Date(local.Year(), local.Month(), local.Day()+day, 0, t.start, 0, 0, t.zone)
		if t.days[opens.Weekday()] && opens.After(at) {
			return opens
		}
	}
	return time.Time{}
}

// Open reports whether a window is open at a time. A window that this host cannot parse is closed.
func (w Window) Open(at time.Time) (bool, error) {
	t, err := w.parse()
	if err != nil {
		return false, err
	}
	at = at.In(t.zone)
	minute, day := at.Hour()*60+at.Minute(), at.Weekday()
	if t.start < t.end {
		return t.days[day] && minute >= t.start && minute < t.end, nil
	}
	return t.days[day] && minute >= t.start || t.days[(day+6)%7] && minute < t.end, nil
}
