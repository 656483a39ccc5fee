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

// TestMatchesHaveWhatIsDemanded writes texts that the rules match, and compares what they have with what is demanded.
func TestMatchesHaveWhatIsDemanded(t *testing.T) {
	rules, err := rulesOnce()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	matched, demanding := 0, 0
	for i := range rules.rules {
		expression := rules.rules[i].Regex
		re, err := syntax.Parse(expression.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if len(rules.needs[i]) > 0 && bits(rules.needs[i][0]) > 20 {
			demanding++
		}
		for range 20 {
			var b strings.Builder
			writeMatch(&b, r, re)
			if !expression.MatchString(b.String()) {
				continue
			}
			matched++
			if !rules.needs[i].in([]byte("before " + b.String() + " after")) {
				t.Errorf("%s: %q has not what is demanded", rules.rules[i].RuleID, b.String())
			}
		}
	}
	if matched < 10*len(rules.rules) || demanding < len(rules.rules)*9/10 {
		t.Errorf("%d texts of %d rules matched, and %d rules demand something rare", matched, len(rules.rules), demanding)
	}
}

func TestDemands(t *testing.T) {
	for expression, c := range map[string]struct{ with, without string }{
		`k=[a-f0-9]{8}`:                     {"k=0123abcd", "k=0123abc-"},
		`(?i)k=([a-f]{4})`:                  {"K=ABCD", "k=abc"},
		`(?:[a-c]{3}|[0-9]{5}) [xyz]{1,4}!`: {"12345 x!", "ab 1234"},
		`(?:[a-c]{3}|[0-9]{5}) [xyz]{4}`:    {"abc xyzz", "abc xyz"},
		`(?i)task_[a-z]{4}`:                 {"TaS\u212a_abcd", "task-abcd"},
		`(?:live|test)_[a-f0-9]{4}`:         {"live_00ff", "tist_00ff"},
		`s\.[a-z0-9]{6}x`:                   {"ab.s.s.abc123x", "s.abc12 s.abc12-xs.abc12"},
		`[a-c]{2,3}==[0-9]{2,}(?:z|[0-9])`:  {"abcc==123", "a==12"},
		`(?:ab){2}c`:                        {"ab", "a-b"},
	} {
		demands := demandsOf(expression)
		if !demands.in([]byte(c.with)) || demands.in([]byte(c.without)) {
			t.Errorf("%s: %t in %s, %t in %s", expression, demands.in([]byte(c.with)), c.with,
				demands.in([]byte(c.without)), c.without)
		}
	}
	for _, expression := range []string{`a`, `[a-z]*`, `(?:[a-z]{9}|x)`, `(`, `[0-9]{0,5}`, `(?s:.{9})`, `\b$`} {
		if demands := demandsOf(expression); !demands.in(nil) {
			t.Errorf("%s: %+v", expression, demands)
		}
	}
}

// TestSequencesAreFound compares the search for a sequence, which skips places, with a look at each place.
func TestSequencesAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	has := 0
	for range 20_000 {
		var s sequence
		for range 1 + r.IntN(4) {
			one := run{length: 1 + r.IntN(3)}
			for _, b := range []byte("abc") {
				one.set[b] = r.IntN(2) == 0
			}
			s = s.with(one)
		}
		text := make([]byte, r.IntN(30))
		for i := range text {
			text[i] = "abcd"[r.IntN(4)]
		}
		want := false
		for from := range len(text) - s.length() + 1 {
			want = want || s.stands(text[from:])
		}
		if want {
			has++
		}
		if got := s.in(text); got != want {
			t.Fatalf("%v in %q: %t, want %t", s, text, got, want)
		}
	}
	if has < 3000 || has > 15_000 {
		t.Errorf("%d of 20,000 texts have the sequence", has)
	}
}

// stands reports whether a text begins with the sequence.
func (s sequence) stands(text []byte) bool {
	for i := range s {
		for range s[i].length {
			if !s[i].set[text[0]] {
				return false
			}
			text = text[1:]
		}
	}
	return true
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
		newKeywords(words).walk(text, func(from, to int, rules []int) {
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
