package pkgrepo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// entry is a repository of apt: deb [arch=amd64 signed-by=/key] URI suite components.
type entry struct {
	kind     string // deb or deb-src
	disabled bool
	options  []option
	uri      string
	suite    string
	comps    []string
	comment  string
}

// option is an option in the brackets of an entry, such as arch=amd64.
type option struct{ name, value string }

// parseEntry parses a line. ok is false if the line is not an entry.
func parseEntry(line string) (e entry, ok bool) {
	line = strings.TrimSpace(line)
	if rest, off := strings.CutPrefix(line, "#"); off {
		e.disabled, line = true, rest
	}
	line, e.comment, _ = strings.Cut(line, "#")
	form := regexp.MustCompile(`^\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s*)?(cdrom:\[[^\]]*\]\S*|\S+)\s+(\S+)(.*)$`)
	m := form.FindStringSubmatch(line)
	if m == nil || strings.HasPrefix(m[3], "[") {
		return e, false
	}
	e.kind, e.uri, e.suite, e.comps = m[1], m[3], m[4], strings.Fields(m[5])
	e.comment = strings.TrimSpace(e.comment)
	for _, word := range strings.Fields(m[2]) {
		name, v, _ := strings.Cut(word, "=")
		e.options = append(e.options, option{name, v})
	}
	return e, true
}

// String returns the entry as a line.
func (e entry) String() string {
	words := []string{e.kind}
	if e.disabled {
		words = []string{"#", e.kind}
	}
	if len(e.options) > 0 {
		var options []string
		for _, o := range e.options {
			options = append(options, o.name+"="+o.value)
		}
		words = append(words, "["+strings.Join(options, " ")+"]")
	}
	words = append(append(words, e.uri, e.suite), e.comps...)
	if e.comment != "" {
		words = append(words, "#"+e.comment)
	}
	return strings.Join(words, " ")
}

func (e entry) option(name string) string {
	for _, o := range e.options {
		if o.name == name {
			return o.value
		}
	}
	return ""
}

// setOption sets an option, or removes it if v is "". arch and signed-by come first, as in Salt.
func (e *entry) setOption(name, v string) {
	e.options = structsort.Without(e.options, func(o option) bool { return o.name == name })
	if v != "" {
		e.options = append(e.options, option{name, v})
	}
	rank := func(o option) int {
		if i := slices.Index([]string{"arch", "signed-by"}, o.name); i >= 0 {
			return i
		}
		return 2
	}
	structsort.Func(e.options, func(a, b option) int { return rank(a) - rank(b) })
}

// same reports whether two entries denote the same repository: they agree in kind, URI and suite and, if e has
// components, share at least one.
func (e entry) same(other entry) bool {
	if e.kind != other.kind || e.suite != other.suite || bare(e.uri) != bare(other.uri) {
		return false
	}
	return len(e.comps) == 0 || slices.ContainsFunc(e.comps, func(c string) bool {
		return slices.Contains(other.comps, c)
	})
}

// bare returns a URI without its trailing slash.
func bare(uri string) string { return strings.TrimRight(uri, "/") }

// equal reports whether two entries of the same repository are equal, disregarding the order of components and
// options.
func (e entry) equal(other entry) bool {
	return e.disabled == other.disabled && e.comment == other.comment &&
		slices.Equal(sorted(e.comps), sorted(other.comps)) && slices.Equal(e.optionWords(), other.optionWords())
}

func (e entry) optionWords() []string {
	var words []string
	for _, o := range e.options {
		values := strings.Split(o.value, ",")
		words = append(words, o.name+"="+strings.Join(sorted(values), ","))
	}
	return sorted(words)
}

func sorted(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return words
}

// fields returns the entry in the form of Salt's reports.
func (e entry) fields() *value.Map {
	architectures := value.NewList()
	if arch := e.option("arch"); arch != "" {
		architectures = value.Strings(strings.Split(arch, ",")...)
	}
	return value.NewMap("comps", value.Strings(e.comps...), "disabled", e.disabled, "dist", e.suite, "type", e.kind,
		"uri", e.uri, "line", e.String(), "architectures", architectures, "signedby", e.option("signed-by"))
}

// difference returns the fields that differ, without passwords. If only a password differs, the old and the new
// value look the same.
func (e entry) difference(after entry) *value.Map {
	m, old := value.NewMap(), e.fields()
	for key, now := range after.fields().All() {
		name := value.Str(key)
		if was := old.Value(name); !value.Equal(was, now) {
			m.Set(name, value.NewMap("new", shown(now), "old", shown(was)))
		}
	}
	return m
}

func shown(v any) any {
	if text, ok := v.(string); ok {
		return redact.URLs(text)
	}
	return v
}

// readEntry parses the name argument of a state.
func readEntry(name string) (entry, error) {
	e, ok := parseEntry(name)
	if !ok {
		return e, diag.Repository.Hint(fmt.Errorf("%q is not a line of a package repository", name),
			"write `deb [options] URI suite component`")
	}
	if strings.HasSuffix(e.suite, "/") != (len(e.comps) == 0) {
		return e, diag.Repository.Hint(
			errors.New("a repository has components, or a suite that ends in a slash and none: "+name),
			"write `deb URI stable main`, or `deb URI ./`")
	}
	return e, nil
}
