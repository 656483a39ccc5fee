package file

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// pattern is an item of include_pat or exclude_pat: a glob, or a regular expression after the prefix E@.
type pattern struct {
	glob   string
	search *value.Regexp
}

type patterns []pattern

func compilePatterns(argument string, texts []string) (patterns, error) {
	var list patterns
	for _, text := range texts {
		expression, ok := strings.CutPrefix(text, "E@")
		if !ok {
			list = append(list, pattern{glob: text})
			continue
		}
		search, err := compileRegexp(argument, expression, value.RegexpFlags{})
		if err != nil {
			return nil, err
		}
		list = append(list, pattern{search: search})
	}
	return list, nil
}

// compileRegexp compiles the regular expression in an argument.
func compileRegexp(argument, expression string, flags value.RegexpFlags) (*value.Regexp, error) {
	r, err := value.CompileRegexp(expression, flags)
	if err != nil {
		return nil, diag.Argument.Hint(fmt.Errorf("%s %s is not a regular expression: %w", argument, expression, err),
			"see Python's re; escape a literal bracket or star with a backslash")
	}
	return r, nil
}

// match reports whether any of the patterns matches a path.
func (list patterns) match(p string) (bool, error) {
	for _, one := range list {
		if one.search == nil {
			if value.Glob(one.glob, p) {
				return true, nil
			}
			continue
		}
		m, err := one.search.Search(p)
		if m != nil || err != nil {
			return m != nil, err
		}
	}
	return false, nil
}
