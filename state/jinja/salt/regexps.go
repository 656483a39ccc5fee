package salt

import (
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func regexpParams() []jinja.Param {
	return []jinja.Param{jinja.Arg("txt"), jinja.Arg("rgx"), jinja.Opt("ignorecase", false), jinja.Opt("multiline", false)}
}

func regexpFilters() map[string]jinja.Filter {
	return map[string]jinja.Filter{
		"regex_escape": jinja.Define("regex_escape", regexEscape, jinja.Arg("value")),
		"regex_match":  jinja.Define("regex_match", regexMatch, regexpParams()...),
		"regex_search": jinja.Define("regex_search", regexSearch, regexpParams()...),
		"regex_replace": jinja.Define("regex_replace", regexReplace, jinja.Arg("txt"), jinja.Arg("rgx"), jinja.Arg("val"),
			jinja.Opt("ignorecase", false), jinja.Opt("multiline", false)),
	}
}

// compiled returns the regular expression of a call, and the text to match. Flags start at argument flagsAt.
func compiled(c *jinja.Call, flagsAt int) (r *value.Regexp, text string, err error) {
	if text, err = c.Text(0); err != nil {
		return nil, "", err
	}
	pattern, err := c.Text(1)
	if err != nil {
		return nil, "", err
	}
	var flags value.RegexpFlags
	if flags.IgnoreCase, err = c.Bool(flagsAt); err != nil {
		return nil, "", err
	}
	if flags.Multiline, err = c.Bool(flagsAt + 1); err != nil {
		return nil, "", err
	}
	r, err = c.Regexp(pattern, flags)
	return r, text, err
}

func regexEscape(c *jinja.Call) (any, error) {
	s, err := c.Text(0)
	return value.EscapeRegexp(s), err
}

// groupsOf returns the groups of a match as a tuple, or None.
func groupsOf(m *value.Match, err error) (any, error) {
	if m == nil || err != nil {
		return nil, err
	}
	if m.Groups == nil {
		return value.Tuple{}, nil
	}
	return m.Groups, nil
}

func regexMatch(c *jinja.Call) (any, error) {
	r, text, err := compiled(c, 2)
	if err != nil {
		return nil, err
	}
	return groupsOf(r.MatchStart(text))
}

func regexSearch(c *jinja.Call) (any, error) {
	r, text, err := compiled(c, 2)
	if err != nil {
		return nil, err
	}
	return groupsOf(r.Search(text))
}

func regexReplace(c *jinja.Call) (any, error) {
	r, text, err := compiled(c, 3)
	if err != nil {
		return nil, err
	}
	with, err := c.Text(2)
	if err != nil {
		return nil, err
	}
	replaced, err := r.Replace(text, with)
	return replaced, err
}

func matchTest(c *jinja.Call) (bool, error) {
	r, text, err := compiled(c, 2)
	if err != nil {
		return false, err
	}
	m, err := r.MatchStart(text)
	return m != nil, err
}
