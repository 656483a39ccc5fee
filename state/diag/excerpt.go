package diag

import (
	"fmt"
	"strings"
)

// Excerpt shows the line with the problem, two lines before and after it, and a caret below the
// column. It returns "" for a line that is not in the text.
func Excerpt(text string, line, col int) string {
	const around = 2
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" || line < 1 || line > len(lines) {
		return ""
	}
	var b strings.Builder
	for n := max(1, line-around); n <= min(len(lines), line+around); n++ {
		mark := " "
		if n == line {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s%4d | %s\n", mark, n, clip(lines[n-1]))
		if n == line && col > 0 {
			fmt.Fprintf(&b, "      | %s^\n", caretIndent(lines[n-1], col))
		}
	}
	return b.String()
}

// caretIndent keeps tabs, so that the caret is below its column for any tab width.
func caretIndent(line string, col int) string {
	var b strings.Builder
	n := 1
	for _, r := range line {
		if n >= col {
			break
		}
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
		n++
	}
	return b.String()
}

func clip(line string) string {
	const width = 160
	if r := []rune(line); len(r) > width {
		return string(r[:width]) + "…"
	}
	return line
}
