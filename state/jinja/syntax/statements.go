package syntax

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// tags lists the names of all statements.
var tags = []string{
	"autoescape", "block", "break", "call", "continue", "do", "extends", "filter", "for", "from", "if",
	"import", "import_json", "import_text", "import_yaml", "include", "load_json", "load_text",
	"load_yaml", "macro", "print", "profile", "raw", "set", "with",
}

func suggestTag(name string) string { return diag.DidYouMean(name, tags) }

// tag reads the statement with the given name, which is the current token, or returns nothing if
// there is no such statement.
func (p *parser) tag(name string) ([]Stmt, error) {
	switch name {
	case "load_yaml", "load_json", "load_text":
		return p.load()
	case "import_yaml", "import_json", "import_text":
		return p.importData()
	case "profile":
		return p.profile()
	}
	read := p.simpleTag(name)
	if read == nil {
		return nil, nil
	}
	s, err := read()
	if err != nil {
		return nil, err
	}
	return []Stmt{s}, nil
}

func (p *parser) simpleTag(name string) func() (Stmt, error) {
	switch name {
	case "for":
		return p.forLoop
	case "if":
		return p.ifElse
	case "block":
		return p.templateBlock
	case "extends":
		return p.extends
	case "print":
		return p.print
	case "macro":
		return p.macro
	case "include":
		return p.include
	case "from":
		return p.fromImport
	case "import":
		return p.importAs
	case "set":
		return p.set
	case "with":
		return p.with
	case "autoescape":
		return p.autoescape
	case "call":
		return p.callBlock
	case "filter":
		return p.filterBlock
	case "do":
		return p.do
	case "break", "continue":
		return p.loopControl
	}
	return nil
}

// start reads the name of a tag and returns its position.
func (p *parser) start() position {
	t := p.next()
	return position{t.line, t.at}
}

func (p *parser) set() (Stmt, error) {
	at := p.start()
	target, err := p.target(targetOptions{tuple: true, namespace: true})
	if err != nil {
		return nil, err
	}
	if p.skipIf(tokAssign) {
		node, err := p.tuple(tupleOptions{conditional: true})
		return &Assign{at, target, node}, err
	}
	filter, err := p.filters(nil, false)
	if err != nil {
		return nil, err
	}
	body, err := p.body("endset")
	f, _ := filter.(*Filter)
	return &AssignBlock{at, target, f, body}, err
}

