package syntax

import (
	"strconv"
	"strings"
)

// load reads {% load_yaml as x %}...{% endload %}, which becomes a macro without arguments whose output is passed to
// the filter of the same name.
func (p *parser) load() ([]Stmt, error) {
	t := p.next()
	at := position{t.line, t.at}
	if err := p.expectName("as"); err != nil {
		return nil, err
	}
	target, err := p.target(targetOptions{tuple: true})
	if err != nil {
		return nil, err
	}
	p.hidden++
	name := "_fi" + strconv.Itoa(p.hidden)
	body, err := p.body("endload")
	if err != nil {
		return nil, err
	}
	call := &Call{position: at, Node: &Name{position: at, Name: name}}
	return []Stmt{
		&Macro{position: at, Name: name, Body: body},
		&Assign{at, target, &Filter{position: at, Node: call, Name: t.text}},
	}, nil
}

// importData reads {% import_yaml "file" as x %}, which becomes an import whose text is passed to the filter load_yaml.
func (p *parser) importData() ([]Stmt, error) {
	format := strings.TrimPrefix(p.current().text, "import_")
	s, err := p.importAs()
	if err != nil {
		return nil, err
	}
	i := s.(*Import)
	module := &Name{position: i.position, Name: i.Target}
	return []Stmt{i, &Assign{
		i.position, &Name{position: i.position, Name: i.Target, Access: Store},
		&Filter{position: i.position, Node: module, Name: "load_" + format},
	}}, nil
}

// profile reads {% profile as x %}...{% endprofile %}. Salt logs the time of the body; here only the body remains.
func (p *parser) profile() ([]Stmt, error) {
	p.next()
	if err := p.expectName("as"); err != nil {
		return nil, err
	}
	if _, err := p.expression(); err != nil {
		return nil, err
	}
	body, err := p.body("endprofile")
	if body == nil {
		body = []Stmt{}
	}
	return body, err
}
