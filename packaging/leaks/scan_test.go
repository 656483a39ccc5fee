package leaks

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// FuzzScan compares what is found in a text with what the rules find without looking for demands first.
func FuzzScan(f *testing.F) {
	rules, err := rulesOnce()
	if err != nil {
		f.Fatal(err)
	}
	const texts = 40
	secrets := 0
	r := rand.New(rand.NewPCG(7, 8))
	for range texts {
		text := generated(r, rules)
		secrets += min(1, len(rules.in("conf/data", text)))
		f.Add(text)
	}
	if secrets < texts/4 {
		f.Errorf("%d of %d texts have secrets", secrets, texts)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, want := rules.in("conf/data", text), plain(rules, "conf/data", text)
		if !slices.Equal(got, want) {
			t.Errorf("%q: found %v, want %v", text, got, want)
		}
	})
}

// generated returns a text with words, keywords and long runs of letters, and with some matches of rules, of which some
// are damaged.
func generated(r *rand.Rand, rules *contents) []byte {
	var b strings.Builder
	for size := r.IntN(2000); b.Len() < size; {
		rule := &rules.rules[r.IntN(len(rules.rules))]
		switch r.IntN(100) {
		case 0:
			re, err := syntax.Parse(rule.Regex.String(), syntax.Perl)
			if err != nil {
				panic(err)
			}
			b.WriteString(rule.Keywords[0] + " ")
			writeMatch(&b, r, re)
			b.WriteByte('\n')
		case 1:
			b.WriteString(rule.Keywords[r.IntN(len(rule.Keywords))])
		case 2:
			for range r.IntN(100) {
				b.WriteByte("0123456789abcdefABCDEFxyz-_="[r.IntN(28)])
			}
		case 3:
			b.WriteString("\u212a\u017f\u00e9\xff"[r.IntN(4):])
		default:
			for range r.IntN(8) {
				b.WriteByte("etaoinshrdlu.:= \n'\""[r.IntN(19)])
			}
			b.WriteByte(' ')
		}
	}
	text := []byte(b.String())
	for range r.IntN(4) {
		if len(text) > 0 {
			text[r.IntN(len(text))] = byte(r.IntN(256))
		}
	}
	return text
}

// plain returns what contents.in does, by looking for each keyword by itself and trying the expression on each window.
func plain(c *contents, name string, text []byte) []match {
	var found []match
	lower := slices.Clone(text)
	for i, b := range lower {
		if 'A' <= b && b <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	for i := range c.rules {
		rule := &c.rules[i]
		if rule.Path != nil && !rule.Path.MatchString(name) {
			continue
		}
		for _, w := range windowsOf(rule.RuleID, rule.Keywords, lower) {
			if at := c.rule(rule, text[w.from:w.to]); at >= 0 {
				found = append(found, match{rule.RuleID, w.from + at})
				break
			}
		}
	}
	slices.SortFunc(found, func(a, b match) int { return cmp.Or(a.at-b.at, strings.Compare(a.rule, b.rule)) })
	return found
}

func windowsOf(id string, words []string, lower []byte) []window {
	var places, windows []window
	for _, word := range words {
		for from := range lower {
			if bytes.HasPrefix(lower[from:], []byte(word)) {
				places = append(places, window{from, from + len(word)})
			}
		}
	}
	slices.SortFunc(places, func(a, b window) int { return cmp.Or(a.to-b.to, a.from-b.from) })
	for _, p := range places {
		w := window{max(0, p.from-before), min(len(lower), p.to-1+after)}
		if id == privateKey {
			w = window{p.from, len(lower)}
		}
		windows = joined(windows, w)
	}
	return windows
}
