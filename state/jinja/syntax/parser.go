package syntax

import (
	"fmt"
	"slices"
	"strings"
)

// Parse reads a template. The text is normalized first.
func Parse(text string, o Options) (*Template, error) {
	text = Normalize(text)
	tokens, unreadable := tokenize(text, o)
	p := &parser{tokens: tokens}
	body, err := p.statements(nil)
	// Jinja2 reads tokens only when it needs them, so mistakes before the unreadable position are reported first.
	if unreadable != nil && p.seen == len(tokens)-1 {
		return nil, unreadable
	}
	if err != nil {
		return nil, err
	}
	return &Template{Text: text, Body: body}, nil
}

// parser parses tokens. Its methods have the names of the constructs that they parse.
type parser struct {
	tokens []token
	pos    int
	seen   int        // index of the last token that was read
	tags   []openTag  // the statements that are being read
	ends   [][]string // the tags that would end them
	hidden int        // number of generated names so far
	depth  int
}

type openTag struct {
	name string
	line int
}

// maxDepth limits the nesting of statements and expressions, and maxChain the number of successive operators,
// attributes or filters.
const (
	maxDepth = 400
	maxChain = 500
)

func (p *parser) chain(n int) error {
	if n > maxChain {
		return p.fail("the expression has more than %d parts", maxChain)
	}
	return nil
}

func (p *parser) current() token { return p.tokens[p.pos] }

func (p *parser) look() token {
	p.seen = min(p.pos+1, len(p.tokens)-1)
	return p.tokens[p.seen]
}

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if p.pos < len(p.tokens)-1 {
		p.pos++
		p.seen = max(p.seen, p.pos)
	}
	return t
}

func (p *parser) skipIf(k kind) bool {
	if p.current().kind == k {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.current().isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(k kind) (token, error) {
	if p.current().kind != k {
		return token{}, p.expected(k.String())
	}
	return p.next(), nil
}

func (p *parser) expectName(name string) error {
	if !p.current().isName(name) {
		return p.expected(name)
	}
	p.next()
	return nil
}

func (p *parser) expected(what string) error {
	t := p.current()
	if t.kind == tokEOF {
		return fail(t.line, t.at, "unexpected end of template, expected '%s'.", what)
	}
	return fail(t.line, t.at, "expected token '%s', got '%s'", what, t.describe())
}

func (p *parser) fail(format string, args ...any) error {
	t := p.current()
	return fail(t.line, t.at, format, args...)
}

// deeper increases the depth of the parser, and must be paired with p.depth--.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxDepth {
		return p.fail("the template is nested more than %d levels deep", maxDepth)
	}
	return nil
}

// statements reads text and statements up to one of the tags that end the enclosing statement, whose name is then the
// current token, or up to the end of the template.
func (p *parser) statements(ends []string) ([]Stmt, error) {
	var body []Stmt
	var output []Expr
	flush := func() {
		if len(output) > 0 {
			body = append(body, &Output{position{output[0].Line(), output[0].Offset()}, output})
			output = nil
		}
	}
	p.ends = append(p.ends, ends)
	defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	for {
		t := p.current()
		switch t.kind {
		case tokEOF:
			flush()
			return body, nil
		case tokData:
			p.next()
			output = append(output, &TemplateData{position{t.line, t.at}, t.text})
		case tokVariableBegin:
			p.next()
			e, err := p.tuple(tupleOptions{conditional: true})
			if err == nil {
				_, err = p.expect(tokVariableEnd)
			}
			if err != nil {
				return nil, err
			}
			output = append(output, e)
		default: // a statement
			flush()
			p.next()
			if p.atName(ends) {
				return body, nil
			}
			read, err := p.statement()
			if err == nil {
				_, err = p.expect(tokBlockEnd)
			}
			if err != nil {
				return nil, err
			}
			body = append(body, read...)
		}
	}
}

func (p *parser) atName(names []string) bool {
	for _, n := range names {
		if p.current().isName(n) {
			return true
		}
	}
	return false
}

// block reads the body of a statement up to one of its end tags, whose name is then the current token.
func (p *parser) block(ends ...string) ([]Stmt, error) {
	p.skipIf(tokColon)
	if _, err := p.expect(tokBlockEnd); err != nil {
		return nil, err
	}
	if err := p.deeper(); err != nil {
		return nil, err
	}
	body, err := p.statements(ends)
	p.depth--
	if err != nil {
		return nil, err
	}
	if p.current().kind == tokEOF {
		return nil, p.unfinished(ends)
	}
	return body, nil
}

// body does the same as block, and reads the name of the end tag too.
func (p *parser) body(end string) ([]Stmt, error) {
	body, err := p.block(end)
	if err == nil {
		p.next()
	}
	return body, err
}

// unfinished returns the error for tags that are missing at the end of the template.
func (p *parser) unfinished(ends []string) error {
	t := p.current()
	open := p.tags[len(p.tags)-1]
	e := fail(t.line, t.at, "Unexpected end of template. Jinja was looking for the following tags: %s. "+
		"The innermost block that needs to be closed is '%s'.", quotedList(ends), open.name)
	end := slices.IndexFunc(ends, func(name string) bool { return strings.HasPrefix(name, "end") })
	return e.withHint("the %s of line %d is not closed: add {%% %s %%}", open.name, open.line, ends[end])
}

func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "'" + n + "'"
	}
	return strings.Join(quoted, " or ")
}

// unknownTag returns the error for a tag that is not allowed here.
func (p *parser) unknownTag(t token) error {
	message := fmt.Sprintf("Encountered unknown tag '%s'.", t.text)
	looking := p.ends[len(p.ends)-1]
	if len(looking) > 0 {
		if p.endsSomething(t.text) {
			message += " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " +
				quotedList(looking) + "."
		} else {
			message += " Jinja was looking for the following tags: " + quotedList(looking) + "."
		}
	}
	e := fail(t.line, t.at, "%s", message)
	if len(p.tags) > 0 {
		open := p.tags[len(p.tags)-1]
		e.Message += fmt.Sprintf(" The innermost block that needs to be closed is '%s'.", open.name)
		return e.withHint("the innermost open tag is the %s of line %d", open.name, open.line)
	}
	return e.withHint("%s", suggestTag(t.text))
}

func (p *parser) endsSomething(name string) bool {
	for _, ends := range p.ends {
		for _, end := range ends {
			if end == name {
				return true
			}
		}
	}
	return false
}

// statement reads one statement, without the end of its tag. Some statements of Salt become several.
func (p *parser) statement() ([]Stmt, error) {
	t := p.current()
	if t.kind != tokName {
		return nil, fail(t.line, t.at, "tag name expected")
	}
	p.tags = append(p.tags, openTag{t.text, t.line})
	read, err := p.tag(t.text)
	p.tags = p.tags[:len(p.tags)-1]
	if err == nil && read == nil {
		err = p.unknownTag(t)
	}
	return read, err
}
