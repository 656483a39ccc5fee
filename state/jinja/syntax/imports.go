package syntax

import (
	"strings"
)

func (p *parser) extends() (Stmt, error) {
	at := p.start()
	e, err := p.expression()
	return &Extends{at, e}, err
}

// importContext reads with context or without context.
func (p *parser) importContext(otherwise bool) (with, found bool) {
	t := p.current()
	if (t.isName("with") || t.isName("without")) && p.look().isName("context") {
		p.next()
		p.next()
		return t.text == "with", true
	}
	return otherwise, false
}

func (p *parser) include() (Stmt, error) {
	s := &Include{position: p.start()}
	var err error
	if s.Template, err = p.expression(); err != nil {
		return nil, err
	}
	if p.current().isName("ignore") && p.look().isName("missing") {
		p.next()
		p.next()
		s.IgnoreMissing = true
	}
	s.WithContext, _ = p.importContext(true)
	return s, nil
}

func (p *parser) importAs() (Stmt, error) {
	s := &Import{position: p.start()}
	var err error
	if s.Template, err = p.expression(); err != nil {
		return nil, err
	}
	if err = p.expectName("as"); err != nil {
		return nil, err
	}
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	s.Target = name.Name
	s.WithContext, _ = p.importContext(false)
	return s, nil
}

func (p *parser) fromImport() (Stmt, error) {
	s := &FromImport{position: p.start()}
	var err error
	if s.Template, err = p.expression(); err != nil {
		return nil, err
	}
	if err = p.expectName("import"); err != nil {
		return nil, err
	}
	for {
		if len(s.Names) > 0 {
			if _, err := p.expect(tokComma); err != nil {
				return nil, err
			}
		}
		var found bool
		if s.WithContext, found = p.importContext(false); found {
			return s, nil
		}
		n, err := p.importName()
		if err != nil {
			return nil, err
		}
		s.Names = append(s.Names, n)
		if s.WithContext, found = p.importContext(false); found || p.current().kind != tokComma {
			return s, nil
		}
	}
}

func (p *parser) importName() (ImportName, error) {
	name, err := p.targetName()
	if err != nil {
		return ImportName{}, err
	}
	if strings.HasPrefix(name.Name, "_") {
		e := fail(name.line, name.at, "names starting with an underline can not be imported")
		e.Kind = "TemplateAssertionError"
		return ImportName{}, e
	}
	n := ImportName{Name: name.Name, Alias: name.Name}
	if p.skipName("as") {
		alias, err := p.targetName()
		if err != nil {
			return ImportName{}, err
		}
		n.Alias = alias.Name
	}
	return n, nil
}
