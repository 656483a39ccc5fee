package check

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// computed replaces each character of a template expression in a masked text.
const computed = "\uE000"

var (
	tag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}`) })
	// opaque matches tags that enclose text which is no declaration at its position.
	opaque = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\{%[-+]?\s*(raw|macro|call|filter|block|extends|load_\w+|set\s+\w+\s*[-+]?%\})`)
	})
)

// masked replaces the tags of a template, so that every other character keeps its position.
func masked(text string) string {
	return tag().ReplaceAllStringFunc(text, func(tag string) string {
		fill := " "
		if strings.HasPrefix(tag, "{{") {
			fill = computed
		}
		first, rest, several := strings.Cut(tag, "\n")
		out := strings.Repeat(fill, len([]rune(first)))
		if several {
			out += "\n" + regexp.MustCompile(`[^\n]`).ReplaceAllString(rest, " ")
		}
		return out
	})
}

// file is an SLS file whose declarations are checked.
type file struct {
	*checker
	doc   *yaml.Document
	lines []string // with tags
}

func (f *file) declarations(of any) {
	ids, _ := of.(*value.Map)
	if ids == nil {
		return
	}
	for id, body := range ids.All() {
		states, _ := body.(*value.Map)
		switch {
		case id == "include" || id == "exclude" || states == nil:
		case id == "extend":
			f.declarations(states)
		default:
			for state, run := range states.All() {
				f.declaration(states, state, run)
			}
		}
	}
}

// declaration checks a state of an ID.
func (f *file) declaration(states *value.Map, key, run any) {
	name, is := key.(string)
	arguments, isList := run.(*value.List)
	if !is || run != nil && !isList || strings.Contains(name, computed) || strings.HasPrefix(name, "__") {
		return
	}
	at := f.doc.Pos(states, key)
	state, function, full := strings.Cut(name, ".")
	if !full {
		function = soleName(arguments)
	}
	if function == "" || f.own[state] {
		return
	}
	if known, ok := functions()[state+"."+function]; ok {
		f.arguments(state+"."+function, arguments, known, at)
		return
	}
	f.unknown(state, function, at)
}

// soleName returns the function that a list of arguments names; "" if it names none or several, or if a template
// computes the name.
func soleName(arguments *value.List) (name string) {
	if arguments == nil {
		return ""
	}
	for _, item := range arguments.Items {
		if text, is := item.(string); is {
			if name != "" || strings.ContainsAny(text, " ."+computed) {
				return ""
			}
			name = text
		}
	}
	return name
}

// unknown reports a function that does not exist. An unknown state may be one of base or of Salt.
func (f *file) unknown(state, function string, at diag.Pos) {
	var all, same []string
	for name := range functions() {
		all = append(all, name)
		if own, of := strings.CutPrefix(name, state+"."); of {
			same = append(same, own)
		}
	}
	slices.Sort(all)
	slices.Sort(same)
	meant := diag.Misspelling(state+"."+function, all)
	switch {
	case len(same) > 0:
		hint := cmp.Or(diag.DidYouMean(function, same), "of "+state+" there are "+strings.Join(same, ", "))
		f.problems.Add(at, "no such state function: %s has no %s", state, function).WithHint(diag.Function, hint)
	case meant != "":
		f.problems.Add(at, "no such state function: %s.%s", state, function).
			WithHint(diag.Function, "did you mean \""+meant+"\"?")
	}
}

// arguments reports arguments that a function does not have. Below a tag they may belong to another function.
func (f *file) arguments(function string, given *value.List, known []string, at diag.Pos) {
	if given == nil || slices.Contains(known, "*") {
		return
	}
	for _, item := range given.Items {
		argument, _ := item.(*value.Map)
		if argument == nil {
			continue
		}
		for key := range argument.All() {
			name, is := key.(string)
			pos := f.doc.Pos(argument, key)
			if !is || strings.Contains(name, computed) || slices.Contains(known, name) || general(name) ||
				f.tagBetween(at, pos) {
				continue
			}
			noArgument(&f.problems, pos, function, name, known)
		}
	}
}

// noArgument reports an argument that a function does not have.
func noArgument(problems *diag.List, at diag.Pos, function, name string, known []string) {
	hint := cmp.Or(diag.DidYouMean(name, append(slices.Clone(known), generalNames()...)),
		"its arguments are "+strings.Join(known, ", "))
	problems.Add(at, "%s has no argument %s", function, name).WithHint(diag.Argument, hint)
}

// tagBetween reports whether a block tag stands between the lines of two places.
func (f *file) tagBetween(from, to diag.Pos) bool {
	lines := f.lines[min(max(from.Line-1, 0), len(f.lines)):min(to.Line, len(f.lines))]
	return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "{%") })
}
