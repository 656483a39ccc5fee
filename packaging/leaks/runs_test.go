package leaks

import (
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// writeMatch writes a text that an expression matches, but for the places of its borders, chosen at random.
func writeMatch(b *strings.Builder, r *rand.Rand, re *syntax.Regexp) {
	times := 1
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
		return
	case syntax.OpCharClass:
		i := 2 * r.IntN(len(re.Rune)/2)
		from, to := re.Rune[i], re.Rune[i+1]
		b.WriteRune(from + rune(r.IntN(int(min(to-from, 200))+1)))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
		return
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			writeMatch(b, r, sub)
		}
		return
	case syntax.OpAlternate:
		writeMatch(b, r, re.Sub[r.IntN(len(re.Sub))])
		return
	case syntax.OpQuest, syntax.OpStar:
		times = r.IntN(2)
	case syntax.OpRepeat:
		times = re.Min
	}
	for range times {
		for _, sub := range re.Sub {
			writeMatch(b, r, sub)
		}
	}
}

// TestMatchesHaveTheRequiredRuns writes texts that the rules match, and compares what they have with what is required.
func TestMatchesHaveTheRequiredRuns(t *testing.T) {
	rules, err := rulesOnce()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	matched, required := 0, 0
	for i := range rules.rules {
		expression := rules.rules[i].Regex
		re, err := syntax.Parse(expression.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if len(rules.runs[i]) > 0 {
			required++
		}
		for range 20 {
			var b strings.Builder
			writeMatch(&b, r, re)
			if !expression.MatchString(b.String()) {
				continue
			}
			matched++
			if !rules.runs[i].in("before " + b.String()) {
				t.Errorf("%s: %q has none of the runs", rules.rules[i].RuleID, b.String())
			}
		}
	}
	if matched < 10*len(rules.rules) || required < len(rules.rules)*9/10 {
		t.Errorf("%d texts of %d rules matched, and %d rules require something", matched, len(rules.rules), required)
	}
}

func TestRequiredRuns(t *testing.T) {
	for expression, c := range map[string]struct{ with, without string }{
		`k=[a-f0-9]{8}`:                     {"k=0123abcd", "k=0123abc-"},
		`(?i)k=([a-f]{4})`:                  {"K=ABCD", "k=abc"},
		`(?:[a-c]{3}|[0-9]{5}) [xyz]{1,4}!`: {"12345", "ab 1234"},
		`(?:ab?)+[^x]{3}`:                   {"a\u00e9", "xx"},
	} {
		runs := requiredRuns(expression)
		if !runs.in(c.with) || runs.in(c.without) {
			t.Errorf("%s: %+v", expression, runs)
		}
	}
	for _, expression := range []string{`abc`, `[a-z]*`, `(?:[a-z]{9}|x)`, `(`, `[0-9]{0,5}`} {
		if runs := requiredRuns(expression); !runs.in("") {
			t.Errorf("%s: %+v", expression, runs)
		}
	}
}

// TestKeywordsAreFound compares the automaton with a search for each word.
func TestKeywordsAreFound(t *testing.T) {
	words := map[string][]int{"a": {0}, "aab": {1}, "ab": {2}, "baa": {3, 4}, "s.": {5}, "abab": {6}}
	type place struct{ from, to, rule int }
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var text []byte
		for range r.IntN(30) {
			text = append(text, "aAbBsS.\x00\xe9"[r.IntN(9)])
		}
		var found, want []place
		newKeywords(words).walk(string(text), func(from, to int, rules []int) {
			for _, rule := range rules {
				found = append(found, place{from, to, rule})
			}
		})
		for word, rules := range words {
			for from := range text {
				if to := from + len(word); to <= len(text) && strings.EqualFold(string(text[from:to]), word) {
					for _, rule := range rules {
						want = append(want, place{from, to, rule})
					}
				}
			}
		}
		inOrder := func(a, b place) int { return 1000*(a.to-b.to) + 100*(a.from-b.from) + a.rule - b.rule }
		if !slices.IsSortedFunc(found, func(a, b place) int { return a.to - b.to }) {
			t.Errorf("%q: the ends of %v are not in order", text, found)
		}
		slices.SortFunc(found, inOrder)
		slices.SortFunc(want, inOrder)
		if !slices.Equal(found, want) {
			t.Fatalf("%q: found %v, want %v", text, found, want)
		}
	}
}
