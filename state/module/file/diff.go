package file

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Larger content is neither compared line by line nor held in memory.
const (
	maxDiffBytes = 1 << 20
	maxDiffLines = 20000
	maxDiffText  = 128 << 10 // the size of a difference in a report
)

// These texts replace a difference that is not shown.
const (
	newFile      = "New file"
	hiddenDiff   = "<show_changes=False>"
	secretDiff   = "<secret>"
	linkReplaced = "Replace symbolic link with regular file"
)

// difference describes a change of content as a unified diff, or as a sentence if the content is binary, too
// large or secret. It returns "" if nothing differs.
func (f *family) difference(before, after []byte, show bool, by readers) string {
	switch {
	case bytes.Equal(before, after):
		return ""
	case !show:
		return hiddenDiff
	}
	if text := binaryChange(before, after); text != "" {
		return text
	}
	return f.unified(by, linesOf(before), linesOf(after), "")
}

// seen returns a text, or secretDiff if it contains a secret.
func (f *family) seen(text string) string {
	if f.Secret != nil && f.Secret(text) {
		return secretDiff
	}
	return text
}

// unified returns the result of Python's difflib.unified_diff, its lines joined by join. The difference of a private
// file shows no line that the release does not have.
func (f *family) unified(by readers, before, after []string, join string) string {
	if len(before) > maxDiffLines || len(after) > maxDiffLines {
		return fmt.Sprintf("Replace %d lines with %d: too many to compare", len(before), len(after))
	}
	lines, removed, added := []string{"--- \n", "+++ \n"}, 0, 0
	private := by.private()
	for _, group := range difflib.NewMatcher(before, after).GetGroupedOpCodes(3) {
		first, last := group[0], group[len(group)-1]
		lines = append(lines, "@@ -"+span(first.I1, last.I2)+" +"+span(first.J1, last.J2)+" @@\n")
		for _, c := range group {
			if c.Tag == 'e' {
				lines = signed(lines, " ", before[c.I1:c.I2])
				continue
			}
			removed, added = removed+c.I2-c.I1, added+c.J2-c.J1
			if private {
				lines = append(lines, hiddenLines(c.I2-c.I1)...)
			} else {
				lines = signed(lines, "-", before[c.I1:c.I2])
			}
			lines = signed(lines, "+", after[c.J1:c.J2])
		}
	}
	if len(lines) == 2 {
		return ""
	}
	if private && !by.release {
		return withheld(removed, added)
	}
	return f.seen(bounded(strings.Join(lines, join)))
}

func signed(lines []string, sign string, more []string) []string {
	for _, line := range more {
		lines = append(lines, sign+line)
	}
	return lines
}

// span formats a range of lines for a unified diff: lines count from 1, and an empty range is given by the line
// before it.
func span(start, stop int) string {
	switch n := stop - start; n {
	case 1:
		return strconv.Itoa(start + 1)
	case 0:
		return strconv.Itoa(start) + ",0"
	default:
		return strconv.Itoa(start+1) + "," + strconv.Itoa(n)
	}
}

// bounded returns a text, truncated to maxDiffText at a line end with a note of how many lines were cut.
func bounded(text string) string {
	if len(text) <= maxDiffText {
		return text
	}
	cut := strings.LastIndexByte(text[:maxDiffText], '\n') + 1
	return fmt.Sprintf("%s... %s more\n", text[:cut], diag.Count(strings.Count(text[cut:], "\n"), "line"))
}

// linesOf splits content into lines with their ends. A line that is not UTF-8 is read as Latin-1.
func linesOf(content []byte) []string {
	var lines []string
	for line := range bytes.Lines(content) {
		lines = append(lines, readable(line))
	}
	return lines
}

func validText(line string) bool { return utf8.ValidString(line) }

func readable(line []byte) string {
	if utf8.Valid(line) {
		return string(line)
	}
	runes := make([]rune, len(line))
	for i, b := range line {
		runes[i] = rune(b)
	}
	return string(runes)
}

// isText guesses from the first 512 bytes whether content is text, by the same rule as Salt's file.is_text.
func isText(content []byte) bool {
	block := content[:min(len(content), 512)]
	if bytes.IndexByte(block, 0) >= 0 {
		return false
	}
	if len(block) == 0 || utf8.Valid(block) {
		return true
	}
	odd := 0
	for _, b := range block {
		if (b < 32 || b > 126) && bytes.IndexByte([]byte("\n\r\t\f\b"), b) < 0 {
			odd++
		}
	}
	return float64(odd)/float64(len(block)) <= 0.30
}

// binaryChange returns the sentence for a change from or to binary content, or "" if both are text.
func binaryChange(before, after []byte) string {
	was, is := !isText(before), !isText(after)
	switch {
	case was && is:
		return "Replace binary file"
	case was:
		return "Replace binary file with text file"
	case is:
		return "Replace text file with binary file"
	}
	return ""
}