func (p *parser) forLoop() (Stmt, error) {
	s := &For{position: p.start()}
	var err error
	if s.Target, err = p.target(targetOptions{tuple: true}); err != nil {
		return nil, err
	}
	if err = p.expectName("in"); err != nil {
		return nil, err
	}
	if s.Iter, err = p.tuple(tupleOptions{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		if s.Test, err = p.expression(); err != nil {
			return nil, err
		}
	}
	s.Recursive = p.skipName("recursive")
	if s.Body, err = p.block("endfor", "else"); err != nil {
		return nil, err
	}
	if p.next().text == "else" {
		s.Else, err = p.body("endfor")
	}
	return s, err
}

func (p *parser) ifElse() (Stmt, error) {
	first := &If{position: p.start()}
	for s := first; ; {
		var err error
		if s.Test, err = p.tuple(tupleOptions{}); err != nil {
			return nil, err
		}
		if s.Body, err = p.block("elif", "else", "endif"); err != nil {
			return nil, err
		}
		switch p.next().text {
		case "elif":
			t := p.current()
			s = &If{position: position{t.line, t.at}}
			first.Elif = append(first.Elif, s)
			continue
		case "else":
			first.Else, err = p.body("endif")
		}
		return first, err
	}
}

func (p *parser) with() (Stmt, error) {
	s := &With{position: p.start()}
	for p.current().kind != tokBlockEnd {
		if len(s.Targets) > 0 {
			if _, err := p.expect(tokComma); err != nil {
				return nil, err
			}
		}
		if err := p.withTarget(s); err != nil {
			return nil, err
		}
	}
	var err error
	s.Body, err = p.body("endwith")
	return s, err
}

// withTarget adds a variable and its value to a with statement.
func (p *parser) withTarget(s *With) error {
	target, err := p.target(targetOptions{tuple: true})
	if err != nil {
		return err
	}
	setAccess(target, Param)
	if _, err := p.expect(tokAssign); err != nil {
		return err
	}
	v, err := p.expression()
	if err != nil {
		return err
	}
	s.Targets, s.Values = append(s.Targets, target), append(s.Values, v)
	return nil
}

func (p *parser) autoescape() (Stmt, error) {
	s := &Scope{position: p.start()}
	var err error
	if s.Options, err = p.expression(); err != nil {
		return nil, err
	}
	s.Body, err = p.body("endautoescape")
	return s, err
}

func (p *parser) templateBlock() (Stmt, error) {
	s := &Block{position: p.start()}
	name, err := p.expect(tokName)
	if err != nil {
		return nil, err
	}
	s.Name = name.text
	s.Scoped = p.skipName("scoped")
	s.Required = p.skipName("required")
	if p.current().kind == tokSub {
		return nil, p.fail(
			"Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an underscore instead.")
	}
	if s.Body, err = p.body("endblock"); err != nil {
		return nil, err
	}
	if s.Required && !onlySpace(s.Body) {
		return nil, p.fail("Required blocks can only contain comments or whitespace")
	}
	p.skipName(s.Name)
	return s, nil
}

func onlySpace(body []Stmt) bool {
	for _, s := range body {
		output, ok := s.(*Output)
		if !ok {
			return false
		}
		for _, n := range output.Nodes {
			if data, ok := n.(*TemplateData); !ok || strings.TrimSpace(data.Data) != "" {
				return false
			}
		}
	}
	return true
}

// signature reads the parameters of a macro or a call block.
func (p *parser) signature() (Signature, error) {
	var s Signature
	if _, err := p.expect(tokLparen); err != nil {
		return s, err
	}
	for p.current().kind != tokRparen {
		if len(s.Args) > 0 {
			if _, err := p.expect(tokComma); err != nil {
				return s, err
			}
		}
		arg, err := p.targetName()
		if err != nil {
			return s, err
		}
		arg.Access = Param
		if p.skipIf(tokAssign) {
			e, err := p.expression()
			if err != nil {
				return s, err
			}
			s.Defaults = append(s.Defaults, e)
		} else if len(s.Defaults) > 0 {
			return s, p.fail("non-default argument follows default argument")
		}
		s.Args = append(s.Args, arg)
	}
	p.next()
	return s, nil
}

func (p *parser) macro() (Stmt, error) {
	s := &Macro{position: p.start()}
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	s.Name = name.Name
	if s.Signature, err = p.signature(); err != nil {
		return nil, err
	}
	s.Body, err = p.body("endmacro")
	return s, err
}

func (p *parser) callBlock() (Stmt, error) {
	s := &CallBlock{position: p.start()}
	var err error
	if p.current().kind == tokLparen {
		if s.Signature, err = p.signature(); err != nil {
			return nil, err
		}
	}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	call, ok := e.(*Call)
	if !ok {
		return nil, fail(s.line, s.at, "expected call")
	}
	s.Call = call
	s.Body, err = p.body("endcall")
	return s, err
}

func (p *parser) filterBlock() (Stmt, error) {
	s := &FilterBlock{position: p.start()}
	f, err := p.filters(nil, true)
	if err != nil {
		return nil, err
	}
	s.Filter = f.(*Filter)
	s.Body, err = p.body("endfilter")
	return s, err
}

func (p *parser) print() (Stmt, error) {
	s := &Output{position: p.start()}
	for p.current().kind != tokBlockEnd {
		if len(s.Nodes) > 0 {
			if _, err := p.expect(tokComma); err != nil {
				return nil, err
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.Nodes = append(s.Nodes, e)
	}
	return s, nil
}

func (p *parser) do() (Stmt, error) {
	at := p.start()
	e, err := p.tuple(tupleOptions{conditional: true})
	return &ExprStmt{at, e}, err
}

func (p *parser) loopControl() (Stmt, error) {
	t := p.next()
	at := position{t.line, t.at}
	if t.text == "break" {
		return &Break{at}, nil
	}
	return &Continue{at}, nil
}
