package session_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// formsOf returns forms of one value, as SLS files and formulas write it, that are equal for a field of a type. The
// first form is the canonical one.
func formsOf(t reflect.Type) []any {
	if t.Kind() == reflect.Pointer && t != reflect.TypeFor[*value.Map]() && t != reflect.TypeFor[*value.List]() {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[module.Unmarshaler]()) {
		if t == reflect.TypeFor[module.Mode]() {
			return []any{"0644", 644, "644", "0o644"}
		}
		return []any{"3", 3}
	}
	switch {
	case t == reflect.TypeFor[*value.Map]():
		return []any{value.NewMap("a", 1, "b", "c"), value.NewList(value.NewMap("a", 1), value.NewMap("b", "c"))}
	case t == reflect.TypeFor[[]string]():
		return []any{value.NewList("5"), "5", 5, value.NewList(5), value.Tuple{"5"}}
	case t.Kind() == reflect.String:
		return []any{"5", 5, value.NewList("5"), value.NewList(5)}
	case t.Kind() == reflect.Bool:
		return []any{true, "True", "true", "yes", "on", 1, "1"}
	case t.Kind() == reflect.Int:
		return []any{5, "5", 5.0, " 5 "}
	case t.Kind() == reflect.Float64:
		return []any{5.0, 5, "5"}
	}
	return nil
}

// hostile returns values that must not make a state function panic.
func hostile() []any {
	return []any{nil, true, 0, -1, 1 << 40, 1.5, "", "a", "a,b", "%", "/", "../x", "\x00", value.NewList(),
		value.NewList(nil), value.NewList(value.NewList()),
		value.NewList(value.NewMap()), value.NewList(value.NewMap("a", nil), 3), value.NewMap(),
		value.NewMap("a", value.NewList()), value.NewMap("1", value.NewMap("x", nil)), value.Tuple{}}
}

// equalForms returns forms of a value that are equal for an argument, by state.function.argument.
func equalForms() map[string][]any {
	pairs := func(form func(name, v string) any) any { return value.NewList(form("A", "1"), form("B", "2")) }
	environment := []any{value.NewMap("A", "1", "B", "2"), pairs(func(n, v string) any { return value.NewMap(n, v) }),
		pairs(func(n, v string) any { return n + "=" + v })}
	words := []any{value.NewList("a", "b"), "a,b"}
	all := map[string][]any{
		"iptables.append.position": {1, "1", "first"}, "iptables.insert.position": {1, "1", "first"},
		"cmd.run.env": environment, "cmd.run.success_retcodes": {value.NewList(1, 2), value.NewList("1", "2"), "1,2"},
		"pkgrepo.managed.comps": words, "pkgrepo.managed.architectures": words,
		"pkgrepo.managed.keyid":   {value.NewList("AB12"), "AB12", "0xab12"},
		"pkgrepo.managed.key_url": {"https://x/k", value.NewList("https://x/k")},
		"pkg.installed.pkgs":      {value.NewList("a"), "a", value.NewList(value.NewMap("a", nil))},
		"file.managed.contents":   {"a", value.NewList("a")},
		"lvm.lv_present.thinpool": {true, "True", 1},
	}
	for _, name := range []string{"environment", "labels", "log_opt"} {
		all["docker_container.running."+name] = environment
	}
	for _, name := range []string{"binds", "port_bindings", "dns", "links", "cap_add", "devices"} {
		all["docker_container.running."+name] = words
	}
	for _, name := range []string{"command", "entrypoint"} {
		all["docker_container.running."+name] = []any{value.NewList("a", "b"), "a b"}
	}
	return all
}

// trial runs Decode and Check of state functions on a host in a root in which no command runs.
type trial struct {
	*testing.T
	session *session.Session
}

