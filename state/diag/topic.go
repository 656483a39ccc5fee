package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Hint adds a hint about the topic, the next thing to try, to an error that belongs to no user file. It returns nil for
// a nil error.
func (t Topic) Hint(err error, format string, args ...any) error {
	return KeepHint(err, t.Coded(fmt.Sprintf(format, args...)))
}

// Coded returns a hint with the topic's code at the end of each line that does not end with a code of its own, as the
// hint of another error does. Codes elsewhere in a line are removed, so that a hint never has two.
func (t Topic) Coded(hint string) string {
	lines := strings.Split(hint, "\n")
	for i, line := range lines {
		if plain, own := cutCode(line); plain != "" {
			lines[i] = withoutCodes(plain) + orCode(own, t)
		}
	}
	return strings.Join(lines, "\n")
}

// Of returns a copy of a list whose hints are about the topic, for problems that another file's parser found.
func (t Topic) Of(list List) List {
	all := make(List, len(list))
	for i, d := range list {
		copied, lines := *d, strings.Split(d.Hint, "\n")
		for i, line := range lines {
			lines[i], _ = cutCode(line)
		}
		copied.Hint = t.Coded(strings.Join(lines, "\n"))
		all[i] = &copied
	}
	return all
}

func orCode(own string, t Topic) string {
	if own == "" {
		own = t.String()
	}
	return " [" + own + "]"
}

// String returns the code.
func (t Topic) String() string { return fmt.Sprintf("C%03d", uint16(t)) }

// Title describes the topic in a few words.
func (t Topic) Title() string { return topics[t].title }

// Cure is what to do first about errors of the topic, in one line.
func (t Topic) Cure() string { return topics[t].cure }

// TopicOf returns the topic with a code, in upper or lower case.
func TopicOf(code string) (Topic, bool) {
	for _, t := range Topics() {
		if strings.EqualFold(code, t.String()) {
			return t, true
		}
	}
	return 0, false
}

// Topics returns all topics in the order of their codes.
func Topics() (all []Topic) {
	for number, one := range topics {
		if one.title != "" {
			all = append(all, Topic(number))
		}
	}
	return all
}

// CodesOf returns the codes of the lines of a hint, each once, separated by spaces.
func CodesOf(hint string) string {
	var codes []string
	for line := range strings.SplitSeq(hint, "\n") {
		if _, code := cutCode(line); code != "" && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return strings.Join(codes, " ")
}

// codeLen is the length of a code with its brackets and the space before it.
const codeLen = len(" [C000]")

// cutCode divides a line of a hint into its text and its code, which is "" if it has none.
func cutCode(line string) (text, code string) {
	if at := len(line) - codeLen; at > 0 && isCode(line[at:]) {
		return line[:at], line[at+2 : len(line)-1]
	}
	return line, ""
}

// withoutCodes returns a text without the codes of hints that it was put together from.
func withoutCodes(text string) string {
	for at := 0; at+codeLen <= len(text); {
		if isCode(text[at : at+codeLen]) {
			text = text[:at] + text[at+codeLen:]
		} else {
			at++
		}
	}
	return text
}

// isCode reports whether a text of the length codeLen is a code with its brackets.
func isCode(text string) bool {
	digit := func(b byte) bool { return '0' <= b && b <= '9' }
	return strings.HasPrefix(text, " [C") && text[codeLen-1] == ']' && digit(text[3]) && digit(text[4]) && digit(text[5])
}
