package outputter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// highstate formats the results of states. A list has the errors of SLS files. It formats other data as nested.
func (p paint) highstate(answer any, o Options) string {
	switch v := answer.(type) {
	case *value.List:
		return p.problems(v)
	case *value.Map:
		if results, ok := resultsOf(v); ok {
			return p.results(results, o)
		}
	}
	return p.answer(answer)
}

func (p paint) problems(list *value.List) string {
	var b strings.Builder
	b.WriteString(p.color(red, host+":") + "\n    The SLS files do not compile:\n")
	for _, item := range list.Items {
		b.WriteString(rule + "\n")
		for _, line := range value.SplitLines(value.Str(item), false) {
			b.WriteString("    " + p.color(red, line) + "\n")
		}
	}
	return b.String()
}

// result is the result of one state, decoded from its mapping.
type result struct {
	tag      string
	body     *value.Map
	changes  *value.Map
	warnings []any
	duration float64 // milliseconds
	number   int
}

// resultsOf decodes an answer into results, in the order of the run. ok is false for other data.
func resultsOf(answer *value.Map) (all []result, ok bool) {
	for key, v := range answer.All() {
		tag, _ := key.(string)
		body, isMap := v.(*value.Map)
		if !isMap || strings.Count(tag, "_|-") < 3 || !body.Has("result") {
			return nil, false
		}
		r := result{tag: tag, body: body}
		r.changes, _ = body.Value("changes").(*value.Map)
		if list, isList := body.Value("warnings").(*value.List); isList {
			r.warnings = list.Items
		}
		r.duration, _ = body.Value("duration").(float64)
		r.number, _ = body.Value("__run_num__").(int)
		all = append(all, r)
	}
	structsort.Func(all, func(a, b result) int { return cmp.Compare(a.number, b.number) })
	return all, len(all) > 0
}

func (r result) failed() bool  { return r.body.Value("result") == false }
func (r result) pending() bool { return r.body.Value("result") == nil }
func (r result) changed() bool { return r.changes.Len() > 0 }

// clean reports whether the state succeeded and had nothing to change.
func (r result) clean() bool { return !r.failed() && !r.pending() && !r.changed() }

func (r result) color() string {
	switch {
	case r.failed():
		return red
	case r.pending():
		return yellow
	case r.changed():
		return cyan
	}
	return green
}

// part returns one of the four parts of a tag: state, ID, name, function.
func (r result) part(n int) string {
	parts := strings.Split(r.tag, "_|-")
	if n == 1 { // an ID may contain the separator
		return value.Str(cmp.Or(r.body.Value("__id__"), any(parts[1])))
	}
	if n == 3 {
		return parts[len(parts)-1]
	}
	return parts[n]
}

func (r result) function() string { return r.part(0) + "." + r.part(3) }

func (r result) name() string {
	if name := r.body.Value("name"); name != nil {
		return value.Str(name)
	}
	return r.part(1)
}

func (p paint) results(all []result, o Options) string {
	var b strings.Builder
	failed := slices.ContainsFunc(all, result.failed)
	top := green
	if failed {
		top = red
	}
	b.WriteString(p.color(top, host+":") + "\n")
	for _, r := range all {
		switch {
		case o.Brief && r.clean() && len(r.warnings) == 0:
		case o.Brief && r.clean(), r.short(o.Mode):
			b.WriteString(p.terse(r))
		default:
			b.WriteString(p.full(r))
		}
	}
	b.WriteString(p.summary(all))
	return b.String()
}

// short reports whether a result is formatted in one line.
func (r result) short(mode string) bool {
	switch mode {
	case "terse":
		return true
	case "mixed":
		return !r.failed()
	case "changes":
		return r.clean()
	}
	return false
}

// terse formats a result in one line. Further lines have the comment of a failure, and warnings.
func (p paint) terse(r result) string {
	word := "Clean"
	switch {
	case r.failed():
		word = "Failed"
	case r.pending():
		word = "Differs"
	case r.changed():
		word = "Changed"
	}
	line := fmt.Sprintf("Name: %s - Function: %s - Result: %s", r.name(), r.function(), word)
	if start := r.body.Value("start_time"); start != nil {
		line += fmt.Sprintf(" - Started: %s - Duration: %s ms", value.Str(start), value.Str(r.body.Value("duration")))
	}
	text := "  " + p.color(r.color(), line) + "\n"
	if comment := value.Str(r.body.Value("comment")); r.failed() && comment != "" {
		text += "    " + p.color(red, "Comment: "+below(comment)) + "\n"
	}
	for _, w := range r.warnings {
		text += "    " + p.color(red, "Warnings: "+below(value.Str(w))) + "\n"
	}
	return text
}

// under is the column at which values start.
const under = 14

// below indents the further lines of a text to the column of its first one.
func below(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+strings.Repeat(" ", under))
}

// full formats a result with a line for each of its parts.
func (p paint) full(r result) string {
	var b strings.Builder
	say := func(label, text string) {
		b.WriteString(p.color(r.color(), fmt.Sprintf("%12s: %s", label, below(text))) + "\n")
	}
	b.WriteString(p.color(r.color(), rule) + "\n")
	say("ID", r.part(1))
	say("Function", r.function())
	if r.name() != r.part(1) {
		say("Name", r.name())
	}
	say("Result", value.Str(r.body.Value("result")))
	say("Comment", value.Str(r.body.Value("comment")))
	if start := r.body.Value("start_time"); start != nil {
		say("Started", value.Str(start))
	}
	if duration, ok := r.body.Get("duration"); ok {
		say("Duration", value.Str(duration)+" ms")
	}
	b.WriteString(p.color(r.color(), fmt.Sprintf("%12s:   ", "Changes")) + "\n")
	if r.changed() {
		b.WriteString(p.nested(r.changes, under))
	}
	for _, w := range r.warnings {
		b.WriteString(p.color(red, fmt.Sprintf("%12s: %s", "Warnings", below(value.Str(w)))) + "\n")
	}
	return b.String()
}