// outcome returns the result of a call: the mistake in its arguments, or the result of Check.
func (t trial) outcome(state, function string, arguments *value.Map) (text string) {
	defer func() {
		if problem := recover(); problem != nil {
			t.Errorf("%s.%s of %s panics: %v", state, function, value.Repr(arguments), problem)
		}
	}()
	r, _ := t.session.Modules().New(state, function)
	warnings, problems := module.Decode(r, module.Call{Function: state + "." + function, Arguments: arguments})
	if len(problems) > 0 {
		return fmt.Sprint("problems: ", problems)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	d, err := r.Check(ctx, t.session.Host)
	return fmt.Sprint(warnings, d.Warnings, d.Comment, value.Repr(d.Changes), value.Repr(d.Planned), d.Unknown, d.Missing,
		err)
}

// decoded returns a resource with arguments, and the problems of the arguments.
func (t trial) decoded(state, function string, arguments *value.Map) (module.Resource, string) {
	r, _ := t.session.Modules().New(state, function)
	_, problems := module.Decode(r, module.Call{Function: state + "." + function, Arguments: arguments})
	if len(problems) > 0 {
		return r, fmt.Sprint(problems)
	}
	return r, ""
}

type argument struct {
	name     string
	of       reflect.Type
	index    []int
	required bool
}

func argumentsOf(t reflect.Type, above []int) (all []argument) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(slices.Clip(above), i)
		tag, ok := f.Tag.Lookup("sls")
		name, option, _ := strings.Cut(tag, ",")
		switch {
		case ok && name != "*" && !strings.HasPrefix(name, "__"):
			all = append(all, argument{name, f.Type, index, option == "required"})
		case !ok && f.Anonymous && f.Type.Kind() == reflect.Struct:
			all = append(all, argumentsOf(f.Type, index)...)
		}
	}
	return all
}

// TestArgumentsInAllTheirForms passes each argument of each state function in each form that Salt accepts. All forms
// must be equal to the canonical one, and no value of an SLS file may make a function panic.
func TestArgumentsInAllTheirForms(t *testing.T) {
	h, err := machine.New(host.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t", "os_family", "Debian"),
		States: []roots.Env{{Name: "base", Dirs: []string{t.TempDir()}}}})
	try, same := trial{t, s}, equalForms()
	tried := 0
	for _, name := range s.Modules().Functions() {
		state, function, _ := strings.Cut(name, ".")
		r, _ := s.Modules().New(state, function)
		all := argumentsOf(reflect.TypeOf(r).Elem(), nil)
		with := func(a argument, v any) *value.Map {
			m := value.NewMap("name", "/x")
			for _, other := range all {
				if other.required {
					m.Set(other.name, "a")
					if forms := formsOf(other.of); len(forms) > 0 {
						m.Set(other.name, forms[0])
					}
				}
			}
			m.Set(a.name, v)
			return m
		}
		for _, a := range all {
			forms := formsOf(a.of)
			for _, form := range forms {
				tried++
				got, problem := try.decoded(state, function, with(a, form))
				want, _ := try.decoded(state, function, with(a, forms[0]))
				field := func(r module.Resource) any { return reflect.ValueOf(r).Elem().FieldByIndex(a.index).Interface() }
				if problem != "" || !sameValue(field(got), field(want)) {
					t.Errorf("%s: %s: %s is not equal to %s: %s", name, a.name, value.Repr(form), value.Repr(forms[0]), problem)
				}
			}
			forms = same[name+"."+a.name]
			delete(same, name+"."+a.name)
			for _, form := range forms {
				tried++
				if got, want := try.outcome(state, function, with(a, form)),
					try.outcome(state, function, with(a, forms[0])); got != want {
					t.Errorf("%s: %s: %s gives\n%s\nand %s\n%s", name, a.name, value.Repr(form), got, value.Repr(forms[0]), want)
				}
			}
			if a.of.Kind() != reflect.Interface && a.of.Kind() != reflect.Pointer && a.of.Kind() != reflect.Slice {
				continue
			}
			for _, v := range hostile() {
				try.outcome(state, function, with(a, v))
			}
		}
	}
	for name := range same {
		t.Errorf("there is no argument %s", name)
	}
	if tried < 3000 {
		t.Errorf("only %d forms were tried", tried)
	}
}

func sameValue(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	if _, ok := a.(*value.Map); ok {
		return value.Equal(a, b)
	}
	return false
}
