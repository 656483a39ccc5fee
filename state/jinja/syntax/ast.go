// Package syntax parses Jinja2 templates into syntax trees.
//
// It implements the tokens of Jinja2 3.1, including white space control, and its grammar, with the statements that
// Salt adds: do, break and continue, load_yaml and load_json, import_yaml and similar ones, and profile. Salt's
// statements are rewritten into simpler ones, so that later stages do not handle them. Names, filters and values are
// not resolved here.
package syntax

// Node is a part of a template. Line is the line that Jinja2 assigns to the node, and Offset the position in the
// normalized text that messages show; the two need not agree.
type Node interface {
	Line() int
	Offset() int
}

type position struct{ line, at int }

func (p position) Line() int   { return p.line }
func (p position) Offset() int { return p.at }

// The groups of types below say which nodes are statements and which are expressions.
type (
	// Stmt is a statement or a piece of output.
	Stmt = Node
	// Expr is an expression.
	Expr = Node
)

// Template is a whole template.
type Template struct {
	Text string // normalized; offsets count its bytes
	Body []Stmt
}

// Statements. Their fields are in the order in which Jinja2 walks them.
type (
	// Output is text and expressions to be printed.
	Output struct {
		position
		Nodes []Expr
	}
	// Extends names the parent template.
	Extends struct {
		position
		Template Expr
	}
	// For is a loop. Target is a *Name or a *Tuple, Test may be nil.
	For struct {
		position
		Target    Expr
		Iter      Expr
		Body      []Stmt
		Else      []Stmt
		Test      Expr
		Recursive bool
	}
	// If is a condition. An Elif has only a Test and a Body.
	If struct {
		position
		Test Expr
		Body []Stmt
		Elif []*If
		Else []Stmt
	}
	// Signature has the parameters of a macro or a call block.
	Signature struct {
		Args     []*Name
		Defaults []Expr // of the last arguments
	}
	// Macro defines a macro.
	Macro struct {
		position
		Name string
		Signature
		Body []Stmt
	}
	// CallBlock calls a macro and passes it the body as caller.
	CallBlock struct {
		position
		Call *Call
		Signature
		Body []Stmt
	}
	// FilterBlock filters the output of its body.
	FilterBlock struct {
		position
		Body   []Stmt
		Filter *Filter
	}
	// With sets variables for its body.
	With struct {
		position
		Targets []Expr
		Values  []Expr
		Body    []Stmt
	}
	// Block can be replaced by templates that extend this one.
	Block struct {
		position
		Name     string
		Body     []Stmt
		Scoped   bool
		Required bool
	}
	// Include prints another template.
	Include struct {
		position
		Template      Expr
		WithContext   bool
		IgnoreMissing bool
	}
	// Import loads a template as a module.
	Import struct {
		position
		Template    Expr
		Target      string
		WithContext bool
	}
	// FromImport imports names of a module.
	FromImport struct {
		position
		Template    Expr
		Names       []ImportName
		WithContext bool
	}
	// ImportName is one name of a FromImport, and its alias.
	ImportName struct{ Name, Alias string }
	// ExprStmt evaluates an expression for its effect.
	ExprStmt struct {
		position
		Node Expr
	}
	// Assign sets a *Name, a *Tuple or a *NSRef.
	Assign struct {
		position
		Target Expr
		Node   Expr
	}
	// AssignBlock sets a variable to the output of its body. Filter may be nil.
	AssignBlock struct {
		position
		Target Expr
		Filter *Filter
		Body   []Stmt
	}
	// Scope runs its body in a scope of its own. Autoescape has no other effect here.
	Scope struct {
		position
		Options Expr
		Body    []Stmt
	}
	// Break leaves a loop.
	Break struct{ position }
	// Continue continues with the next round of a loop.
	Continue struct{ position }
)

// Access says whether a Name is read, assigned, or a parameter.
type Access uint8

// The kinds of access.
const (
	Load Access = iota
	Store
	Param
)

// Expressions. Their fields are in the order in which Jinja2 walks them.
type (
	// TemplateData is literal text of the template.
	TemplateData struct {
		position
		Data string
	}
	// Const is a literal.
	Const struct {
		position
		Value any // nil, bool, int, *big.Int, float64 or string
	}
	// Name is a variable.
	Name struct {
		position
		Name   string
		Access Access
	}
	// NSRef is an attribute of a namespace that is set.
	NSRef struct {
		position
		Name string
		Attr string
	}
	// Tuple is a tuple, or several targets.
	Tuple struct {
		position
		Items []Expr
	}
	// List is a list literal.
	List struct {
		position
		Items []Expr
	}
	// Dict is a dict literal.
	Dict struct {
		position
		Pairs []Pair
	}
	// Pair is a key and a value of a Dict.
	Pair struct{ Key, Value Expr }
	// Binary is an operator between two values: + - * / // % ** and or.
	Binary struct {
		position
		Op          string
		Left, Right Expr
	}
	// Unary is an operator before a value: + - not.
	Unary struct {
		position
		Op   string
		Node Expr
	}
	// Concat is values joined by ~.
	Concat struct {
		position
		Nodes []Expr
	}
	// Compare is a chain of comparisons.
	Compare struct {
		position
		Expr Expr
		Ops  []Operand
	}
	// Operand is one comparison of a chain: == != < <= > >= in, or not in.
	Operand struct {
		Op   string
		Expr Expr
	}
	// CondExpr is then if test else otherwise. Else may be nil.
	CondExpr struct {
		position
		Test, Then, Else Expr
	}
	// Arguments holds the arguments of a call, a filter or a test.
	Arguments struct {
		Args      []Expr
		Kwargs    []Keyword
		DynArgs   Expr // after *, or nil
		DynKwargs Expr // after **, or nil
	}
	// Keyword is a named argument.
	Keyword struct {
		Name  string
		Value Expr
	}
	// Filter is a filter. Node is nil in a filter block.
	Filter struct {
		position
		Node Expr
		Name string
		Arguments
	}
	// Test is a test.
	Test struct {
		position
		Node Expr
		Name string
		Arguments
	}
	// Call is a call.
	Call struct {
		position
		Node Expr
		Arguments
	}
	// Getattr is node.attr.
	Getattr struct {
		position
		Node Expr
		Attr string
	}
	// Getitem is node[arg]. Arg is a *Slice for slices.
	Getitem struct {
		position
		Node Expr
		Arg  Expr
	}
	// Slice is start:stop:step, each of which may be nil.
	Slice struct {
		position
		Start, Stop, Step Expr
	}
)
