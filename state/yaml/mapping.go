package yaml

import (
	"slices"
	"strconv"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// mapping reads the pairs with the given reader, which appends them to p.pairs, and constructs the value for the tag.
func (p *parser) mapping(props properties, keep keeping, read func() error) (node, error) {
	n := node{at: int32(props.at), kind: mappingNode}
	base := len(p.pairs)
	if err := read(); err != nil {
		return n, err
	}
	own := p.merge(p.pairs[base:])
	switch {
	case keep == mergeSource:
	case props.tag != "" && props.tag != "!":
		n.value = p.taggedMapping(props, own, &n)
	default:
		n.value = p.newMap(own, n.at)
	}
	if keep != drop {
		n.kept = &kept{pairs: slices.Clone(own)}
	}
	p.pairs = p.pairs[:base]
	return n, nil
}

// newMap returns a mapping of the pairs, and reports duplicate keys.
func (p *parser) newMap(pairs []pair, at int32) *value.Map {
	m := value.MakeMap(len(pairs))
	marks := p.doc.marksFor(m, at, len(pairs))
	for i := range pairs {
		k, v := &pairs[i].key, &pairs[i].value
		p.finish(v)
		taken, err := m.Insert(k.value, v.value)
		switch {
		case err != nil:
			p.problems = append(p.problems, &problem{
				at: int(k.at), message: "found unacceptable key: a " + k.kind.String() + " cannot be a key",
				hint: "put a value that starts with { or [ in quotes",
			})
		case taken && p.doc.plain:
			_ = m.SetKey(k.value, v.value) // the key is valid, since it is in the mapping
		case taken:
			p.duplicate(pairs[:i], k)
		}
		marks[i] = mark{hash: hashKey(k.value), keyAt: k.at, valueAt: v.at}
	}
	return m
}

func (p *parser) duplicate(before []pair, k *node) {
	message := "found conflicting ID '" + value.Str(k.value) + "'"
	for i := range before {
		if value.Equal(before[i].key.value, k.value) {
			line, _ := p.doc.lineCol(int(before[i].key.at))
			message += ": the key is already on line " + strconv.Itoa(line)
			break
		}
	}
	p.problems = append(p.problems, &problem{at: int(k.at), message: message,
		hint: "merge the two, or rename one of them"})
}

func (p *parser) blockMapping() error {
	return p.block(keyMark, "mapping", "a key", p.blockPair)
}

// blockPair reads one key and its value; either may be missing.
func (p *parser) blockPair(t *token) error {
	at := t.at
	p.skip()
	key, err := p.blockPart(empty(at), drop)
	if err != nil {
		return err
	}
	return p.pairWith(key, p.blockPart)
}

// blockPart reads a node, or returns otherwise before the next key or the end.
func (p *parser) blockPart(otherwise node, keep keeping) (node, error) {
	t, err := p.peek()
	if err != nil || t.kind == keyMark || t.kind == valueMark || t.kind == blockEnd {
		return otherwise, err
	}
	return p.node(true, true, keep)
}

// pairWith reads the value that belongs to a key and appends the pair.
func (p *parser) pairWith(key node, part func(otherwise node, keep keeping) (node, error)) error {
	t, err := p.peek()
	if err != nil {
		return err
	}
	val := empty(t.at)
	if t.kind == valueMark {
		p.skip()
		keep := drop
		if key.special == mergeKey {
			keep = mergeSource
		}
		if val, err = part(val, keep); err != nil {
			return err
		}
	}
	p.pairs = append(p.pairs, pair{key, val})
	return nil
}

func (p *parser) flowMapping() error {
	return p.flow(flowMappingEnd, func(t *token) (err error) {
		key := empty(t.at)
		if t.kind == keyMark {
			p.skip()
			key, err = p.flowPart(key, drop)
		} else {
			key, err = p.node(false, false, drop)
		}
		if err != nil {
			return err
		}
		return p.pairWith(key, p.flowPart)
	})
}

// flowPart reads a node inside brackets, or returns otherwise if it is missing.
func (p *parser) flowPart(otherwise node, keep keeping) (node, error) {
	t, err := p.peek()
	if err != nil {
		return otherwise, err
	}
	switch t.kind {
	case valueMark, flowEntry, flowMappingEnd, flowSequenceEnd:
		return otherwise, nil
	}
	return p.node(false, false, keep)
}

// singlePair reads the mapping of [key: value].
func (p *parser) singlePair() error {
	t, err := p.peek()
	if err != nil {
		return err
	}
	at := t.at
	p.skip()
	key, err := p.flowPart(empty(at), drop)
	if err != nil {
		return err
	}
	return p.pairWith(key, p.flowPart)
}

// merge implements <<: the pairs of the mappings that it names come first, without the keys of the mapping itself. Keys
// are compared by their text.
func (p *parser) merge(own []pair) []pair {
	if !slices.ContainsFunc(own, func(x pair) bool { return x.key.special == mergeKey }) {
		return own
	}
	var merged, rest []pair
	written := map[string]bool{}
	for i := range own {
		if own[i].key.special == mergeKey {
			merged = append(merged, p.mergedPairs(&own[i].value)...)
			continue
		}
		rest = append(rest, own[i])
		written[own[i].key.raw] = true
	}
	merged = structsort.Without(merged, func(x pair) bool { return written[x.key.raw] })
	return append(merged, rest...)
}

// mergedPairs returns the pairs of a mapping, or of a list of mappings from the last to the first.
func (p *parser) mergedPairs(n *node) []pair {
	switch n.kind {
	case mappingNode:
		return n.kept.pairs
	case sequenceNode:
		var all []pair
		for i := len(n.kept.items) - 1; i >= 0; i-- {
			item := &n.kept.items[i]
			if item.kind != mappingNode {
				p.cannotMerge(item, "a mapping")
				continue
			}
			all = append(all, item.kept.pairs...)
		}
		return all
	}
	p.cannotMerge(n, "a mapping or list of mappings")
	return nil
}

func (p *parser) cannotMerge(n *node, expected string) {
	p.problems = append(p.problems, &problem{
		at: int(n.at), message: "expected " + expected + " for merging, but found " + n.kind.String(),
	})
}
