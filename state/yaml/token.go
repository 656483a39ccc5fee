package yaml

// kind is the kind of a token. Tokens of the block kinds do not occur in the text: they follow from the indentation.
type kind uint8

const (
	streamEnd kind = iota
	versionDirective
	tagDirective
	documentStart
	documentEnd
	blockSequenceStart
	blockMappingStart
	blockEnd
	flowSequenceStart
	flowSequenceEnd
	flowMappingStart
	flowMappingEnd
	blockEntry
	flowEntry
	keyMark
	valueMark
	aliasName
	anchorName
	tagName
	scalarText
)

var kindNames = [...]string{
	streamEnd: "the end", versionDirective: "%YAML", tagDirective: "%TAG", documentStart: "'---'",
	documentEnd: "'...'", blockSequenceStart: "'-'", blockMappingStart: "a key", blockEnd: "less indentation",
	flowSequenceStart: "'['", flowSequenceEnd: "']'", flowMappingStart: "'{'", flowMappingEnd: "'}'",
	blockEntry: "'-'", flowEntry: "','", keyMark: "a key", valueMark: "':'", aliasName: "an alias",
	anchorName: "an anchor", tagName: "a tag", scalarText: "a value",
}

func (k kind) String() string { return kindNames[k] }

// style is the style of a scalar.
type style uint8

const (
	plain style = iota
	singleQuoted
	doubleQuoted
	literal
	folded
)

type token struct {
	kind   kind
	style  style
	at     int    // where it starts
	text   string // of a scalar, alias, anchor or directive; the suffix of a tag
	handle string // of a tag
}

// isKey reports whether the token begins a key of a mapping, or ends one.
func (t *token) isKey() bool {
	return t.kind == blockMappingStart || t.kind == keyMark || t.kind == valueMark
}

// problem is a mistake at an offset of the text, before it is reported.
type problem struct {
	at      int
	message string
	hint    string
	resume  int // offset at which parsing may continue to find more; 0 if it did not stop
}

func (p *problem) Error() string { return p.message }
