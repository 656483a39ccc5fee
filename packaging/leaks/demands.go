package leaks

import (
	"cmp"
	"math"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// demands are what each match of an expression contains: at least one sequence of each list. Nearly all expressions for
// tokens ask for something rare, such as "SG." and 66 letters, which few texts around a keyword have. An empty list
// asks for nothing.
type demands [][]sequence

// weakest is the number of bits below which a sequence is too common to look for it.
const weakest = 10

// demandsOf returns what the matches of an expression have, the rarest first.
func demandsOf(expression string) demands {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	return demandsIn(re)
}

func demandsIn(re *syntax.Regexp) demands {
	var d demands
	for _, s := range sequences(d.items(re)) {
		d = append(d, []sequence{s})
	}
	slices.SortStableFunc(d, func(a, b []sequence) int { return cmp.Compare(bits(b), bits(a)) })
	return d
}

// in reports whether a text has what is asked for.
func (d demands) in(text []byte) bool {
	for _, list := range d {
		if !slices.ContainsFunc(list, func(s sequence) bool { return s.in(text) }) {
			return false
		}
	}
	return true
}

// item is a part of an expression that matches at least as many bytes of a set as its length, or exactly as many. An
// item of no length matches anything.
type item struct {
	run
	exact bool
}

// items returns the parts of an expression, one after the other, and adds what its alternatives have to the demands.
func (d *demands) items(re *syntax.Regexp) []item {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return nil
	case syntax.OpLiteral:
		return literal(re)
	case syntax.OpCharClass:
		set, exact := bytesOf(re.Rune)
		return []item{{run{1, set}, exact}}
	case syntax.OpCapture, syntax.OpConcat:
		var all []item
		for _, sub := range re.Sub {
			all = append(all, d.items(sub)...)
		}
		return all
	case syntax.OpPlus:
		return d.repeated(re.Sub[0], 1, -1)
	case syntax.OpRepeat:
		return d.repeated(re.Sub[0], re.Min, re.Max)
	case syntax.OpAlternate:
		return d.alternatives(re.Sub)
	}
	return []item{{}}
}

// literal returns the items of a text, each character in both cases if the expression ignores them.
func literal(re *syntax.Regexp) []item {
	var all []item
	for _, c := range re.Rune {
		ranges := []rune{c, c}
		if re.Flags&syntax.FoldCase != 0 {
			for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
				ranges = append(ranges, other, other)
			}
		}
		set, exact := bytesOf(ranges)
		all = append(all, item{run{1, set}, exact})
	}
	return all
}

// repeated returns the items of an expression that stands a number of times in a row; most is -1 for any number.
func (d *demands) repeated(re *syntax.Regexp, least, most int) []item {
	if least == 0 {
		return []item{{}}
	}
	once := d.items(re)
	if len(once) == 1 && once[0].length == 1 {
		return []item{{run{least, once[0].set}, once[0].exact && least == most}}
	}
	if least == 1 && most == 1 {
		return once
	}
	return append(once, item{})
}

// alternatives returns the items of expressions of which one stands there: if all have the same length, a set for each
// place. What each of them contains is added to the demands.
func (d *demands) alternatives(subs []*syntax.Regexp) []item {
	var either []sequence
	var places [][256]bool
	same, demanding := true, true
	for i, sub := range subs {
		if own := demandsIn(sub); len(own) > 0 {
			either = append(either, own[0]...)
		} else {
			demanding = false
		}
		one, exact := spread(new(demands).items(sub))
		if i == 0 {
			places = make([][256]bool, len(one))
		}
		if same = same && exact && len(one) == len(places); same {
			join(places, one)
		}
	}
	if demanding {
		*d = append(*d, either)
	}
	if !same {
		return []item{{}}
	}
	all := make([]item, len(places))
	for at := range places {
		all[at] = item{run{1, places[at]}, true}
	}
	return all
}

// join adds the bytes of other sets to sets.
func join(sets, others [][256]bool) {
	for at := range sets {
		for b, has := range others[at] {
			sets[at][b] = sets[at][b] || has
		}
	}
}

// spread returns the sets of exact items, one for each byte.
func spread(items []item) (places [][256]bool, exact bool) {
	for _, it := range items {
		if !it.exact {
			return nil, false
		}
		for range it.length {
			places = append(places, it.set)
		}
	}
	return places, true
}

// sequences returns the longest sequences of items. An item that may match more bytes than its length ends a sequence
// with its first bytes, and begins one with its last bytes.
func sequences(items []item) []sequence {
	var all []sequence
	var now sequence
	end := func() {
		if now.bits() >= weakest {
			all = append(all, now)
		}
		now = nil
	}
	known := false // now is the end of the sequence before it
	for _, it := range items {
		if it.length == 0 {
			if known {
				now = nil
			}
			end()
			known = false
			continue
		}
		first := len(now) == 0
		now = now.with(it.run)
		known = known && first
		if !it.exact && !first {
			end()
			now, known = sequence{it.run}, true
		}
	}
	if !known {
		end()
	}
	return all
}

// bytesOf returns the bytes of which characters in ranges consist. exact reports that each character is one byte.
func bytesOf(ranges []rune) (set [256]bool, exact bool) {
	const many = 16
	exact = true
	for i := 0; i < len(ranges); i += 2 {
		from, to := ranges[i], ranges[i+1]
		for c := from; c <= min(to, utf8.RuneSelf-1); c++ {
			set[c] = true
		}
		if to < utf8.RuneSelf {
			continue
		}
		exact = false
		from = max(from, utf8.RuneSelf)
		if to-from >= many || from <= utf8.RuneError && utf8.RuneError <= to { // which any byte that is not UTF-8 is
			for b := utf8.RuneSelf; b < len(set); b++ {
				set[b] = true
			}
			continue
		}
		for c := from; c <= to; c++ {
			for _, b := range utf8.AppendRune(nil, c) {
				set[b] = true
			}
		}
	}
	return set, exact
}

// bits returns how rare the most common one of some sequences is.
func bits(either []sequence) float64 {
	least := math.Inf(1)
	for _, s := range either {
		least = min(least, s.bits())
	}
	return least
}
