package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// compound evaluates expressions such as `G@os:Debian and not ( web* or N@db )`. Words without an
// engine are globs of the host's ID; two words without an operator between them are a mistake.
func (t *Target) compound(expression string) (bool, error) {
	p := &parser{target: t, words: strings.Fields(expression), text: expression}
	return p.all()
}

// unknownGroup is the name of a nodegroup that does not exist.
type unknownGroup string

func (u unknownGroup) Error() string { return "there is no nodegroup " + string(u) }

// nodegroup reports whether the host is in a nodegroup. inside lists the nodegroups that are being expanded.
func (t *Target) nodegroup(name string, inside []string) (bool, error) {
	if slices.Contains(inside, name) {
		return false, fmt.Errorf("nodegroup %s contains itself", name)
	}
	group, ok := t.Nodegroups.Get(name)
	if !ok {
		return false, unknownGroup(name)
	}
	p := &parser{target: t, inside: append(slices.Clone(inside), name), text: "nodegroup " + name}
	switch group := group.(type) {
	case string:
		p.words = strings.Fields(group)
	case *value.List:
		for _, item := range group.Items {
			p.words = append(p.words, value.Str(item))
		}
		// A list of plain IDs means any of them.
		if !slices.ContainsFunc(p.words, operator) {
			return p.any()
		}
	}
	return p.all()
}

type parser struct {
	target *Target
	words  []string
	inside []string // nodegroups being expanded
	text   string
}

func operator(word string) bool {
	return slices.Contains([]string{"and", "or", "not", "(", ")"}, word)
}

func (p *parser) all() (bool, error) {
	result, err := p.or()
	if err == nil && len(p.words) > 0 {
		err = p.unexpected()
	}
	return result, err
}

func (p *parser) any() (bool, error) {
	for _, w := range p.words {
		if ok, err := p.target.word(w, p.inside); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (p *parser) unexpected() error {
	word := "the end"
	if len(p.words) > 0 {
		word = fmt.Sprintf("%q", p.words[0])
	}
	return diag.Top.Hint(fmt.Errorf("%s is not expected in %q", word, p.text),
		"join matches with and, or, not and parentheses, each a word of its own")
}

func (p *parser) take(word string) bool {
	if len(p.words) > 0 && p.words[0] == word {
		p.words = p.words[1:]
		return true
	}
	return false
}

func (p *parser) or() (bool, error) {
	result, err := p.and()
	for err == nil && p.take("or") {
		var next bool
		next, err = p.and()
		result = result || next
	}
	return result, err
}

// and parses conjunctions. The operator may be missing before a `not` that follows a match.
func (p *parser) and() (bool, error) {
	result, err := p.not()
	for err == nil && (p.take("and") || len(p.words) > 0 && p.words[0] == "not") {
		var next bool
		next, err = p.not()
		result = result && next
	}
	return result, err
}

func (p *parser) not() (bool, error) {
	if p.take("not") {
		result, err := p.not()
		return !result, err
	}
	if p.take("(") {
		result, err := p.or()
		if err == nil && !p.take(")") {
			err = p.unexpected()
		}
		return result, err
	}
	if len(p.words) == 0 || operator(p.words[0]) {
		return false, p.unexpected()
	}
	word := p.words[0]
	p.words = p.words[1:]
	return p.target.word(word, p.inside)
}

// word matches one word: ENGINE@pattern, or a glob. G, P, I and J may name their delimiter, as in
// G|@os|Debian.
func (t *Target) word(word string, inside []string) (bool, error) {
	engine, pattern, ok := strings.Cut(word, "@")
	if !ok || engine == "" || len([]rune(engine)) > 2 {
		return compile.Match(word, t.ID), nil
	}
	delimiter := ":"
	if len(engine) > 1 && strings.ContainsRune("GPIJ", rune(engine[0])) {
		engine, delimiter = engine[:1], engine[1:]
	}
	switch engine {
	case "G":
		return inData(t.Grains, pattern, delimiter, globMatch)
	case "P":
		return inData(t.Grains, pattern, delimiter, regexpMatch)
	case "I":
		return inData(t.Pillar, pattern, delimiter, globMatch)
	case "J":
		return inData(t.Pillar, pattern, delimiter, regexpMatch)
	case "L":
		return t.Match("list", pattern)
	case "N":
		return t.nodegroup(pattern, inside)
	case "S":
		return t.ipcidr(pattern)
	case "E":
		return t.Match("pcre", pattern)
	}
	return false, diag.Top.Hint(fmt.Errorf("%q has no known way to match before its @", word),
		"use G, P, I, J, L, N, S or E")
}
