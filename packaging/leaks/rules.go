package leaks

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
)

// privateKey is the rule about private keys between their marks.
const privateKey = "private-key"

// noisy returns the rules of the set that would refuse ordinary trees: those that match anything beside a word such
// as "key", and tokens that documents use as examples.
func noisy() []string {
	return []string{"generic-api-key", "curl-auth-header", "curl-auth-user", "jwt", "jwt-base64"}
}

// contents has the rules about the content of files.
type contents struct {
	rules  []config.Rule
	global []*config.Allowlist
	needs  []demands // what the matches of each rule have
	words  *keywords // of all rules
}

// rulesOnce compiles about a hundred expressions, once per process.
var rulesOnce = sync.OnceValues(readRules)

func readRules() (*contents, error) {
	v := viper.New()
	v.SetConfigType("toml")
	if err := v.ReadConfig(strings.NewReader(config.DefaultConfig)); err != nil {
		return nil, fmt.Errorf("reading the rules for secrets: %w", err)
	}
	var raw config.ViperConfig
	if err := v.Unmarshal(&raw); err != nil {
		return nil, fmt.Errorf("reading the rules for secrets: %w", err)
	}
	set, err := raw.Translate()
	if err != nil {
		return nil, fmt.Errorf("reading the rules for secrets: %w", err)
	}
	return index(set), nil
}

// index sorts the rules of a set by their keywords. Rules without a keyword are about file names, for which this
// package has separate rules.
func index(set config.Config) *contents {
	c := &contents{}
	words := map[string][]int{}
	for _, list := range set.Allowlists {
		// Its paths are left out: they name directories of dependencies, which a release holds like any other.
		c.global = append(c.global, &config.Allowlist{Regexes: list.Regexes, StopWords: list.StopWords,
			RegexTarget: list.RegexTarget})
	}
	for _, id := range set.OrderedRules {
		rule := set.Rules[id]
		if rule.Regex == nil || slices.Contains(noisy(), id) {
			continue
		}
		for _, word := range rule.Keywords {
			words[word] = append(words[word], len(c.rules))
		}
		c.rules = append(c.rules, rule)
		c.needs = append(c.needs, demandsOf(rule.Regex.String()))
	}
	c.words = newKeywords(words)
	return c
}

// match is a place in a text where a rule found a secret.
type match struct {
	rule string
	at   int
}

// in returns the first match of each rule in a text, in the order of their positions.
func (c *contents) in(name string, text []byte) []match {
	var found []match
	for i, windows := range c.candidates(text) {
		rule := &c.rules[i]
		if rule.Path != nil && !rule.Path.MatchString(name) {
			continue
		}
		for _, w := range windows {
			if !c.needs[i].in(text[w.from:w.to]) {
				continue
			}
			if at := c.rule(rule, text[w.from:w.to]); at >= 0 {
				found = append(found, match{rule: rule.RuleID, at: w.from + at})
				break
			}
		}
	}
	slices.SortFunc(found, func(a, b match) int { return cmp.Or(a.at-b.at, strings.Compare(a.rule, b.rule)) })
	return found
}

// window is a part of a text.
type window struct{ from, to int }

// The distance from a keyword, in bytes, within which a secret is searched. It keeps the time for a large file
// proportional to its size.
const (
	before = 512
	after  = 2048
)

// candidates returns, by rule index, the parts of a text in which rules have a keyword. A private key has no fixed
// length, so its part extends to the end of the text.
func (c *contents) candidates(text []byte) map[int][]window {
	parts := map[int][]window{}
	c.words.walk(text, func(from, to int, rules []int) {
		for _, i := range rules {
			w := window{max(0, from-before), min(len(text), to-1+after)}
			if c.rules[i].RuleID == privateKey {
				w = window{from, len(text)}
			}
			parts[i] = joined(parts[i], w)
		}
	})
	return parts
}

// joined adds a window that begins after all others, or extends the last one if they overlap.
func joined(windows []window, w window) []window {
	if last := len(windows) - 1; last >= 0 && w.from <= windows[last].to {
		windows[last].to = max(windows[last].to, w.to)
		return windows
	}
	return append(windows, w)
}

// rule returns the position of the first secret that a rule finds in a text, or -1.
func (c *contents) rule(rule *config.Rule, text []byte) int {
	for _, place := range rule.Regex.FindAllSubmatchIndex(text, -1) {
		whole, secret := string(text[place[0]:place[1]]), captured(rule, text, place)
		if rule.Entropy > 0 && entropy(secret) <= rule.Entropy {
			continue
		}
		if rule.RuleID == privateKey && !keyMaterial().MatchString(whole) {
			continue
		}
		line := lineAround(text, place[0], place[1])
		if !allowed(c.global, secret, whole, line) && !allowed(rule.Allowlists, secret, whole, line) {
			return place[0]
		}
	}
	return -1
}

// keyMaterial matches a line of a key in base64. Code and documents that mention the markers of keys have no such
// line.
var keyMaterial = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z0-9+/]{40,}`) })

// captured returns the secret in a match: the group that the rule names, or else the first group that matched.
func captured(rule *config.Rule, text []byte, place []int) string {
	if g := rule.SecretGroup; g > 0 && place[2*g] >= 0 {
		return string(text[place[2*g]:place[2*g+1]])
	}
	for g := 2; g < len(place); g += 2 {
		if place[g] >= 0 && place[g+1] > place[g] {
			return string(text[place[g]:place[g+1]])
		}
	}
	return strings.Trim(string(text[place[0]:place[1]]), "\n")
}

// allowed reports whether an allowlist of the set matches. For a list with the condition AND all parts must match;
// parts about commits and paths never do.
func allowed(lists []*config.Allowlist, secret, whole, line string) bool {
	for _, list := range lists {
		target := secret
		switch list.RegexTarget {
		case "match":
			target = whole
		case "line":
			target = line
		}
		expression := list.RegexAllowed(target)
		word, _ := list.ContainsStopWord(secret)
		if list.MatchCondition == config.AllowlistMatchAnd {
			if len(list.Paths)+len(list.Commits) == 0 && (expression || len(list.Regexes) == 0) &&
				(word || len(list.StopWords) == 0) {
				return true
			}
			continue
		}
		if expression || word {
			return true
		}
	}
	return false
}

func lineAround(text []byte, from, to int) string {
	start := bytes.LastIndexByte(text[:from], '\n') + 1
	if end := bytes.IndexByte(text[to:], '\n'); end >= 0 {
		return string(text[start : to+end])
	}
	return string(text[start:])
}

// entropy returns the Shannon entropy of a text, in bits per byte.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			share := float64(n) / float64(len(text))
			sum -= share * math.Log2(share)
		}
	}
	return sum
}
