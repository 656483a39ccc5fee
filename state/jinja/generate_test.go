package jinja_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes templates by a grammar. Most are valid, many fail at run time, and some do not parse.
type generator struct {
	*rand.Rand
	loops  int
	macros int
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// sound writes an expression of a kind, which is usually valid. The kinds are those of typed.
func (g *generator) sound(kind byte, depth int) string {
	if kind == 'x' {
		kind = pick(g, byte('s'), 's', 'i', 'l', 'd', 'b')
	}
	from := typed[kind]
	if depth <= 0 {
		from = from[:min(3, len(from))]
	}
	if depth <= 0 && kind == 'b' {
		return pick(g, "true", "t", "false")
	}
	e := pick(g, from...)
	var b strings.Builder
	for i := 0; i < len(e); i++ {
		if e[i] != '$' {
			b.WriteByte(e[i])
			continue
		}
		i++
		part := g.sound(e[i], depth-1)
		if strings.ContainsAny(part, " -") {
			part = "(" + part + ")"
		}
		b.WriteString(part)
	}
	return b.String()
}

func (g *generator) expr(depth int) string {
	if g.IntN(16) > 0 {
		return g.sound(pick(g, byte('x'), 'x', 's', 'l', 'i', 'b'), depth)
	}
	return g.wild(depth)
}

// wild writes an arbitrary expression of the grammar.
func (g *generator) wild(depth int) string {
	if depth <= 0 {
		return g.atom()
	}
	switch g.IntN(20) {
	case 0, 1, 2:
		return g.atom()
	case 3, 4, 5:
		return g.expr(depth-1) + pick(g, " | ", "|") + pick(g, filters...)
	case 6, 7:
		return g.operand(depth) + " " + pick(g, binary...) + " " + g.operand(depth)
	case 8, 9:
		return g.expr(depth-1) + " is " + pick(g, "", "", "not ") + pick(g, tests...)
	case 10, 11, 12:
		return pick(g, names...) + "." + pick(g, methods...)
	case 13, 14:
		return pick(g, names...) + pick(g, attributes...)
	case 15:
		return g.expr(depth-1) + " if " + g.expr(depth-1) + pick(g, " else "+g.expr(depth-1), "")
	case 16:
		return pick(g, "not ", "-", "+", "not not ") + g.operand(depth)
	case 17:
		return "[" + g.expr(depth-1) + ", " + g.expr(depth-1) + "]"
	case 18:
		return "{" + pick(g, "'a'", "1", "s", "none", "l") + ": " + g.expr(depth-1) + "}"
	}
	return g.call(depth)
}

func (g *generator) operand(depth int) string {
	e := g.wild(depth - 1)
	if g.IntN(3) > 0 {
		return "(" + e + ")"
	}
	return e
}

func (g *generator) atom() string {
	switch g.IntN(12) {
	case 0:
		return "missing"
	case 1, 2, 3, 4:
		return pick(g, literals...)
	case 5:
		if g.loops > 0 {
			return "loop." + pick(g, loopVars...)
		}
	case 6:
		if g.loops > 0 {
			return "x"
		}
	}
	return pick(g, names...)
}

func (g *generator) call(depth int) string {
	switch g.IntN(7) {
	case 0:
		return "range(" + pick(g, "3", "1, 4", "5, 0, -2", "0", "n", "s", "1, 2, 0") + ")"
	case 1:
		return "dict(" + pick(g, "", "d", "a=1", "d, a=2", "[(1, 2)]", "l") + ")"
	case 2:
		return "cycler('a', 'b').next()"
	case 3:
		return "namespace(a=" + g.expr(depth-1) + ").a"
	case 4:
		return "joiner(',')()"
	case 5:
		if g.macros > 0 {
			return fmt.Sprintf("m%d(%s)", g.IntN(g.macros+1), pick(g, "", "1", "a=1", "1, 2, 3", "b=2, c=3", g.expr(depth-1)))
		}
	}
	return pick(g, "'%s' % s", "'%d|%5.2f' % (n, f)", "'{0}-{a}'.format(s, a=1)", "'%(a)s' % d", "'{:>5}'.format(n)",
		"'{!r}'.format(s)", "'%x' % n", "'%s %s' % s", "'{}'.format(l)")
}

func (g *generator) open() string { return pick(g, "{% ", "{% ", "{% ", "{%- ", "{%-", "{%+ ") }
func (g *generator) close() string {
	return pick(g, " %}", " %}", " %}", " -%}", "-%}", " %}\n", " -%}\n")
}

func (g *generator) tag(format string, args ...any) string {
	return g.open() + fmt.Sprintf(format, args...) + g.close()
}

func (g *generator) text() string {
	return pick(g, "a", " ", "\n", "text\n", "  ", "\n\n", "b: c\n", "", "", "#", "{ ", "}", "'", "\t")
}

func (g *generator) body(depth int) string {
	var b strings.Builder
	for range 1 + g.IntN(2) {
		b.WriteString(g.text())
		b.WriteString(g.statement(depth))
		b.WriteString(g.text())
	}
	return b.String()
}

func (g *generator) print(depth int) string {
	return pick(g, "{{ ", "{{", "{{- ", "{{+ ") + pick(g, "", "", "", "", "\n") + g.expr(depth) +
		pick(g, " }}", "}}", " -}}", "\n}}", " }}", " }}")
}

func (g *generator) statement(depth int) string {
	if depth <= 0 {
		return g.print(2)
	}
	switch g.IntN(22) {
	case 0, 1, 2, 3:
		return g.print(3)
	case 4, 5:
		return g.ifs(depth)
	case 6, 7, 8:
		return g.loop(depth)
	case 9, 10:
		return g.tag("set %s = %s", pick(g, "n", "v", "a, b", "ns.x", "s", "x", "ns.q.r"), g.expr(2))
	case 11:
		return g.tag("set %s%s", pick(g, "v", "s"), pick(g, "", " | upper", " | trim | length", "|nosuch")) +
			g.body(depth-1) + g.tag("endset") + "{{ v }}"
	case 12:
		return g.tag("with %s", pick(g, "", "v = n", "v = 1, q = v", "a=l, b=s")) + g.body(depth-1) + pick(g, "", "{{ v }}") +
			g.tag("endwith")
	case 13:
		return g.macro(depth)
	case 14:
		return g.tag("filter %s", pick(g, "upper", "trim", "indent(2)", "replace('a','b')", "title", "nosuch",
			"upper | lower")) + g.body(depth-1) + g.tag("endfilter")
	case 15:
		return g.tag("raw") + pick(g, "{{ x }}", "{% if %}", "{# c #}", "a\n") + g.tag("endraw")
	case 16:
		return g.tag("do %s", pick(g, "l.append(n)", "d.update({'q': 1})", "w.pop()", "l.sort()", "missing.x()", "d.pop('a')",
			"mix.remove(1)",
			"l.insert(0, 9)", "d.setdefault('n', [])", "w.extend(l)", "w.reverse()")) + "{{ l }}{{ d }}"
	case 17:
		return pick(g, "{# comment #}", "{#- c -#}", "{# a\nb #}\n", "{# {{ x }} #}")
	case 18:
		return g.others()
	case 19:
		return g.tag("set ns = namespace(x=%s)", g.expr(1)) + g.body(depth-1) + "{{ ns.x }}"
	case 20:
		if g.loops > 0 {
			return g.tag("if %s", g.expr(1)) + g.tag("%s", pick(g, "break", "continue")) + g.tag("endif")
		}
	}
	return g.callBlock(depth)
}

func (g *generator) ifs(depth int) string {
	s := g.tag("if %s", g.expr(2)) + g.body(depth-1)
	for g.IntN(3) == 0 {
		s += g.tag("elif %s", g.expr(2)) + g.body(depth-1)
	}
	if g.IntN(2) == 0 {
		s += g.tag("else") + g.body(depth-1)
	}
	return s + g.tag("endif")
}

func (g *generator) loop(depth int) string {
	over := pick(g, "l", "w", "us", "d", "s[:3]", "range(3)", "el", "m.x", "[1, [2, [3]]]", g.sound('l', 1))
	target := "x"
	switch g.IntN(4) {
	case 0:
		over, target = pick(g, "d.items()", "us | groupby('g')", "d | dictsort", "m.items()", "[(1, 2)]", "l"),
			pick(g, "x, y", "(x, y)", "x, y")
	case 1:
		if g.IntN(8) == 0 {
			over, target = pick(g, "n", "missing", "s", g.wild(1)), pick(g, "x", "x, (y, z)")
		}
	}
	suffix := pick(g, "", "", "", " if x", " if x != 'a'", " if loop.first", " recursive")
	g.loops++
	s := g.tag("for %s in %s%s", target, over, suffix) + g.body(depth-1)
	if suffix == " recursive" && g.IntN(2) == 0 {
		s += "{% if x is iterable and x is not string %}{{ loop(x) }}{% endif %}"
	}
	g.loops--
	if g.IntN(3) == 0 {
		s += g.tag("else") + g.body(depth-1)
	}
	return s + g.tag("endfor")
}

func (g *generator) macro(depth int) string {
	g.macros++
	loops := g.loops
	g.loops = 0
	name := fmt.Sprintf("m%d", g.macros)
	params := pick(g, "", "a", "a, b=1", "a=1, b=a", "b=[]", "x=n", "a, b")
	body := g.body(depth-1) + pick(g, "", "{{ a }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}", "{{ b }}",
		"{% do b.append(1) %}{{ b }}", "", "", "", "", "")
	g.loops = loops
	return g.tag("macro %s(%s)", name, params) + body + g.tag("endmacro") +
		"{{ " + name + "(" + pick(g, "", "1", "1, 2", "a=3", "1, 2, 3", "q=1", "*l", "**d", "1, a=2") + ") }}" +
		pick(g, "", "{{ "+name+"."+pick(g, "name", "arguments", "catch_kwargs", "catch_varargs", "caller", "q")+" }}")
}

func (g *generator) callBlock(depth int) string {
	if g.macros == 0 {
		return g.macro(depth)
	}
	return g.tag("call%s m%d(%s)", pick(g, "", "(v)", "(v, w=2)"), 1+g.IntN(g.macros), pick(g, "", "1", "a=1")) +
		g.body(depth-1) + g.tag("endcall")
}

// others writes a statement about another template.
func (g *generator) others() string {
	// inside of a function, Jinja2 3.1.2 wrongly makes a generator of this statement
	if g.macros == 0 && g.loops == 0 && g.IntN(16) == 0 {
		return "{% include 'inc' without context %}"
	}
	return pick(g,
		"{% include 'inc' %}", "{% include 'nosuch' ignore missing %}", "{% include ['nosuch', 'inc'] %}",
		"{% include 'nosuch' %}", "{% import 'mac' as mm %}{{ mm.m(1) }}{{ mm.v }}",
		"{% from 'mac' import m as mk, v %}{{ mk(1, 2, 3, q=4) }}{{ v }}",
		"{% from 'mac' import nosuch %}", "{% from 'mac' import nosuch %}{{ nosuch }}",
		"{% import 'mac' as mm with context %}{{ mm.nosuch }}",
		"{% from 'mac' import q with context %}{% call q() %}{{ s }}{% endcall %}", "{% include 'bad' %}",
		"{% import 'nosuch' as q %}",
		"{% block one %}x{{ n }}{% endblock %}", "{% block two scoped %}{{ super() }}{% endblock %}", "{{ self.one() }}")
}

// template writes a complete template.
func (g *generator) template() string {
	g.loops, g.macros = 0, 0
	s := g.body(g.IntN(4))
	switch g.IntN(24) {
	case 0:
		s = "{% extends 'base' %}" + s
	case 1:
		s = "{% extends 'base' %}{% block one %}" + s + "{{ super() }}{% endblock %}"
	case 2, 3:
		s = g.broken(s)
	}
	return strings.TrimRight(s, "\n")
}

// broken removes, inserts or moves a few characters of a template.
func (g *generator) broken(s string) string {
	if s == "" {
		return "{{"
	}
	i := g.IntN(len(s))
	j := min(len(s), i+1+g.IntN(4))
	switch g.IntN(3) {
	case 0:
		s = s[:i] + s[j:]
	case 1:
		s = s[:i] + pick(g, "{%", "%}", "{{", "}}", "{#", "(", ")", "]", "'", "|", ".", ",", " if ", " else ", "=", "$", "`",
			"\\", "\n", "endif", "~", "!", "1", "{% endfor %}", "{% elif x %}", "{% break %}", "{% set %}") + s[i:]
	default:
		s = s[:i] + s[j:] + s[i:j]
	}
	return strings.ToValidUTF8(s, "?")
}
