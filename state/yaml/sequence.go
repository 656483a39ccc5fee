package yaml

import (
	"slices"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// empty returns the node for an empty value.
func empty(at int) node { return node{at: int32(at)} }

// sequence reads the items with the given reader, which appends them to p.items, and constructs the value for the tag.
func (p *parser) sequence(props properties, keep keeping, read func(keep keeping) error) (node, error) {
	n := node{at: int32(props.at), kind: sequenceNode}
	if props.tag != "" {
		keep = max(keep, keepParts)
	}
	base := len(p.items)
	if err := read(keep); err != nil {
		return n, err
	}
	own := p.items[base:]
	list := &value.List{Items: make([]any, len(own))}
	marks := p.doc.marksFor(list, n.at, len(own))
	for i := range own {
		p.finish(&own[i])
		list.Items[i] = own[i].value
		marks[i] = mark{keyAt: own[i].at, valueAt: own[i].at}
	}
	n.value = list
	if keep != drop {
		n.kept = &kept{items: slices.Clone(own)}
	}
	p.items = p.items[:base]
	if props.tag != "" && props.tag != "!" {
		n.value = p.taggedSequence(props, &n, list)
	}
	return n, nil
}

func (p *parser) blockSequence(keep keeping) error {
	return p.block(blockEntry, "sequence", "'-'", func(*token) error { return p.entry(false, keep) })
}

// block reads all items of a block collection, each of which begins with the same kind of token.
func (p *parser) block(begins kind, what, expected string, item func(*token) error) error {
	start, err := p.peek()
	if err != nil {
		return err
	}
	startAt := start.at
	p.skip()
	for {
		t, err := p.peek()
		switch {
		case err != nil:
			return err
		case t.kind == blockEnd:
			p.skip()
			return nil
		case t.kind != begins:
			return p.badBlock(t, startAt, what, expected)
		}
		if err := item(t); err != nil {
			return err
		}
	}
}

// badBlock returns the error for a line of a block collection that does not start with the expected token.
func (p *parser) badBlock(t *token, startAt int, what, expected string) error {
	line, _ := p.doc.lineCol(startAt)
	hint := "check the indentation of this line and the ones before it"
	if t.isKey() {
		hint += ", and that a key in the lines before ends with a colon"
	}
	return &problem{
		at: t.at, resume: t.at,
		message: "expected " + expected + " of the " + what + " that starts on line " + strconv.Itoa(line) + ", but found " +
			t.kind.String(),
		hint: hint,
	}
}

// entry parses the item after a dash.
func (p *parser) entry(indentless bool, keep keeping) error {
	t, err := p.peek()
	if err != nil {
		return err
	}
	item := empty(t.at)
	p.skip()
	if t, err = p.peek(); err != nil {
		return err
	}
	if t.kind != blockEntry && t.kind != blockEnd && (!indentless || t.kind != keyMark && t.kind != valueMark) {
		if item, err = p.node(true, false, keep); err != nil {
			return err
		}
	}
	p.items = append(p.items, item)
	return nil
}

func (p *parser) indentlessSequence(keep keeping) error {
	for {
		t, err := p.peek()
		if err != nil {
			return err
		}
		if t.kind != blockEntry {
			return nil
		}
		if err := p.entry(true, keep); err != nil {
			return err
		}
	}
}

func (p *parser) flowSequence(keep keeping) error {
	return p.flow(flowSequenceEnd, func(t *token) (err error) {
		var item node
		if t.kind == keyMark {
			item, err = p.mapping(properties{at: t.at}, keep, p.singlePair)
		} else {
			item, err = p.node(false, false, keep)
		}
		if err == nil {
			p.items = append(p.items, item)
		}
		return err
	})
}

// flow reads the items between brackets.
func (p *parser) flow(end kind, item func(*token) error) error {
	opening, err := p.peek()
	if err != nil {
		return err
	}
	openAt := opening.at
	p.skip()
	for first := true; ; first = false {
		t, err := p.separator(first, openAt, end)
		if err != nil || t == nil {
			return err
		}
		if err := item(t); err != nil {
			return err
		}
	}
}

// separator reads the comma before an item in brackets. It returns the first token of the item, or nil at the closing
// bracket.
func (p *parser) separator(first bool, openAt int, closing kind) (*token, error) {
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	if t.kind != closing && !first {
		if t.kind != flowEntry {
			return nil, p.unclosed(t, openAt, closing)
		}
		p.skip()
		if t, err = p.peek(); err != nil {
			return nil, err
		}
	}
	if t.kind == closing {
		p.skip()
		return nil, nil
	}
	return t, nil
}

// unclosed returns the problem of a token inside of brackets that neither separates items nor closes the brackets.
func (p *parser) unclosed(t *token, openAt int, closing kind) *problem {
	line, _ := p.doc.lineCol(openAt)
	return &problem{
		at: t.at, resume: t.at,
		message: "expected ',' or " + closing.String() + " for the bracket opened on line " + strconv.Itoa(line) +
			", but found " + t.kind.String(),
		hint: "close the bracket, or put a value that starts with one in quotes",
	}
}
