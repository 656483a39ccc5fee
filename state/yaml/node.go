package yaml

// node is a parsed node: its value, and the data that merging needs.
type node struct {
	value   any
	raw     string // of a scalar, as written
	kept    *kept  // data that keeping requested
	at      int32
	kind    nodeKind
	special special
}

// kept holds the parts of a collection that may be merged into another.
type kept struct {
	pairs []pair
	items []node
}

// keeping says whether the value or the parts of a collection are needed.
type keeping uint8

const (
	drop        keeping = iota // only for its value
	keepParts                  // for its parts too
	mergeSource                // only for its parts
)

// special marks the two words with a special meaning as keys, which are not allowed as values.
type special uint8

const (
	ordinary special = iota
	mergeKey         // <<
	valueKey         // =
)

type nodeKind uint8

const (
	scalarNode nodeKind = iota
	sequenceNode
	mappingNode
)

func (k nodeKind) String() string { return [...]string{"scalar", "sequence", "mapping"}[k] }

type pair struct{ key, value node }

// anchored is a node with an anchor.
type anchored struct {
	node node
	size int
	open bool // still being read
}
