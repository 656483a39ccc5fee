// Package compile turns declarations (Salt's high data) into a program: the ordered steps (Salt's low chunks) of a
// run, each with its requisites.
//
// Declarations have the meaning that Salt 3006 gives them, including special cases: order numbers by the order of the
// files, names that expand into separate steps, _in requisites that are reversed, and extensions that are merged into
// the extended declaration. Requisites are looked up in an index, so the cost is linear in the number of
// declarations; Salt scans all of them for each requisite.
//
// All errors in the form of declarations are reported together, each with its position in the SLS file. Mistakes that
// Salt reports only during a run (a requisite that does not exist, a function that no module has) are in the Problems
// of the program. Callers that must not start a run that cannot be completed treat them as errors.
package compile

import (
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// High holds the rendered SLS files: IDs in order, each a mapping of state declarations. Under __extend__ and
// __exclude__ it has the extensions and exclusions of declarations in other files.
type High struct {
	Data *value.Map
	// Pos returns the position of an ID, of a state below it, or of an argument below that. It may be nil for data that is
	// not from a file.
	Pos func(path ...string) diag.Pos
	// PosOf returns the position of the body of an ID, or of an extension. It may be nil as well.
	PosOf func(body any) diag.Pos
	// Includes are the includes of all files, in the order in which they were read.
	Includes []Include
	// Unread has the texts of files that could not be parsed; "" for a missing file.
	Unread []string
}

// Include is one SLS file's include of another.
type Include struct {
	Env string
	SLS string // the included SLS
	By  string // the SLS that includes it
	Pos diag.Pos
}

func (h *High) posOf(body any) diag.Pos {
	if h.PosOf == nil {
		return diag.Pos{}
	}
	return h.PosOf(body)
}

func (h *High) at(path ...string) diag.Pos {
	if h.Pos == nil {
		return diag.Pos{}
	}
	return h.Pos(path...)
}

// Keys of high data that are not IDs or states.
const (
	KeyExtend  = "__extend__"
	KeyExclude = "__exclude__"
	KeySLS     = "__sls__"
	KeyEnv     = "__env__"
	KeyID      = "__id__"
)

// internal reports whether a key of high data is neither an ID nor a state, but one of the compiler's keys.
func internal(key any) bool {
	s, ok := key.(string)
	return ok && len(s) >= 2 && s[:2] == "__"
}

// Vocabulary lists the state functions that exist.
type Vocabulary interface {
	Has(state, function string) bool
	// Watches reports whether states of this kind have a watch action (Salt's mod_watch); for others a watch is a
	// require.
	Watches(state string) bool
	// Refuses returns an error that says why there are no states of this kind, with a hint; nil if there may be some.
	Refuses(state string) error
	// Functions lists all known functions as state.function, for suggestions.
	Functions() []string
}

// Program is a compiled, ordered list of steps.
type Program struct {
	Steps    []*Step
	Problems diag.List
}

// Compile compiles high data into a program. It changes the high data. Its error is a diag.List.
func Compile(high *High, vocabulary Vocabulary) (*Program, error) {
	if err := Resolve(high); err != nil {
		return nil, err
	}
	steps, err := Expand(high)
	if err != nil {
		return nil, err
	}
	p := &Program{Steps: steps}
	p.link(vocabulary)
	return p, nil
}

// Resolve applies the declarations that change other declarations: extend, the _in requisites, use and exclude.
func Resolve(high *High) error {
	var problems diag.List
	extend(high, false, &problems, nil)
	verify(high, &problems)
	if err := problems.Err(); err != nil {
		return err
	}
	requisitesIn(high, &problems)
	exclude(high)
	return problems.Err()
}
