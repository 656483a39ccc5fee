package jinja

import "github.com/corpus-agent/corpus-agent/state/value"

// regexpKey is a pattern with its flags.
type regexpKey struct {
	pattern string
	flags   value.RegexpFlags
}

type cachedRegexp struct {
	regexp *value.Regexp
	err    error
}

// Regexp compiles a regular expression of Python's, or finds it among those of this Render.
func (c *Call) Regexp(pattern string, flags value.RegexpFlags) (*value.Regexp, error) {
	r := c.f.r
	key := regexpKey{pattern, flags}
	if known, ok := r.regexps[key]; ok {
		return known.regexp, known.err
	}
	compiled, err := value.CompileRegexp(pattern, flags)
	if r.regexps == nil {
		r.regexps = map[regexpKey]*cachedRegexp{}
	}
	r.regexps[key] = &cachedRegexp{compiled, err}
	return compiled, err
}
