package salt

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// formatDate formats a time stamp, a date in one of the common forms, or the present time if the value is empty.
func formatDate(c *jinja.Call) (any, error) {
	format, err := c.Text(1)
	if err != nil {
		return nil, err
	}
	t, err := dateOf(c)
	if err != nil {
		return nil, err
	}
	return Strftime(t, format), nil
}

// dateLayouts lists the accepted forms of dates.
var dateLayouts = []string{
	"2006-01-02", "2006/01/02", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02 15:04:05Z07:00", "02 Jan 2006", "2 January 2006", "Jan 2, 2006", "January 2, 2006", "20060102",
	"20060102T150405",
	time.RFC1123, time.RFC1123Z, time.ANSIC, time.UnixDate,
}

func dateOf(c *jinja.Call) (time.Time, error) {
	v := c.Args[0]
	if v == nil {
		return time.Now(), nil
	}
	s, err := c.Str(0)
	if err != nil {
		return time.Time{}, err
	}
	if _, isText := v.(string); isText {
		for _, layout := range dateLayouts {
			if t, err := time.ParseInLocation(layout, s, time.Local); err == nil && layout != "20060102" {
				return t, nil
			}
		}
	}
	return sinceEpoch(v, s)
}

// sinceEpoch returns the time that is v seconds after 1970. shown is the number in errors.
func sinceEpoch(v any, shown string) (time.Time, error) {
	seconds, err := value.ToFloat(v)
	const latest = 253402300800 // the year 10000
	if err != nil || math.IsNaN(seconds) || math.Abs(seconds) >= latest {
		return time.Time{}, &jinja.Failure{
			Class: "ValueError", Message: "Unable to parse " + shown,
			Hint: "give seconds since 1970, or a date such as 2002-12-25",
		}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), nil
}

// layouts maps directives of strftime to the layouts of package time with the same meaning.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'd': "02", 'e': "_2", 'H': "15", 'I': "03",
	'j': "002",
	'm': "01", 'M': "04", 'p': "PM", 'S': "05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST", 'F': "2006-01-02",
	'T': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
	'r': "03:04:05 PM",
}

// Strftime formats a time as Python and C do.
func Strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := byte('0')
		if format[i] == '-' && i+1 < len(format) {
			pad = 0
			i++
		}
		text := directive(t, format[i])
		if pad == 0 {
			text = strings.TrimLeft(text, "0 ")
			if text == "" {
				text = "0"
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

func directive(t time.Time, c byte) string {
	if layout, ok := layouts[c]; ok {
		return t.Format(layout)
	}
	year, week := t.ISOWeek()
	switch c {
	case '%':
		return "%"
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'f':
		return padded(t.Nanosecond()/1000, 6)
	case 's':
		return strconv.FormatInt(t.Unix(), 10)
	case 'C':
		return padded(t.Year()/100, 2)
	case 'k':
		return strings.Replace(padded(t.Hour(), 2), "0", " ", 1)
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1)
	case 'w':
		return strconv.Itoa(int(t.Weekday()))
	case 'G':
		return strconv.Itoa(year)
	case 'V':
		return padded(week, 2)
	case 'U':
		return padded((t.YearDay()+6-int(t.Weekday()))/7, 2)
	case 'W':
		return padded((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2)
	}
	return "%" + string(rune(c))
}

func padded(n, width int) string {
	s := strconv.Itoa(n)
	return strings.Repeat("0", max(0, width-len(s))) + s
}
