package yaml

import "strconv"

// parser parses the tokens and constructs values directly, without a syntax tree.
type parser struct {
	*scanner
	doc      *Document
	handles  map[string]string // prefixes of tags by handle
	anchors  map[string]*anchored
	problems []*problem // problems after which parsing continues
	pairs    []pair     // of the mappings that are being read
	items    []node     // of the sequences that are being read
	depth    int
	size     int            // nodes so far, with every alias counted as its target
	words    map[string]any // strings so far, so that equal keys share memory
}

const (
	maxDepth = 1000
	maxSize  = 4 << 20 // nodes; limits nested aliases
)

// document parses all of the text, which must be one document.
func (p *parser) document() (any, error) {
	explicit, err := p.documentStart()
	if err != nil {
		return nil, err
	}
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	root := empty(t.at)
	if t.kind != streamEnd && t.kind != documentStart && (t.kind != documentEnd || !explicit) {
		if root, err = p.node(true, false, drop); err != nil {
			return nil, err
		}
	}
	p.finish(&root)
	p.doc.start = int(root.at)
	return root.value, p.documentEnd()
}

// documentStart reads the directives and ---, and reports whether there was one.
func (p *parser) documentStart() (explicit bool, err error) {
	for {
		t, err := p.peek()
		if err != nil {
			return false, err
		}
		switch t.kind {
		case versionDirective:
			if p.handles["%YAML"] != "" {
				return false, &problem{at: t.at, message: "found duplicate %YAML directive", resume: t.at}
			}
			p.handles["%YAML"] = t.text
		case tagDirective:
			if p.handles["%"+t.handle] != "" {
				return false, &problem{at: t.at, message: "found duplicate %TAG directive", resume: t.at}
			}
			p.handles["%"+t.handle], p.handles[t.handle] = t.text, t.text
		case documentStart:
			p.skip()
			return true, nil
		default:
			if len(p.handles) > len(defaultHandles) {
				return false, &problem{at: t.at, message: "did not find expected '---' after a directive", resume: t.at}
			}
			return false, nil
		}
		p.skip()
	}
}

var defaultHandles = map[string]string{"!": "!", "!!": tagPrefix}

func (p *parser) documentEnd() error {
	for {
		t, err := p.peek()
		if err != nil {
			return err
		}
		switch t.kind {
		case documentEnd:
			p.skip()
			continue
		case streamEnd:
			return nil
		case documentStart:
			return &problem{
				at: t.at, message: "expected a single document in the stream, but found another document", resume: t.at,
				hint: "a file holds one document; remove the second ---",
			}
		}
		p := &problem{at: t.at, message: "expected the end of the document, but found " + t.kind.String(), resume: t.at}
		if t.isKey() {
			p.hint = "a key ends with a colon, also one with others below it: write `key:` in the lines before"
		}
		return p
	}
}

// node reads one node. With block, the node may be a block collection on the following lines; with indentless, a
// sequence as the value of a mapping need not be indented. Keep requests the pairs of a mapping or the items of a
// sequence.
func (p *parser) node(block, indentless bool, keep keeping) (node, error) {
	t, err := p.peek()
	if err != nil {
		return node{}, err
	}
	if p.size++; p.size > maxSize {
		return node{}, p.tooLarge()
	}
	switch t.kind {
	case scalarText:
		n := p.scalar(t)
		p.skip()
		return n, nil
	case aliasName:
		return p.alias()
	}
	if p.depth++; p.depth > maxDepth {
		return node{}, &problem{at: t.at, message: "the document is nested more than " + strconv.Itoa(maxDepth) +
			" levels deep", resume: len(p.src)}
	}
	n, err := p.collectionOrTagged(t, block, indentless, keep)
	p.depth--
	return n, err
}

func (p *parser) collectionOrTagged(t *token, block, indentless bool, keep keeping) (node, error) {
	if t.kind != anchorName && t.kind != tagName {
		return p.content(properties{at: t.at}, block, indentless, keep)
	}
	props, err := p.properties()
	if err != nil {
		return node{}, err
	}
	if props.anchor == "" {
		return p.content(props, block, indentless, keep)
	}
	return p.anchor(props, block, indentless)
}

func (p *parser) tooLarge() error {
	return &problem{
		at: p.pos, message: "the document stands for more than " + strconv.Itoa(maxSize) + " values", resume: len(p.src),
		hint: "aliases of aliases multiply; write fewer of them",
	}
}

// content parses the node after its properties.
func (p *parser) content(props properties, block, indentless bool, keep keeping) (node, error) {
	t, err := p.peek()
	if err != nil {
		return node{}, err
	}
	switch {
	case t.kind == scalarText:
		n := p.taggedOrPlain(t, props)
		p.skip()
		return n, nil
	case indentless && t.kind == blockEntry:
		return p.sequence(props, keep, p.indentlessSequence)
	case t.kind == flowSequenceStart:
		return p.sequence(props, keep, p.flowSequence)
	case t.kind == flowMappingStart:
		return p.mapping(props, keep, p.flowMapping)
	case block && t.kind == blockSequenceStart:
		return p.sequence(props, keep, p.blockSequence)
	case block && t.kind == blockMappingStart:
		return p.mapping(props, keep, p.blockMapping)
	case props.anchor != "" || props.tag != "":
		t := token{kind: scalarText, at: props.at}
		if props.tag == "!" { // an empty node with the tag ! is a string
			t.style, props.tag = singleQuoted, ""
		}
		return p.taggedOrPlain(&t, props), nil
	}
	return node{}, &problem{at: t.at, message: "expected a value, but found " + t.kind.String(), resume: t.at}
}
