package yaml

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/value"
)

const tagPrefix = "tag:yaml.org,2002:"

// scalar converts a scalar without a tag to a value.
func (p *parser) scalar(t *token) node {
	n := node{raw: t.text, at: int32(t.at)}
	if t.style == plain {
		v, typed := p.implicit(t.text)
		if typed {
			n.value = v
			return n
		}
		n.special = specialOf(t.text)
	}
	n.value = p.word(t.text)
	return n
}

// implicit converts an unquoted scalar by the rules of the document.
func (p *parser) implicit(text string) (v any, typed bool) {
	if p.doc.plain && isOctal(text) {
		v, err := parsePlainInt(text)
		return v, err == nil
	}
	return implicit(text)
}

// isOctal reports whether an unquoted scalar is an octal number of YAML 1.1, whose digits Salt keeps.
func isOctal(text string) bool {
	digits := strings.TrimLeft(text, "+-")
	return len(text)-len(digits) <= 1 && len(digits) > 1 && digits[0] == '0' && only(digits, "01234567_")
}

// parseInt parses an int by the rules of the document.
func (p *parser) parseInt(text string) (any, error) {
	if p.doc.plain {
		return parsePlainInt(text)
	}
	return parseInt(text)
}

// taggedOrPlain converts a scalar to a value according to its properties.
func (p *parser) taggedOrPlain(t *token, props properties) node {
	if props.tag == "!" { // regardless of its form and quotes
		t.style, props.tag = plain, ""
	}
	n := p.scalar(t)
	n.at = int32(props.at)
	if props.tag != "" {
		n.value, n.special = p.taggedScalar(props, t.text)
	}
	return n
}

// word converts a string to an interface value. Equal short strings share memory.
func (p *parser) word(s string) any {
	const short = 24
	if len(s) > short {
		return s
	}
	if v, ok := p.words[s]; ok {
		return v
	}
	var v any = s
	p.words[s] = v
	return v
}

func (p *parser) taggedScalar(props properties, text string) (any, special) {
	name, standard := strings.CutPrefix(props.tag, tagPrefix)
	if !standard {
		return p.unknownTag(props), ordinary
	}
	var v any
	var err error
	switch name {
	case "str", "timestamp", "python/unicode":
		return text, ordinary
	case "merge":
		return text, mergeKey
	case "value":
		return text, valueKey
	case "null":
		return nil, ordinary
	case "bool":
		v, err = parseBool(text)
	case "int":
		v, err = p.parseInt(text)
	case "float":
		v, err = parseFloat(text)
	case "binary":
		v, err = decodeBinary(text)
	case "seq", "map", "set", "omap", "pairs":
		p.problems = append(p.problems, &problem{at: props.at, message: "expected a collection after !!" + name +
			", but found scalar"})
		return nil, ordinary
	default:
		return p.unknownTag(props), ordinary
	}
	if err != nil {
		p.problems = append(p.problems, &problem{at: props.at, message: "cannot make !!" + name + " of " + value.Repr(text) +
			": " + err.Error()})
	}
	return v, ordinary
}

func (p *parser) unknownTag(props properties) any {
	at := props.tagAt
	if at < 0 {
		at = props.at
	}
	p.problems = append(p.problems, &problem{
		at: at, message: "could not determine a constructor for the tag '" + props.tag + "'",
		hint: "remove the tag; put a value that starts with ! in quotes",
	})
	return nil
}

func parseBool(text string) (any, error) {
	lower := strings.ToLower(text)
	if v, ok := word(lower); ok && v != nil {
		return v, nil
	}
	return nil, &problem{message: "it is no yes or no"}
}

// decodeBinary decodes base64 as Python does: it skips invalid characters and ignores everything after the padding.
// Valid UTF-8 is returned as a string.
func decodeBinary(text string) (any, error) {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return nil, &problem{message: "base64 is made of ASCII"}
	}
	var digits []byte
	pads := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '=' && len(digits)%4 >= 2:
			pads++
		case c != '-' && c != '_' && isNameByte(c) || c == '+' || c == '/':
			digits = append(digits, c)
			pads = 0
		}
		if pads > 0 && len(digits)%4+pads == 4 {
			break
		}
	}
	if len(digits)%4 != 0 && len(digits)%4+pads != 4 {
		return nil, &problem{message: "incorrect padding"}
	}
	data, err := base64.RawStdEncoding.DecodeString(string(digits))
	if err != nil {
		return nil, err
	}
	if utf8.Valid(data) {
		return string(data), nil
	}
	return data, nil
}

// finish reports a problem for a word that is allowed only as a key.
func (p *parser) finish(n *node) {
	switch n.special {
	case mergeKey:
		p.unknownTag(properties{at: int(n.at), tagAt: int(n.at), tag: tagPrefix + "merge"})
	case valueKey:
		p.unknownTag(properties{at: int(n.at), tagAt: int(n.at), tag: tagPrefix + "value"})
	}
	n.special = ordinary
}

func (p *parser) taggedSequence(props properties, n *node, list *value.List) any {
	switch props.tag {
	case tagPrefix + "seq":
		return list
	case tagPrefix + "omap", tagPrefix + "pairs":
		return p.orderedPairs(n)
	case tagPrefix + "str", tagPrefix + "int", tagPrefix + "float", tagPrefix + "bool", tagPrefix + "null",
		tagPrefix + "binary", tagPrefix + "timestamp", tagPrefix + "map", tagPrefix + "set":
		return p.wrongKind(props, n.kind)
	}
	return p.unknownTag(props)
}

func (p *parser) wrongKind(props properties, found nodeKind) any {
	name := strings.TrimPrefix(props.tag, tagPrefix)
	p.problems = append(p.problems, &problem{at: props.at, message: "did not expect a " + found.String() + " after !!" +
		name})
	return nil
}

// orderedPairs converts a list of mappings with one key each to a list of tuples of key and value.
func (p *parser) orderedPairs(n *node) any {
	out := value.NewList()
	for i := range n.kept.items {
		item := &n.kept.items[i]
		if item.kind != mappingNode || len(item.kept.pairs) != 1 {
			p.problems = append(p.problems, &problem{at: int(item.at),
				message: "expected a mapping of one key inside !!omap or !!pairs"})
			continue
		}
		only := &item.kept.pairs[0]
		out.Append(value.Tuple{only.key.value, only.value.value})
	}
	return out
}

func (p *parser) taggedMapping(props properties, pairs []pair, n *node) any {
	switch props.tag {
	case tagPrefix + "map", tagPrefix + "set":
		return p.newMap(pairs, n.at)
	case tagPrefix + "str", tagPrefix + "timestamp":
		for i := range pairs {
			if pairs[i].key.special == valueKey {
				return pairs[i].value.raw
			}
		}
		return p.wrongKind(props, n.kind)
	case tagPrefix + "int", tagPrefix + "float", tagPrefix + "bool", tagPrefix + "null", tagPrefix + "binary",
		tagPrefix + "seq", tagPrefix + "omap", tagPrefix + "pairs":
		return p.wrongKind(props, n.kind)
	}
	return p.unknownTag(props)
}
