package file

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// parseTime parses a time with a format of Python's strptime. ok is false if the text does not match the
// format. An unknown directive in the format is an error.
func parseTime(text, form string) (at time.Time, ok bool, err error) {
	pattern, letters, err := timePattern(form)
	if err != nil {
		return at, false, err
	}
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return at, false, nil
	}
	fields := map[byte]int{'Y': 1900, 'm': 1, 'd': 1}
	for i, letter := range letters {
		field, n, ok := timeField(letter, m[i+1])
		if !ok {
			return at, false, nil
		}
		fields[field] = n
	}
	at = time.Date(fields['Y'], time.Month(fields['m']), fields['d'], fields['H'], fields['M'], fields['S'],
		fields['f']*1000, time.UTC)
	if day := fields['j']; day > 0 {
		at = at.AddDate(0, 1-int(at.Month()), day-at.Day())
		return at, day <= 366, nil
	}
	// time.Date converts a day that the month does not have to a day of the next month.
	return at, at.Day() == fields['d'] && at.Month() == time.Month(fields['m']), nil
}

// timePattern returns a regular expression for a format, and the directives of its groups.
func timePattern(form string) (*regexp.Regexp, []byte, error) {
	known := map[byte]string{
		'Y': `\d{4}`, 'm': `1[0-2]|0?[1-9]`, 'd': `3[01]|[12]\d|0?[1-9]| [1-9]`, 'H': `2[0-3]|[01]?\d`,
		'M': `[0-5]?\d`, 'S': `[0-5]?\d`,
		'f': `\d{1,6}`, 'y': `\d\d`, 'j': `[0-3]?\d?\d`, 'b': `[A-Za-z]{3}`, 'B': `[A-Za-z]{3,9}`,
	}
	var b strings.Builder
	var letters []byte
	for before, rest, found := strings.Cut(form, "%"); ; before, rest, found = strings.Cut(rest, "%") {
		b.WriteString(regexp.QuoteMeta(before))
		if !found {
			break
		}
		if strings.HasPrefix(rest, "%") {
			b.WriteByte('%')
			rest = rest[1:]
			continue
		}
		if rest == "" || known[rest[0]] == "" {
			return nil, nil, diag.Argument.Hint(fmt.Errorf("strptime_format %s has a directive that is not known", form),
				"it can have %%Y %%m %%d %%H %%M %%S %%f %%y %%j %%b and %%B")
		}
		b.WriteString("(" + known[rest[0]] + ")")
		letters = append(letters, rest[0])
		rest = rest[1:]
	}
	r, err := regexp.Compile(`^` + b.String() + `$`)
	return r, letters, err
}

// timeField parses the text of a directive and returns the part of the time that it sets.
func timeField(letter byte, text string) (field byte, n int, ok bool) {
	switch letter {
	case 'b', 'B':
		for _, layout := range []string{"Jan", "January"} {
			if t, err := time.Parse(layout, text); err == nil {
				return 'm', int(t.Month()), true
			}
		}
		return 'm', 0, false
	case 'f':
		text += strings.Repeat("0", 6-len(text))
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if letter == 'y' {
		// POSIX: 69 to 99 are in the 20th century, 00 to 68 in the 21st.
		if letter = 'Y'; n < 69 {
			n += 100
		}
		n += 1900
	}
	return letter, n, err == nil
}
