package compile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// words is the Vocabulary of these tests.
type words struct{}

func (words) Has(state, function string) bool {
	return slices.Contains(words{}.Functions(), state+"."+function)
}
func (words) Watches(state string) bool { return state == "service" }
func (words) Refuses(state string) error {
	if state == "mine" {
		return diag.Internal.Hint(errors.New("mine: a module of your own"), "rewrite it")
	}
	return nil
}
func (words) Functions() []string { return []string{"file.managed", "service.running", "test.nop"} }

// compiled compiles high data that is written as YAML.
func compiled(t *testing.T, text string) (*compile.Program, error) {
	t.Helper()
	doc, err := (&render.Renderer{Default: "yaml"}).Render(t.Context(),
		render.Source{Name: "t.sls", File: "t.sls", Text: text}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return compile.Compile(&compile.High{Data: doc.Value.(*value.Map)}, words{})
}

func tags(steps []*compile.Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, s.ID()+" "+s.Function())
	}
	return strings.Join(all, ", ")
}

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"in the order of the file": {`
b: {test: [nop, {order: 10000}], __sls__: t, __env__: base}
a: {test: [nop, {order: 10001}], __sls__: t, __env__: base}`, "b test.nop, a test.nop"},
		"first and last": {`
b: {test: [nop, {order: last}], __sls__: t, __env__: base}
a: {test: [nop, {order: 10001}], __sls__: t, __env__: base}
c: {test: [nop, {order: first}], __sls__: t, __env__: base}`, "c test.nop, a test.nop, b test.nop"},
		"names": {`
a: {test: [nop, {names: [y, x]}, {order: 10000}], __sls__: t, __env__: base}`, "a test.nop, a test.nop"},
		"exclude": {`
a: {test: [nop], __sls__: t, __env__: base}
b: {test: [nop], __sls__: u, __env__: base}
__exclude__: [{sls: u}]`, "a test.nop"},
	} {
		p, err := compiled(t, c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := tags(p.Steps); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestRequisites checks that requisites name steps by ID, by name, by glob and by file, and that the _in forms add a
// requisite to the step that they name.
func TestRequisites(t *testing.T) {
	p, err := compiled(t, `
a: {test: [nop, {name: n}], __sls__: t, __env__: base}
b: {test: [nop, {require: [{test: n}]}], __sls__: t, __env__: base}
c: {test: [nop, {require: [{test: "[ab]"}]}], __sls__: t, __env__: base}
d: {test: [nop, {watch_in: [{service: s}]}], __sls__: u, __env__: base}
s: {service: [running, {require: [{sls: t}]}], __sls__: v, __env__: base}
w: {test: [nop, {watch: [{test: a}]}], __sls__: v, __env__: base}`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range p.Steps {
		for _, q := range s.Requisites {
			for _, target := range q.Targets {
				got[s.ID()+" "+q.Kind+" "+target.String()] = tags(target.Steps)
			}
		}
	}
	for key, want := range map[string]string{
		"b require test: n":    "a test.nop",
		"c require test: [ab]": "b test.nop, a test.nop", // ordered by function and name, in the absence of another order
		"s watch test: d":      "d test.nop",
		"s require sls: t":     "b test.nop, c test.nop, a test.nop",
		"w require test: a":    "a test.nop", // test has no watch action
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q, of %v", key, got[key], want, got)
		}
	}
}

// TestWarnings checks that mistakes which Salt reports only during a run are problems with suggestions.
func TestWarnings(t *testing.T) {
	p, err := compiled(t, `
alpha: {test: [nop, {require: [{test: beta}]}], __sls__: t, __env__: base}
gamma: {test: [nop, {require: [{test: alhpa}]}], __sls__: t, __env__: base}
beta: {test: [nop, {require: [{test: omega}]}], __sls__: t, __env__: base}
omega: {test: [nop, {require: [{test: alpha}]}], __sls__: t, __env__: base}
delta: {test: [nopp], __sls__: t, __env__: base}
own: {mine: [done], __sls__: t, __env__: base}`)
	if err != nil {
		t.Fatal(err)
	}
	text := p.Problems.Error()
	for _, want := range []string{"alhpa", "alpha", "beta", "nopp", "test.nop", "a module of your own"} {
		if !strings.Contains(text, want) {
			t.Errorf("the problems lack %q:\n%s", want, text)
		}
	}
	if len(p.Problems) != 4 {
		t.Errorf("%d problems, want one for each mistake:\n%s", len(p.Problems), text)
	}
}

// TestWrongTypesAreErrors checks that all declarations of a wrong shape are reported at once.
func TestWrongTypesAreErrors(t *testing.T) {
	_, err := compiled(t, `
a: {test: nop, __sls__: t, __env__: base}
b: {test: [nop, other], __sls__: t, __env__: base}
c: {test: [], __sls__: t, __env__: base}
d: {test: [nop, {require: {test: a}}], __sls__: t, __env__: base}
e: {test: [nop, {require: [[a]]}], __sls__: t, __env__: base}`)
	var problems diag.List
	if !errors.As(err, &problems) {
		t.Fatalf("%v is not a list of problems", err)
	}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		if !slices.ContainsFunc(problems, func(d *diag.Diagnostic) bool {
			return strings.Contains(d.Message, `"`+id+`"`) || strings.Contains(d.Message, " "+id+" ") ||
				strings.Contains(d.Message, id+":")
		}) {
			t.Errorf("no problem names %s:\n%v", id, err)
		}
	}
}

func TestExtend(t *testing.T) {
	p, err := compiled(t, `
a: {file: [managed, {mode: "0600"}, {require: [{test: x}]}], __sls__: t, __env__: base}
x: {test: [nop], __sls__: t, __env__: base}
y: {test: [nop], __sls__: t, __env__: base}
__extend__: [{a: {file: [{mode: "0644"}, {require: [{test: y}]}], __sls__: u, __env__: base}}]`)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Steps, func(s *compile.Step) bool { return s.ID() == "a" })
	if mode := p.Steps[i].Chunk.Value("mode"); mode != "0644" {
		t.Errorf("mode is %v", mode)
	}
	if n := len(p.Steps[i].Requisites[0].Targets); n != 2 {
		t.Errorf("%d requisites, want both", n)
	}
}

