package slsutil

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// bannerText returns a box of comment lines for the top of a file.
func bannerText(width int, comment, border string, start, end, title, text *string, newline bool) (string, error) {
	edge, side := strings.TrimRight(comment, " \t\n"), strings.TrimSpace(comment)
	inside := width - length(edge) - length(side) - 2
	if inside <= 0 {
		return "", errors.New("the banner is too narrow for its comment signs")
	}
	if title == nil {
		title = pointerTo("THIS FILE IS MANAGED BY SALT - DO NOT EDIT")
	}
	if text == nil {
		text = pointerTo(
			"The contents of this file are managed by Salt. Any changes to this file may be overwritten automatically and " +
				"without warning.")
	}
	if r, size := utf8.DecodeRuneInString(border); size > 0 {
		border = string(r)
	}
	rule := comment + strings.Repeat(border, max(0, width-length(edge)-length(side))) + side
	blank := comment + strings.Repeat(" ", max(0, width-2*length(comment))) + comment

	var lines []string
	if start != nil {
		lines = append(lines, *start)
	}
	lines = append(lines, rule, blank)
	for _, line := range wrap(*title, inside) {
		centred, err := value.Center(line, inside, ' ')
		if err != nil {
			return "", err
		}
		lines = append(lines, edge+" "+centred+" "+side)
	}
	lines = append(lines, blank)
	for _, line := range wrap(*text, inside) {
		lines = append(lines, edge+" "+line+strings.Repeat(" ", max(0, inside-length(line)))+" "+side)
	}
	lines = append(lines, rule)
	if end != nil {
		lines = append(lines, *end)
	}
	if newline {
		lines = append(lines, "")
	}
	return strings.Join(lines, "\n"), nil
}

func pointerTo(s string) *string { return &s }

func length(s string) int { return utf8.RuneCountInString(s) }

// wrap breaks a text into lines of at most width characters. Longer words are split.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for length(word) > width {
			room := width
			if line != "" {
				room -= length(line) + 1
			}
			if room <= 0 {
				lines, line = append(lines, line), ""
				continue
			}
			cut := string([]rune(word)[:room])
			lines, line = append(lines, strings.TrimLeft(line+" "+cut, " ")), ""
			word = strings.TrimPrefix(word, cut)
		}
		switch {
		case line == "":
			line = word
		case length(line)+1+length(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
