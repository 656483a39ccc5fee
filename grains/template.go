package grains

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// A piece of a template is a part, or the text between two parts.
type piece struct {
	text string
	part bool
}

func fromTemplate(form string) (Convention, error) {
	pieces, err := splitTemplate(form)
	if err != nil {
		return Convention{}, err
	}
	if err := checkPieces(pieces); err != nil {
		return Convention{}, err
	}
	whole, group := named{pieces}, named{withoutNode(pieces)}
	return Convention{
		form: form, example: whole.example(),
		groupForm: group.form(), groupExample: group.example(),
		host: whole.compile(), group: group.compile(), loose: whole.compileLoosely(),
	}, nil
}

// checkPieces returns an error for a template with unknown parts, or with two parts without text between them.
func checkPieces(pieces []piece) error {
	var names []string
	for i, p := range pieces {
		if !p.part {
			continue
		}
		names = append(names, p.text)
		if i > 0 && pieces[i-1].part {
			return fmt.Errorf("nothing stands between {%s} and {%s}, so the end of the first is not known",
				pieces[i-1].text, p.text)
		}
	}
	return checkParts(names)
}

func splitTemplate(form string) ([]piece, error) {
	var pieces []piece
	for rest := form; rest != ""; {
		text, after, open := strings.Cut(rest, "{")
		if err := checkBetween(text); err != nil {
			return nil, err
		}
		if text != "" {
			pieces = append(pieces, piece{text: text})
		}
		if !open {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("{%s is never closed", name)
		}
		pieces, rest = append(pieces, piece{text: name, part: true}), tail
	}
	return pieces, nil
}

var betweenParts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]*$`) })

func checkBetween(text string) error {
	switch {
	case strings.Contains(text, "."):
		return diag.Identity.Hint(errors.New("it holds a dot"),
			"what follows the first dot of a hostname is its domain, which a convention leaves out")
	case !betweenParts().MatchString(text):
		return diag.Identity.Hint(fmt.Errorf("%q cannot be in a hostname", text),
			"put letters, digits and dashes between the parts, or write a regular expression with groups such as "+
				"(?P<service>[a-z]+)")
	}
	return nil
}

// named is a template that was checked.
type named struct{ pieces []piece }

// fill returns the template with every part replaced. The text between parts needs no quoting in a regular expression,
// which checkBetween has ensured.
func (n named) fill(with func(part) string) string {
	var b strings.Builder
	for _, p := range n.pieces {
		if !p.part {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(with(parts[slices.Index(partNames(), p.text)]))
	}
	return b.String()
}

func (n named) form() string    { return n.fill(func(p part) string { return "{" + p.name + "}" }) }
func (n named) example() string { return n.fill(func(p part) string { return p.example }) }

func (n named) compile() *regexp.Regexp {
	return regexp.MustCompile(`^` + n.fill(func(p part) string { return group(p.name, p.pattern) }) + `$`)
}

// compileLoosely returns a pattern for the right number of parts with any content.
func (n named) compileLoosely() *regexp.Regexp {
	return regexp.MustCompile(`^` + n.fill(func(p part) string {
		if p.name == "service" {
			return group(p.name, `.*`)
		}
		return group(p.name, `[^-]*`)
	}) + `$`)
}

func group(name, pattern string) string { return `(?P<` + name + `>` + pattern + `)` }

// withoutNode removes the node and the text that separates it: the text before it, or the text after it if it is the
// first part.
func withoutNode(pieces []piece) []piece {
	at := slices.Index(pieces, piece{text: "node", part: true})
	switch {
	case at < 0:
		return pieces
	case at < 2:
		return slices.Concat(pieces[:at], pieces[at+2:])
	}
	return slices.Concat(pieces[:at-1], pieces[at+1:])
}
