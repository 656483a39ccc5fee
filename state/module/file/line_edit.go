package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// apply returns the lines of the file after the change. Lines include their ends; the last one may lack it. A
// line that is already in place is left unchanged, whatever its indentation.
func (l *lineEdit) apply(before []string) ([]string, error) {
	content := ""
	if l.Content != nil {
		content = *l.Content
	}
	e := &lineEditor{lines: slices.Clone(before), content: content, indent: l.Indent}
	match := l.Match
	if match == "" && l.Before == nil && l.After == nil {
		match = content
	}
	after, err := e.find(l.After)
	if err != nil {
		return nil, err
	}
	upto, err := e.find(l.Before)
	if err != nil {
		return nil, err
	}
	switch l.Mode {
	case "delete":
		err = e.remove(match)
	case "replace":
		err = e.replace(match)
	case "insert":
		err = e.insert(l, after, upto)
	default:
		err = e.ensure(l, after, upto)
	}
	return e.lines, err
}

type lineEditor struct {
	lines   []string
	content string
	indent  bool
}

// find returns the indexes of the lines that match a pattern.
func (e *lineEditor) find(pattern *string) ([]int, error) {
	if pattern == nil || *pattern == "" {
		return nil, nil
	}
	r, err := compileRegexp("pattern", *pattern, value.RegexpFlags{DotAll: true})
	if err != nil {
		return nil, err
	}
	var found []int
	for i, line := range e.lines {
		m, err := r.Search(line)
		if err != nil {
			return nil, unfit{err}
		}
		if m != nil || strings.Contains(line, *pattern) {
			found = append(found, i)
		}
	}
	return found, nil
}

// remove deletes the first line that matches, and all lines equal to it.
func (e *lineEditor) remove(match string) error {
	found, err := e.find(&match)
	if err != nil || len(found) == 0 {
		return err
	}
	gone := e.lines[found[0]]
	e.lines = slices.DeleteFunc(e.lines, func(l string) bool { return l == gone })
	return nil
}

func (e *lineEditor) replace(match string) error {
	found, err := e.find(&match)
	if err != nil || len(found) == 0 {
		return err
	}
	e.set(found[0])
	return nil
}

// set replaces line i by the content.
func (e *lineEditor) set(i int) {
	if bare(e.lines[i]) != bare(e.content) {
		e.lines[i] = e.like(i) + ending(e.lines[i])
	}
}

// put inserts the content before line i, with the indentation of line as. Nothing changes if line there already
// is the content.
func (e *lineEditor) put(i, as, there int) {
	text := e.like(as)
	if there >= 0 && there < len(e.lines) && (bare(e.lines[there]) == text || bare(e.lines[there]) == bare(e.content)) {
		return
	}
	end := "\n"
	if len(e.lines) > 0 {
		end = orNewline(ending(e.lines[max(0, min(i, len(e.lines))-1)]))
	}
	if last := len(e.lines) - 1; i > last && last >= 0 && ending(e.lines[last]) == "" {
		e.lines[last] += end
		end = "" // the file still ends without a newline
	}
	e.lines = slices.Insert(e.lines, i, text+end)
}

// like returns the content with the indentation of line i.
func (e *lineEditor) like(i int) string {
	if !e.indent || i < 0 || i >= len(e.lines) {
		return bare(e.content)
	}
	line := e.lines[i]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))] + value.StripLeft(bare(e.content))
}

func bare(line string) string { return strings.TrimRight(line, "\r\n") }

func ending(line string) string { return line[len(bare(line)):] }

func orNewline(end string) string {
	if end == "" {
		return "\n"
	}
	return end
}

func (e *lineEditor) insert(l *lineEdit, after, before []int) error {
	switch {
	case l.Location == "end":
		last := len(e.lines) - 1
		as := -1 // after a final newline there is no line to take the indentation from
		if last >= 0 && ending(e.lines[last]) == "" {
			as = last
		}
		e.put(len(e.lines), as, last)
		return nil
	case l.Location == "start":
		e.put(0, -1, 0)
		return nil
	case l.Location != "":
		return diag.Argument.Hint(fmt.Errorf("location is %q", l.Location),
			"write start or end; beside a line, use before or after instead")
	case l.Before == nil && l.After == nil:
		return diag.Argument.Hint(errors.New("there is no position at which to insert the line"),
			"mode: insert needs location: start or end, or a pattern in before or after")
	}
	return e.beside(l, after, before)
}

// ensure inserts the line between two adjacent lines, or replaces the only line between them. If only one of the
// patterns matches, it inserts the line next to that match.
func (e *lineEditor) ensure(l *lineEdit, after, before []int) error {
	if !given(l.Before) && !given(l.After) {
		return diag.Argument.Hint(errors.New("mode: ensure lacks before and after"),
			"give one of them or both: patterns of the lines that content belongs beside")
	}
	if len(after) == 0 || len(before) == 0 {
		return e.beside(l, after, before)
	}
	a, errA := onlyMatch("after", l.After, after)
	b, errB := onlyMatch("before", l.Before, before)
	switch err := errors.Join(errA, errB); {
	case err != nil:
		return diag.Edit.Hint(err, "change it to match only one line")
	case slices.ContainsFunc(e.lines, func(l string) bool { return strings.TrimLeft(bare(l), " \t") == bare(e.content) }):
	case b == a+1:
		e.put(b, a, -1)
	case b == a+2:
		e.lines[a+1] = e.like(a) + ending(e.lines[a+1])
	default:
		return unfit{diag.Edit.Hint(errors.New("there is more than one line between after and before"),
			"mode: ensure replaces the one line between them; change them to match adjacent lines, or use file.blockreplace")}
	}
	return nil
}

// beside inserts the line before the line that matches l.Before or, if there is none, after the line that matches
// l.After. It returns an error if a pattern matches several lines.
func (e *lineEditor) beside(l *lineEdit, after, before []int) error {
	var errA, errB error
	a, b := -1, -1
	if len(after) > 0 {
		a, errA = onlyMatch("after", l.After, after)
	}
	if len(before) > 0 {
		b, errB = onlyMatch("before", l.Before, before)
	}
	switch err := errors.Join(errA, errB); {
	case err != nil:
		return diag.Edit.Hint(err, "change it to match only one line")
	case b >= 0:
		e.put(b, b, b-1)
	case a >= 0:
		e.put(a+1, a, a+1)
	default:
		return unfit{diag.Edit.Hint(fmt.Errorf("no line of the file has %s", givenPatterns(l)),
			"compare them with the file; they are Python regular expressions")}
	}
	return nil
}

func given(pattern *string) bool { return pattern != nil && *pattern != "" }

// givenPatterns formats the patterns that were given.
func givenPatterns(l *lineEdit) string {
	var names []string
	if given(l.After) {
		names = append(names, fmt.Sprintf("after: %q", *l.After))
	}
	if given(l.Before) {
		names = append(names, fmt.Sprintf("before: %q", *l.Before))
	}
	return strings.Join(names, " or ")
}

// onlyMatch returns the index of the only line that a pattern matches.
func onlyMatch(name string, pattern *string, found []int) (int, error) {
	if len(found) != 1 {
		return 0, unfit{fmt.Errorf("%s: %q is in %d lines", name, *pattern, len(found))}
	}
	return found[0], nil
}
