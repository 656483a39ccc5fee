package syntax

// kind is the kind of a token.
type kind uint8

const (
	tokEOF kind = iota
	tokData
	tokVariableBegin
	tokVariableEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInteger
	tokFloat
	tokAdd
	tokSub
	tokMul
	tokDiv
	tokFloorDiv
	tokMod
	tokPow
	tokTilde
	tokLbracket
	tokRbracket
	tokLparen
	tokRparen
	tokLbrace
	tokRbrace
	tokEq
	tokNe
	tokGt
	tokGe
	tokLt
	tokLe
	tokAssign
	tokDot
	tokColon
	tokPipe
	tokComma
	tokSemicolon
)

// kindNames has the names for messages of tokens without a text.
var kindNames = [...]string{
	tokEOF: "end of template", tokData: "template data / text",
	tokVariableBegin: "begin of print statement", tokVariableEnd: "end of print statement",
	tokBlockBegin: "begin of statement block", tokBlockEnd: "end of statement block",
	tokName: "name", tokString: "string", tokInteger: "integer", tokFloat: "float",
	tokAdd: "+", tokSub: "-", tokMul: "*", tokDiv: "/", tokFloorDiv: "//", tokMod: "%", tokPow: "**",
	tokTilde: "~", tokLbracket: "[", tokRbracket: "]", tokLparen: "(", tokRparen: ")", tokLbrace: "{",
	tokRbrace: "}", tokEq: "==", tokNe: "!=", tokGt: ">", tokGe: ">=", tokLt: "<", tokLe: "<=",
	tokAssign: "=", tokDot: ".", tokColon: ":", tokPipe: "|", tokComma: ",", tokSemicolon: ";",
}

func (k kind) String() string { return kindNames[k] }

// token is a piece of a template. Text is the text of the template for data, and otherwise the name, the number or the
// unescaped string.
type token struct {
	kind kind
	line int
	at   int // offset in the template's text
	text string
}

// describe returns the name of the token for messages.
func (t token) describe() string {
	if t.kind == tokName {
		return t.text
	}
	return t.kind.String()
}

func (t token) isName(text string) bool { return t.kind == tokName && t.text == text }
