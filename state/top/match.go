package top

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Target is the host against which expressions are matched.
type Target struct {
	ID         string
	Grains     *value.Map
	Pillar     *value.Map
	Nodegroups *value.Map           // name -> compound expression
	Warn       func(message string) // receives the names of nodegroups that do not exist; may be nil
}

// Kinds lists the kinds of matchers, as top files name them.
func Kinds() []string {
	return []string{"compound", "glob", "pcre", "list", "grain", "grain_pcre", "pillar", "pillar_exact", "pillar_pcre",
		"nodegroup", "ipcidr"}
}

// Match reports whether an expression of a kind matches the host.
func (t *Target) Match(kind, expression string) (bool, error) {
	return t.MatchDelimited(kind, expression, ":")
}

// MatchDelimited is like Match with a delimiter other than a colon between keys of grains and pillar. An expression
// with a nodegroup that does not exist matches no host, as under Salt.
func (t *Target) MatchDelimited(kind, expression, delimiter string) (bool, error) {
	ok, err := t.match(kind, expression, delimiter)
	var unknown unknownGroup
	if !errors.As(err, &unknown) {
		return ok, err
	}
	if t.Warn != nil {
		text := fmt.Sprintf("%v, so %q matches no host", unknown, expression)
		if hint := diag.DidYouMean(string(unknown), t.Nodegroups.Names()); hint != "" {
			text += ": " + hint
		}
		t.Warn(text)
	}
	return false, nil
}

func (t *Target) match(kind, expression, delimiter string) (bool, error) {
	switch kind {
	case "compound":
		return t.compound(expression)
	case "glob":
		return compile.Match(expression, t.ID), nil
	case "pcre":
		return matches(expression, t.ID)
	case "list":
		return slices.Contains(strings.Split(expression, ","), t.ID), nil
	case "grain":
		return inData(t.Grains, expression, delimiter, globMatch)
	case "grain_pcre":
		return inData(t.Grains, expression, delimiter, regexpMatch)
	case "pillar":
		return inData(t.Pillar, expression, delimiter, globMatch)
	case "pillar_exact":
		return inData(t.Pillar, expression, delimiter, exactMatch)
	case "pillar_pcre":
		return inData(t.Pillar, expression, delimiter, regexpMatch)
	case "nodegroup":
		return t.nodegroup(expression, nil)
	case "ipcidr":
		return t.ipcidr(expression)
	}
	hint := diag.DidYouMean(kind, Kinds())
	if hint == "" {
		hint = "the kinds are " + strings.Join(Kinds(), ", ")
	}
	return false, diag.Top.Hint(fmt.Errorf("%q is no way to match hosts", kind), "%s", hint)
}

func matches(pattern, text string) (bool, error) {
	re, err := value.CompileRegexp(pattern, value.RegexpFlags{})
	if err != nil {
		return false, fmt.Errorf("%q is not a regular expression: %w", pattern, err)
	}
	m, err := re.MatchStart(text)
	return m != nil, err
}

// matcher compares a value with a pattern. It ignores case.
type matcher func(data any, pattern string) (bool, error)

func globMatch(data any, pattern string) (bool, error) {
	return compile.Match(strings.ToLower(pattern), strings.ToLower(value.Str(data))), nil
}

func exactMatch(data any, pattern string) (bool, error) {
	return strings.EqualFold(pattern, value.Str(data)), nil
}

func regexpMatch(data any, pattern string) (bool, error) {
	return matches(strings.ToLower(pattern), strings.ToLower(value.Str(data)))
}

// inData matches key:...:pattern against nested data. Every way to cut the expression into a path
// and a pattern is tried, the longest path first, so that a:b:c finds both data[a][b] = c and
// data[a] = b:c.
func inData(data *value.Map, expression, delimiter string, match matcher) (bool, error) {
	if !strings.Contains(expression, delimiter) {
		return false, diag.Top.Hint(fmt.Errorf("%q names no value to match", expression), "write it as key%svalue",
			delimiter)
	}
	parts := strings.Split(expression, delimiter)
	for n := len(parts) - 1; n > 0; n-- {
		path, pattern := strings.Join(parts[:n], delimiter), strings.Join(parts[n:], delimiter)
		if path == "*" {
			return anyValue(data, pattern, match)
		}
		found, ok := value.Lookup(data, path, delimiter)
		if !ok {
			continue
		}
		if pattern == "*" {
			return true, nil
		}
		if ok, err := matchOne(found, pattern, delimiter, match); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// anyValue handles *:pattern, which matches the values of all keys.
func anyValue(data *value.Map, pattern string, match matcher) (bool, error) {
	for _, v := range data.All() {
		if ok, err := matchOne(v, pattern, ":", match); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func matchOne(data any, pattern, delimiter string, match matcher) (bool, error) {
	switch data := data.(type) {
	case *value.Map:
		if data.Has(pattern) {
			return true, nil
		}
		if strings.Contains(pattern, delimiter) {
			return inData(data, pattern, delimiter, match)
		}
		return false, nil
	case *value.List:
		return matchItems(data, pattern, delimiter, match)
	}
	return match(data, pattern)
}

// matchItems reports whether an item of a list matches. Lists in a list are compared as values.
func matchItems(list *value.List, pattern, delimiter string, match matcher) (bool, error) {
	for _, item := range list.Items {
		ok, err := false, error(nil)
		if m, isMap := item.(*value.Map); isMap {
			ok, err = matchOne(m, pattern, delimiter, match)
		} else {
			ok, err = match(item, pattern)
		}
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// ipcidr reports whether one of the host's addresses is the given one or is in the given network.
func (t *Target) ipcidr(expression string) (bool, error) {
	network, err := netip.ParsePrefix(expression)
	if err != nil {
		address, errA := netip.ParseAddr(expression)
		if errA != nil {
			return false, fmt.Errorf("%q is neither an address nor a network", expression)
		}
		network = netip.PrefixFrom(address, address.BitLen())
	}
	for _, grain := range []string{"ipv4", "ipv6"} {
		list, _ := t.Grains.Value(grain).(*value.List)
		if list == nil {
			continue
		}
		for _, item := range list.Items {
			if a, err := netip.ParseAddr(value.Str(item)); err == nil && network.Contains(a) {
				return true, nil
			}
		}
	}
	return false, nil
}
