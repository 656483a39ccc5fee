package jinja

import (
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// lines holds the offsets of the lines of a text, which are computed on first use. So a caller that looks up many
// positions does not scan the text each time.
type lines struct {
	once   sync.Once
	starts []int
}

func (l *lines) of(text string) []int {
	l.once.Do(func() {
		l.starts = append(l.starts, 0)
		for at := 0; ; {
			i := strings.IndexByte(text[at:], '\n')
			if i < 0 {
				return
			}
			at += i + 1
			l.starts = append(l.starts, at)
		}
	})
	return l.starts
}

// lineCol counts lines and characters from 1 for an offset of the text.
func (l *lines) lineCol(text string, at int) (line, col int) {
	at = min(at, len(text))
	starts := l.of(text)
	line = sort.SearchInts(starts, at+1)
	return line, utf8.RuneCountInString(text[starts[line-1]:at]) + 1
}

// offset returns the offset of a line and column in the text, or the end of the line or text if they are beyond it.
func (l *lines) offset(text string, line, col int) int {
	starts := l.of(text)
	if line > len(starts) {
		return len(text)
	}
	at := starts[max(line, 1)-1]
	for ; col > 1 && at < len(text) && text[at] != '\n'; col-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}
