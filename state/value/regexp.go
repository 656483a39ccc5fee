package value

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// Regexp is a regular expression with the syntax and the meaning of Python's re.
//
// Go's own engine runs it when it can, in time linear in the text. Look-around, back-references and a few constructs
// with another meaning there are matched by a backtracking engine, which stops after a second.
type Regexp struct {
	pattern  string
	linear   *regexp.Regexp // nil if Go's engine cannot express the pattern
	wary     waryOf
	flags    RegexpFlags
	groups   int
	backward *regexp2.Regexp // compiled when first needed
}

// RegexpFlags are the flags of Python's re that templates and states can set.
type RegexpFlags struct{ IgnoreCase, Multiline, DotAll bool }

// backtrackingTime limits the time of the backtracking engine for one text.
const backtrackingTime = time.Second

// CompileRegexp compiles a pattern. For a pattern that Python's re refuses, the error is an *Error of class re.error.
func CompileRegexp(pattern string, flags RegexpFlags) (*Regexp, error) {
	translated, wary, err := translateRegexp(pattern, flags.Multiline)
	if err != nil {
		return nil, err
	}
	r := &Regexp{pattern: translated, wary: wary, flags: flags}
	if linear, err := regexp.Compile(flags.prefix() + translated); err == nil && !wary.always {
		r.linear, r.groups = linear, linear.NumSubexp()
		return r, nil
	}
	if err := r.compileBacktracking(); err != nil {
		return nil, err
	}
	r.groups = len(r.backward.GetGroupNumbers()) - 1
	return r, nil
}

func (f RegexpFlags) prefix() string {
	letters := ""
	for _, flag := range []struct {
		set    bool
		letter string
	}{{f.IgnoreCase, "i"}, {f.Multiline, "m"}, {f.DotAll, "s"}} {
		if flag.set {
			letters += flag.letter
		}
	}
	if letters == "" {
		return ""
	}
	return "(?" + letters + ")"
}

