package file

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// criterion reports whether a file matches.
type criterion func(full string, info host.Info) bool

// looseGlob converts a glob for names to a regular expression in which a question mark matches one character or
// none.
func looseGlob(pattern string) string {
	return strings.NewReplacer(".", `\.`, "?", ".?", "*", ".*").Replace(pattern) + "$"
}

func named(pattern string, ignoreCase bool) (criterion, error) {
	re, err := value.CompileRegexp(pattern, value.RegexpFlags{IgnoreCase: ignoreCase})
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression: %q", pattern)
	}
	return func(full string, _ host.Info) bool {
		m, err := re.MatchStart(path.Base(full))
		return err == nil && m != nil
	}, nil
}

func ofType(letters string) (criterion, error) {
	kinds := map[rune]fs.FileMode{'f': 0, 'd': fs.ModeDir, 'l': fs.ModeSymlink, 'p': fs.ModeNamedPipe, 's': fs.ModeSocket,
		'b': fs.ModeDevice, 'c': fs.ModeDevice | fs.ModeCharDevice}
	var wanted []fs.FileMode
	for _, letter := range strings.NewReplacer(",", "", " ", "").Replace(letters) {
		kind, ok := kinds[letter]
		if !ok {
			return nil, fmt.Errorf("invalid file type %q", string(letter))
		}
		wanted = append(wanted, kind)
	}
	return func(_ string, info host.Info) bool { return slices.Contains(wanted, info.Mode.Type()) }, nil
}

func (s *searching) ownedBy(names string) (criterion, error) {
	ids, err := numbersOf("user", names, s.file.userID)
	return func(_ string, info host.Info) bool { return slices.Contains(ids, info.UID) }, err
}

func (s *searching) ofGroup(names string) (criterion, error) {
	ids, err := numbersOf("group", names, s.file.groupID)
	return func(_ string, info host.Info) bool { return slices.Contains(ids, info.GID) }, err
}

func numbersOf(kind, names string, id func(any) any) ([]int, error) {
	var ids []int
	for _, name := range strings.Fields(strings.ReplaceAll(names, ",", " ")) {
		n, err := strconv.Atoi(name)
		if err != nil {
			known, ok := id(name).(int)
			if !ok {
				return nil, fmt.Errorf("no such %s %q", kind, name)
			}
			n = known
		}
		ids = append(ids, n)
	}
	return ids, nil
}

// ofSize parses sizes such as 5, -3m and +1.5k: the size rounded down, a maximum and a minimum.
func ofSize(text string) (criterion, error) {
	number, style := strings.TrimSpace(text), byte('=')
	if number != "" && (number[0] == '+' || number[0] == '-') {
		style, number = number[0], number[1:]
	}
	unit := 1
	if n := len(number); n > 0 {
		if i := strings.IndexByte("bkmgt", number[n-1]|0x20); i >= 0 {
			unit, number = 1<<(10*i), strings.TrimSpace(number[:n-1])
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid size: %q", text)
	}
	low, high := int64(f*float64(unit)), int64(f*float64(unit))+int64(unit)-1
	switch style {
	case '-':
		low, high = 0, int64(f*float64(unit))
	case '+':
		high = math.MaxInt64
	}
	return func(_ string, info host.Info) bool { return low <= info.Size && info.Size <= high }, nil
}

var agePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*([+-]?)\s*(?:(\d+(?:\.\d*)?)\s*[wW])?\s*(?:(\d+(?:\.\d*)?)\s*[dD])?\s*` +
		`(?:(\d+(?:\.\d*)?)\s*[hH])?\s*(?:(\d+(?:\.\d*)?)\s*[mM])?\s*(?:(\d+(?:\.\d*)?)\s*[sS])?\s*$`)
})
