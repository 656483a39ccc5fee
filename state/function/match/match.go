// Package match implements match.*: whether an expression, as in a top file, matches this host.
package match

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type match struct{ *function.Facts }

// Functions returns the functions of match that templates may call.
func Functions(f *function.Facts) function.Table {
	m := match{f}
	t := function.Table{
		"match.ipcidr": function.Of("tgt", func(tgt any) bool { return m.Matches(function.Query{Kind: "ipcidr"}, tgt) }),
		"match.filter_by": function.Of(
			"lookup, tgt_type='compound', minion_id=None, merge=None, merge_lists=False, default='default'", m.filterBy),
		"match.search_by": function.Of("lookup, tgt_type='compound', minion_id=None", m.searchBy),
		"match.ifelse":    function.Of("*args, tgt_type='compound', minion_id=None, merge=None, merge_lists=False", m.ifElse),
	}
	for _, kind := range []string{"compound", "glob", "list", "pcre"} {
		t["match."+kind] = function.Of("tgt, minion_id=None", func(tgt any, id string) bool {
			return m.Matches(function.Query{Kind: kind, ID: id}, tgt)
		})
	}
	for _, kind := range []string{"grain", "grain_pcre", "pillar", "pillar_pcre"} {
		t["match."+kind] = function.Of("tgt, delimiter=':'", func(tgt any, delimiter string) bool {
			return m.Matches(function.Query{Kind: kind, Delimiter: delimiter}, tgt)
		})
	}
	return t
}

// filterBy returns the value of the first expression that matches the host.
func (m match) filterBy(lookup *value.Map, kind, id string, merge any, mergeLists bool, fallback any) (any, error) {
	is, err := m.Matcher(kind, id)
	if err != nil {
		return nil, err
	}
	for expression, chosen := range lookup.All() {
		if !is(expression) {
			continue
		}
		if !value.Truth(merge) {
			return chosen, nil
		}
		if _, ok := merge.(*value.Map); !ok {
			return nil, function.TypeError("argument merge: %v", function.Expected("a mapping", merge))
		}
		if chosen == nil {
			return merge, nil
		}
		return function.Update(chosen, value.Copy(merge), true, mergeLists)
	}
	chosen, _, err := lookup.GetKey(fallback)
	return chosen, err
}

// searchBy returns the keys for which one of the expressions matches the host.
func (m match) searchBy(lookup *value.Map, kind, id string) (any, error) {
	is, err := m.Matcher(kind, id)
	if err != nil {
		return nil, err
	}
	found := value.NewList()
	for name, expressions := range lookup.All() {
		l, err := function.List(expressions)
		if err != nil {
			return nil, function.TypeError("%s: %v", value.Str(name), err)
		}
		for _, expression := range l.Items {
			if is(expression) {
				found.Append(name)
			}
		}
	}
	if found.Len() == 0 {
		return nil, nil
	}
	return found, nil
}

// ifElse takes pairs of an expression and a value, and a default at the end. It returns the value of the first pair
// whose expression matches. True and False always and never match.
func (m match) ifElse(args []any, kind, id string, merge any, mergeLists bool) (any, error) {
	if len(args)%2 == 0 {
		return nil, fmt.Errorf("it takes pairs of a match and a value and then one value more, and %d arguments were given",
			len(args))
	}
	last := args[len(args)-1]
	const otherwise = "\x00otherwise"
	lookup, err := pairsOf(args)
	if err != nil {
		return nil, err
	}
	if lookup.Len() == 0 {
		return last, nil
	}
	lookup.Set(otherwise, last)
	return m.filterBy(lookup, kind, id, merge, mergeLists, otherwise)
}

// pairsOf maps the matches of match.ifelse to their values. True matches every host, and False none.
func pairsOf(args []any) (*value.Map, error) {
	lookup := value.NewMap()
	for i := 0; i+1 < len(args); i += 2 {
		expression := args[i]
		switch expression {
		case true:
			expression = "*"
		case false:
			expression = "\x00never"
		}
		if err := lookup.SetKey(expression, args[i+1]); err != nil {
			return nil, err
		}
	}
	return lookup, nil
}