func (r *Regexp) compileBacktracking() error {
	if r.backward != nil {
		return nil
	}
	options := regexp2.RegexOptions(0)
	if r.flags.IgnoreCase {
		options |= regexp2.IgnoreCase
	}
	if r.flags.Multiline {
		options |= regexp2.Multiline
	}
	if r.flags.DotAll {
		options |= regexp2.Singleline
	}
	back, err := regexp2.Compile(r.pattern, options)
	if err != nil {
		return Raise("re.error", "%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	back.MatchTimeout = backtrackingTime
	r.backward = back
	return nil
}

// Match is a match of a Regexp: Start and End are byte offsets, and Groups has a string for every group that took part
// and nil for the others.
type Match struct {
	Start, End int
	Groups     Tuple
	names      map[string]int
}

// Search finds the first match anywhere in s, or nil.
func (r *Regexp) Search(s string) (*Match, error) {
	var found *Match
	err := r.each(s, func(m *Match) bool { found = m; return false })
	return found, err
}

// MatchStart matches at the start of s, as re.match does, or returns nil.
func (r *Regexp) MatchStart(s string) (*Match, error) { return r.anchored(`\A(?:`, ")", s) }

// MatchAll matches all of s, as re.fullmatch does, or returns nil.
func (r *Regexp) MatchAll(s string) (*Match, error) { return r.anchored(`\A(?:`, `)\z`, s) }

func (r *Regexp) anchored(before, after, s string) (*Match, error) {
	whole := &Regexp{pattern: before + r.pattern + after, wary: r.wary, flags: r.flags, groups: r.groups}
	if r.linear != nil {
		linear, err := regexp.Compile(r.flags.prefix() + whole.pattern)
		if err == nil {
			whole.linear = linear
		}
	}
	return whole.Search(s)
}

// each calls yield for every match in order until it returns false.
func (r *Regexp) each(s string, yield func(*Match) bool) error {
	if r.linear == nil || r.wary.of(s) {
		return r.eachBacktracking(s, yield)
	}
	matches := r.linear.FindAllStringSubmatchIndex(s, -1)
	for _, m := range matches {
		if m[0] == m[1] && len(matches) > 1 { // Python finds more empty matches than Go
			return r.eachBacktracking(s, yield)
		}
	}
	if r.linear.MatchString("") && len(matches) > 0 && matches[0][1] > 0 {
		return r.eachBacktracking(s, yield)
	}
	for _, at := range matches {
		if !yield(r.linearMatch(s, at)) {
			break
		}
	}
	return nil
}

func (r *Regexp) linearMatch(s string, at []int) *Match {
	m := &Match{Start: at[0], End: at[1], Groups: make(Tuple, r.groups), names: map[string]int{}}
	for i, name := range r.linear.SubexpNames()[1:] {
		if name != "" {
			m.names[name] = i
		}
		if at[2*i+2] >= 0 {
			m.Groups[i] = s[at[2*i+2]:at[2*i+3]]
		}
	}
	return m
}

func (r *Regexp) eachBacktracking(s string, yield func(*Match) bool) error {
	if err := r.compileBacktracking(); err != nil {
		return err
	}
	m, err := r.backward.FindStringMatch(s)
	offsets := runeOffsets(s)
	for m != nil && err == nil {
		if !yield(r.backwardMatch(s, m, offsets)) {
			return nil
		}
		m, err = r.backward.FindNextMatch(m)
	}
	if err != nil {
		return Raise("re.error", "the expression takes too long on this text; the limit is %s", backtrackingTime)
	}
	return nil
}

// runeOffsets returns the byte offset of every character; the backtracking engine counts characters.
func runeOffsets(s string) []int {
	offsets := make([]int, 0, utf8.RuneCountInString(s)+1)
	for i := range s {
		offsets = append(offsets, i)
	}
	return append(offsets, len(s))
}

func (r *Regexp) backwardMatch(s string, m *regexp2.Match, offsets []int) *Match {
	out := &Match{Start: offsets[m.Index], End: offsets[m.Index+m.Length], names: map[string]int{}}
	for i, g := range m.Groups()[1:] {
		out.names[g.Name] = i
		if len(g.Captures) > 0 {
			out.Groups = append(out.Groups, s[offsets[g.Index]:offsets[g.Index+g.Length]])
		} else {
			out.Groups = append(out.Groups, nil)
		}
	}
	return out
}

// Replace implements re.sub(pattern, template, s): the template may name groups as \1, \g<1> and \g<name>.
func (r *Regexp) Replace(s, template string) (string, error) {
	replaced, _, err := r.ReplaceSome(s, template, 0)
	return replaced, err
}

// ReplaceSome implements re.subn(pattern, template, s, limit): it replaces at most limit matches, or all if limit is 0,
// and returns their number.
func (r *Regexp) ReplaceSome(s, template string, limit int) (string, int, error) {
	parts, err := parseReplacement(template)
	if err != nil {
		return "", 0, err
	}
	var b strings.Builder
	last, n := 0, 0
	eachErr := r.each(s, func(m *Match) bool {
		b.WriteString(s[last:m.Start])
		last = m.End
		for _, p := range parts {
			if err = p.write(&b, s, m); err != nil {
				return false
			}
		}
		n++
		err = checkText(b.Len())
		return err == nil && n != limit
	})
	if eachErr != nil {
		err = eachErr
	}
	b.WriteString(s[last:])
	return b.String(), n, err
}

// FindAll implements re.findall: it returns the text of every match, or its only group, or a tuple of its groups.
func (r *Regexp) FindAll(s string) (*List, error) {
	found := NewList()
	err := r.each(s, func(m *Match) bool {
		texts := Tuple{}
		for _, g := range m.Groups {
			if g == nil {
				g = ""
			}
			texts = append(texts, g)
		}
		switch len(texts) {
		case 0:
			found.Append(s[m.Start:m.End])
		case 1:
			found.Append(texts[0])
		default:
			found.Append(texts)
		}
		return true
	})
	return found, err
}
