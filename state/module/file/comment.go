package file

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// comment implements file.comment and file.uncomment: it comments out the lines that match a pattern, or
// removes the comment character from them.
type comment struct {
	Name          string `sls:"name"`
	Regex         string `sls:"regex,required"`
	Char          string `sls:"char"`
	Backup        any    `sls:"backup"`
	IgnoreMissing bool   `sls:"ignore_missing"`

	remove bool // remove the comment character
	family *family
	edit   edit
}

func newComment(f *family, remove bool) *comment {
	return &comment{Char: "#", Backup: ".bak", remove: remove, family: f}
}

// expression is the regex argument split into its parts.
type expression struct {
	flags      string // such as (?i) at the start
	start, end string // ^ and $, or ""
	body       string
}

func takeApart(regex string) expression {
	var e expression
	if at := regexp.MustCompile(`^\(\?[aiLmsux]+\)`).FindString(regex); at != "" {
		e.flags, regex = at, regex[len(at):]
	}
	e.body = strings.TrimRight(strings.TrimLeft(regex, "^"), "$")
	if strings.HasPrefix(regex, "^") {
		e.start = "^"
	}
	if strings.HasSuffix(regex, "$") {
		e.end = "$"
	}
	return e
}

func (c *comment) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	var err error
	if c.edit, err = c.family.openEdit(h, c.Name); err != nil {
		return module.Diff{}, err
	}
	open, done, line := c.patterns(takeApart(c.Regex))
	todo, err := c.finds(open)
	if err != nil {
		return module.Diff{}, err
	}
	if !todo {
		finished, err := c.finds(done)
		return c.nothing(finished, err)
	}
	if err := c.edit.asText(); err != nil {
		return module.Diff{}, err
	}
	after, err := c.changed(line)
	if err != nil {
		return module.Diff{}, err
	}
	d := c.edit.diff(linesOf(c.edit.before), after, true)
	if d.Empty() {
		return module.Diff{}, c.unmatched("%s is in %s, but no line starts with it",
			"change regex to match the line from its start")
	}
	d.Planned = value.NewMap(c.edit.name, "updated")
	return d, nil
}

// patterns returns three regular expressions: one that finds lines still to change, one that finds lines
// already in the wanted form, and one that matches the part of a line to change.
func (c *comment) patterns(e expression) (open, done, line string) {
	if c.remove {
		sign := value.EscapeRegexp(c.Char)
		return e.flags + sign + `[ \t]*` + e.body + e.end, e.flags + `^[ \t]*` + e.body + e.end, e.flags + sign +
			`\s*(?:` + e.body + `)` + e.end
	}
	sign := value.EscapeRegexp(c.Char)
	return e.flags + `^(?!\s*` + sign + `).*` + e.body, e.flags + sign + e.body, e.flags + `(?:` + e.body + `)` + e.end
}

func (c *comment) finds(pattern string) (bool, error) {
	r, err := compileRegexp("regex", pattern, value.RegexpFlags{Multiline: true})
	if err != nil {
		return false, err
	}
	m, err := r.Search(string(c.edit.before))
	if err != nil {
		return false, host.Unsuitable(c.edit.name, err)
	}
	return m != nil, nil
}

// unmatched returns the error for a file without the lines that the state is to change.
func (c *comment) unmatched(format, hint string) error {
	return host.Unsuitable(c.edit.name, diag.Edit.Hint(fmt.Errorf(format, c.Regex, c.edit.name), "%s", hint))
}

// nothing returns the result for a file without lines to change: they are changed already, or the pattern is
// not in the file.
func (c *comment) nothing(finished bool, err error) (module.Diff, error) {
	switch {
	case err != nil:
		return module.Diff{}, err
	case finished:
		return module.Diff{Comment: c.edit.name + " is as it should be"}, nil
	case c.IgnoreMissing && !c.remove:
		return module.Diff{Comment: c.Regex + " is not in " + c.edit.name + ", and need not be"}, nil
	}
	return module.Diff{}, c.unmatched("%s is not in %s", "compare regex with the file; it is a Python regular expression")
}

// changed returns all lines of the file, after the change of those whose start matches the pattern.
func (c *comment) changed(pattern string) ([]string, error) {
	r, err := compileRegexp("regex", pattern, value.RegexpFlags{})
	if err != nil {
		return nil, err
	}
	after := lines(string(c.edit.before))
	for i, line := range after {
		m, err := r.MatchStart(line)
		switch {
		case err != nil:
			return nil, host.Unsuitable(c.edit.name, err)
		case m == nil:
		case c.remove:
			after[i] = strings.TrimLeft(line, c.Char)
		default:
			after[i] = c.Char + line
		}
	}
	return after, nil
}

func (c *comment) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return c.edit.apply(ctx, h, d, suffix(c.Backup))
}
