package compile

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Slips returns a problem for each general argument, such as order or retry, whose value is invalid and ignored, as in
// Salt.
func (s *Step) Slips() (list diag.List) {
	if s.misordered != nil {
		hint := diag.DidYouMean(value.Str(s.misordered), []string{"first", "last"})
		if hint == "" {
			hint = "write a number, first or last"
		}
		list.Add(s.At("order"), "order %s is invalid and has no effect: %s", value.Repr(s.misordered), hint)
	}
	if s.misnamed != nil {
		list.Add(s.At("name"), "name %s is not a string and has no effect: the ID is used", value.Repr(s.misnamed))
	}
	retry, ok := s.Chunk.Get("retry")
	m, isMap := retry.(*value.Map)
	if ok && !isMap && retry != true {
		list.Add(s.At("retry"),
			"retry %s is not a mapping and means 2 attempts, 30 seconds apart: write `- retry: {attempts: 3, "+
				"interval: 10}`",
			value.Repr(retry))
	}
	for key, v := range m.All() {
		s.retrySlip(value.Str(key), v, &list)
	}
	return list
}

func (s *Step) retrySlip(name string, v any, list *diag.List) {
	known := []string{"attempts", "interval", "splay", "until"}
	if !slices.Contains(known, name) {
		what := diag.DidYouMean(name, known)
		if what == "" {
			what = "there are " + strings.Join(known, ", ")
		}
		list.Add(s.At("retry"), "retry has no %s: %s", name, what)
		return
	}
	_, isBool := v.(bool)
	_, isInt := v.(int)
	if name == "until" && !isBool || name != "until" && !isInt {
		list.Add(s.At("retry"), "%s of retry is %s and has no effect: write a number, or for until true or false", name,
			value.Repr(v))
	}
}