// TestRequisitesWithoutStateAreErrors checks requisites whose item is a bare name, in listen and in the _in forms.
func TestRequisitesWithoutStateAreErrors(t *testing.T) {
	for _, key := range []string{"listen: [{test: ghost}]", "listen_in: [{test: ghost}]", "listen: [ghost]",
		"listen: [{sls: t}]",
		"require_in: [ghost]", "watch_in: [ghost]", "onchanges_in: [ghost]", "onfail_in: [ghost]", "prereq_in: [ghost]",
		"use: [ghost]"} {
		p, err := compiled(t, "a: {test: [nop, {"+key+"}], __sls__: t, __env__: base}")
		if err != nil || p.Problems.Err() == nil || !strings.Contains(p.Problems.Err().Error(), "of a: there is no") {
			t.Errorf("%s: %v, problems %v", key, err, p)
		}
	}
	p, err := compiled(t, `
a: {test: [nop, {listen: [{test: b}]}, {listen_in: [b]}, {require_in: [c]}], __sls__: t, __env__: base}
b: {test: [nop, {name: c}], __sls__: t, __env__: base}`)
	if err != nil || p.Problems.Err() != nil {
		t.Errorf("%v, problems %v", err, p.Problems)
	}
}

// TestRequisitesOfAWrongShape checks every kind of requisite.
func TestRequisitesOfAWrongShape(t *testing.T) {
	for _, key := range []string{"require", "require_any", "require_in", "watch", "watch_any", "watch_in", "prereq",
		"prereq_in", "onchanges",
		"onchanges_any", "onchanges_in", "onfail", "onfail_any", "onfail_all", "onfail_in", "listen", "listen_in", "use",
		"use_in"} {
		for _, shape := range []string{"b", "[{test: [b]}]", "[[b]]", "[5]"} {
			_, err := compiled(t,
				"a: {test: [nop, {"+key+": "+shape+"}], __sls__: t, __env__: base}\nb: {test: [nop], __sls__: t, "+
					"__env__: base}")
			if err == nil || !strings.Contains(err.Error(), key+" of a") {
				t.Errorf("%s: %s: %v", key, shape, err)
			}
		}
	}
}

func TestAStateThatRequiresItselfByName(t *testing.T) {
	_, err := compiled(t, "a: {test: [nop, {name: x}, {require: [{test: x}]}], __sls__: t, __env__: base}")
	if err == nil || !strings.Contains(err.Error(), "require of a names test: x, which is this state itself") {
		t.Errorf("%v", err)
	}
}

func TestANameThatIsAList(t *testing.T) {
	p, err := compiled(t, "a: {test: [nop, {name: [logger, hi]}], __sls__: t, __env__: base}")
	if err != nil || !strings.Contains(p.Problems.Err().Error(), "the name of a is ['logger', 'hi']") ||
		len(p.Steps[0].Slips()) != 1 {
		t.Errorf("%v, %v", err, p)
	}
}
