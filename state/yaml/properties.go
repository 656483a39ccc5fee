package yaml

// properties holds the anchor and the tag before a node.
type properties struct {
	at       int
	anchor   string
	anchorAt int
	tag      string // resolved
	tagAt    int
}

func (p *parser) properties() (properties, error) {
	t, err := p.peek()
	if err != nil {
		return properties{}, err
	}
	props := properties{at: t.at, anchorAt: -1, tagAt: -1}
	for {
		switch {
		case t.kind == anchorName && props.anchorAt < 0:
			props.anchor, props.anchorAt = t.text, t.at
		case t.kind == tagName && props.tagAt < 0:
			props.tagAt = t.at
			if props.tag, err = p.resolveTag(t); err != nil {
				return props, err
			}
		default:
			return props, nil
		}
		p.skip()
		if t, err = p.peek(); err != nil {
			return props, err
		}
	}
}

func (p *parser) resolveTag(t *token) (string, error) {
	if t.handle == "" {
		return t.text, nil
	}
	prefix, ok := p.handles[t.handle]
	if !ok {
		return "", &problem{at: t.at, message: "found undefined tag handle " + t.handle, resume: t.at}
	}
	return prefix + t.text, nil
}

// anchor reads a node with an anchor and records it.
func (p *parser) anchor(props properties, block, indentless bool) (node, error) {
	a := &anchored{open: true}
	if _, taken := p.anchors[props.anchor]; taken {
		p.problems = append(p.problems, &problem{at: props.anchorAt,
			message: "found duplicate anchor '" + props.anchor + "'"})
	}
	p.anchors[props.anchor] = a
	before := p.size
	n, err := p.content(props, block, indentless, keepParts)
	a.node, a.size, a.open = n, p.size-before, false
	return n, err
}

func (p *parser) alias() (node, error) {
	t, err := p.peek()
	if err != nil {
		return node{}, err
	}
	at, name := t.at, t.text
	p.skip()
	a, ok := p.anchors[name]
	switch {
	case !ok:
		p.problems = append(p.problems, &problem{
			at: at, message: "found undefined alias '" + name + "'",
			hint: "define it before with &" + name + ", or put a value that starts with * in quotes",
		})
		return empty(at), nil
	case a.open:
		p.problems = append(p.problems, &problem{at: at, message: "found unconstructable recursive node: '" + name +
			"' is inside itself"})
		return empty(at), nil
	}
	if p.size += a.size; p.size > maxSize {
		return node{}, p.tooLarge()
	}
	n := a.node
	n.at = int32(at)
	return n, nil
}
