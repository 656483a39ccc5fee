package leaks

import (
	"regexp/syntax"
	"slices"
)

// run is a number of bytes in a row, all of a set.
type run struct {
	length int
	set    [256]bool
}

// runs are what each match of an expression contains: one of them at least. Nearly all expressions for tokens ask for
// one, such as 35 hexadecimal digits, and few texts around a keyword have it. An empty list asks for nothing.
type runs []run

// requiredRuns returns the longest runs that the matches of an expression have.
func requiredRuns(expression string) runs {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	return runsOf(re)
}

func runsOf(re *syntax.Regexp) runs {
	switch re.Op {
	case syntax.OpCapture:
		return runsOf(re.Sub[0])
	case syntax.OpPlus:
		return repeated(re.Sub[0], 1)
	case syntax.OpRepeat:
		return repeated(re.Sub[0], re.Min)
	case syntax.OpConcat:
		var longest runs
		for _, sub := range re.Sub {
			if r := runsOf(sub); r.least() > longest.least() {
				longest = r
			}
		}
		return longest
	case syntax.OpAlternate:
		var either runs
		for _, sub := range re.Sub {
			r := runsOf(sub)
			if len(r) == 0 {
				return nil
			}
			either = append(either, r...)
		}
		return either
	}
	return nil
}

// repeated returns the runs of an expression that stands at least a number of times in a row.
func repeated(re *syntax.Regexp, times int) runs {
	switch {
	case times == 0:
		return nil
	case re.Op == syntax.OpCharClass:
		return runs{{length: times, set: bytesOf(re.Rune)}}
	}
	return runsOf(re)
}

// least returns the length of the shortest run, or 0 if nothing is asked for.
func (r runs) least() int {
	least := 0
	for i, one := range r {
		if i == 0 || one.length < least {
			least = one.length
		}
	}
	return least
}

// in reports whether a text has one of the runs, or none is asked for.
func (r runs) in(text string) bool {
	return len(r) == 0 || slices.ContainsFunc(r, func(one run) bool { return one.in(text) })
}

// bytesOf returns the bytes that characters in ranges begin with or continue with: for those beyond ASCII, every byte
// that is not ASCII.
func bytesOf(ranges []rune) [256]bool {
	var set [256]bool
	for i := 0; i < len(ranges); i += 2 {
		for c := ranges[i]; c <= min(ranges[i+1], 0x7f); c++ {
			set[c] = true
		}
		if ranges[i+1] > 0x7f {
			for b := 0x80; b < len(set); b++ {
				set[b] = true
			}
		}
	}
	return set
}

// in reports whether a text has the run.
func (r run) in(text string) bool {
	for from := 0; from+r.length <= len(text); {
		at := from + r.length - 1 // backwards: a byte outside of the set rules out all runs that contain it
		for at >= from && r.set[text[at]] {
			at--
		}
		if at < from {
			return true
		}
		from = at + 1
	}
	return false
}
