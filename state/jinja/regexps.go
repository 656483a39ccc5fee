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

// Regexp compiles a Python regular expression, or returns the one that this Render has cached.
func (c *Call) Regexp(pattern string, flags value.RegexpFlags) (*value.Regexp, error) {
	r := c.f.r
	for _, arg := range c.Args { // matching counts as 8 times the steps of comparing a text
		if s, ok := arg.(string); ok {
			if err := r.step(8 * len(s) / bytesPerStep); err != nil {
				return nil, err
			}
		}
	}
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
