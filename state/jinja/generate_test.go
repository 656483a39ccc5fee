package jinja_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator writes templates by a grammar, most of them right, many of them wrong at run time, some
// of them not even templates.
type generator struct {
	*rand.Rand
	loops  int
	macros int
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func words(text string) []string { return strings.Fields(text) }

var (
	names    = words("s e u n z g f t no l w d h m us el ed ln num mix s n l d us w")
	literals = words(`1 0 -1 3 10 2.5 0.5 1e3 'a' 'b' "x" '' 'He' 'l' true false none True None [] {} () [1,2] (1,2) (1,)
		{'a':1} {'k':[1]} 'a\nb' '%s' '%d-%s' '{}' '{0}' '{a}' ['b','a'] [[1,2],[3,4]] 'ñ' 'one' range(3) range(1,6,2) dict(a=1) 1_000 0x1f`)
	binary  = words(`+ - * / // % == != < <= > >= and or ~ in + ~ == and`)
	filters = words(`abs attr('a') batch(2) batch(2,'x') capitalize center(9) count d('q') d('q',true) default('q') default dictsort
		dictsort(true) dictsort(by='value') dictsort(false,'value',true) e escape filesizeformat filesizeformat(true) first float float(1.5)
		forceescape format(1) format(a=1) groupby('g') groupby('n') groupby(0) indent indent(2) indent(2,true) indent('>') indent(width=1,blank=true)
		int int(3) int(0,16) items join join(',') join('-','n') last length list lower map('upper') map(attribute='n') map('length')
		map(attribute='q',default=0) max min max(attribute='a') min(attribute='n') pprint reject reject('odd') rejectattr('g') rejectattr('g','eq',1)
		replace('l','L') replace('l','L',1) replace('','-') reverse round round(1) round(1,'floor') round(method='ceil') round(-1) safe select
		select('string') selectattr('g') selectattr('a','gt',25) slice(2) slice(2,'x') sort sort(true) sort(attribute='n') sort(true,true)
		sort(attribute='g,n') sort(case_sensitive=true) string striptags sum sum(attribute='a') sum(start=1) title tojson tojson(2) trim trim('H')
		truncate(5) truncate(5,true) truncate(8,false,'..',0) unique unique(true) unique(attribute='g') upper urlencode urlize wordcount wordwrap(5)
		wordwrap(5,false) wordwrap(5,wrapstring='|') xmlattr list first upper length join(',') nosuch map('nosuch') map select(1) first(1) join(1,2,3,4)`)
	tests = words(`boolean callable defined divisibleby(2) even odd eq(1) equalto(1) false true filter float ge(1) gt(1) in([1,2])
		integer iterable le(1) lower lt(1) mapping ne(1) none number sameas(none) sequence string undefined upper test defined none nosuch
		divisibleby(0) greaterthan(0) lessthan('a')`)
	methods = words(`upper() lower() strip() strip('H') lstrip('h') rstrip() split() split(',') split('l',1) rsplit('l',1) splitlines() splitlines(true)
		replace('l','_') replace('l','_',1) startswith('H') endswith(('d','x')) find('o') rfind('o') index('o') index('q') count('l') title() capitalize()
		swapcase() center(9,'*') ljust(9) rjust(9,'.') zfill(4) isdigit() isalpha() isalnum() isspace() isupper() islower() istitle() join(['a','b'])
		join([1]) format(1,2) format(a=1) partition('l') rpartition('o') expandtabs() encode() casefold() removeprefix('He') removesuffix('d')
		items() keys() values() get('a') get('q') get('q',1) get('a','b','c') copy() pop('a') pop('q') pop('q',1) setdefault('q',2) update({'q':1})
		append(1) extend([1]) insert(0,9) remove(1) sort() reverse() clear() pop() pop(0) index(1) count(1) bit_length() is_integer() hex() translate({})
		nosuch() nosuch isidentifier() isdecimal() __class__ items items()|list fromkeys([1]) popitem()`)
	attributes = words(`.a .b .items .x .q .n .x.y.z .0 ['a'] ['q'] [0] [-1] [5] [1:] [:2] [::-1] [1:2] [-2:] [none] ['x']['y'] [n] [s] [0].n [0]['g'] [1.0] [true] [::0]`)
	loopVars   = words(`index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle('a','b') cycle() changed(1) nosuch previtem|default('-')
		nextitem is defined index index0 first last cycle('x','y','z')`)
)

// typed are expressions that fit together, by what they give: $s a string, $i a number, $l a list,
// $d a mapping, $b a truth, $x anything.
var typed = map[byte][]string{
	's': lines(`s
		u
		e
		h
		ln
		num
		'lit'
		'ñ x'
		$s.upper()
		$s | lower
		$s | title
		$s.replace('l', $s)
		$s | replace('o', '0')
		$s ~ $x
		$s + $s
		$s * 2
		$l | join(',')
		$l | join($s)
		$s[$i:]
		$s[:$i]
		$s[::-1]
		$x | string
		'%s' % $s
		'%s|%5d|%r' % ($s, $i, $s)
		'{} {}'.format($x, $i)
		'{0:>8}|{1!r:<6}'.format($s, $x)
		$s if $b else $s
		$s | truncate(7, true, '~')
		$s | indent(2, true)
		$s | center(12)
		$s.center(11, '*')
		$s.strip('Ho')
		$x | tojson
		$x | pprint
		$s | escape
		$s | e ~ h
		$s | urlencode
		$s | wordwrap(6)
		$s | trim
		$s | capitalize
		$s | striptags
		$i | filesizeformat
		$s.format($s)
		$s.join($s.split())
		$s | first
		$s | reverse
		$s | format($s)
		$d | xmlattr
		$s | default($s, true)
		$d | urlencode
		missing | default($s)
		$s.zfill(14)
		$l | last | string
		$d | items | list | string
		$s.encode() | string`),
	'i': lines(`n
		z
		g
		f
		3
		2.5
		-1
		$i + $i
		$i - $i
		$i * 3
		$i / 4
		$i // 2
		$i % 5
		-$i
		$i ** 2
		$l | length
		$s | length
		$s.count('l')
		$s.find('o')
		$s | int
		$s | float(1.5)
		$i | abs
		$i | round(1)
		$i | round(0, 'floor') | int
		$d | length
		[3, 1, $i] | sum
		$l | map('string') | map('length') | sum
		[$i, 4] | max
		$s | wordcount
		$b + 1
		$i if $b else $i
		us | sum(attribute='a')
		$i | int`),
	'l': lines(`l
		w
		us
		el
		mix
		[$x, $x]
		($x, $i)
		$l + [$x]
		$l[:$i]
		$l[::-1]
		$l | list
		$s.split()
		$s | list
		$s.split('l', 1)
		$s.splitlines()
		$d.items() | list
		$d.keys() | list
		$d | dictsort
		$d | list
		range(4) | list
		$l | map('string') | sort
		w | sort
		w | sort(true, true)
		w | unique | list
		us | map(attribute='n') | list
		us | selectattr('g', 'eq', 1) | list
		us | rejectattr('a', 'gt', 26) | map(attribute='a') | list
		us | groupby('g')
		us | groupby('g') | map('first') | list
		us | sort(attribute='a,n')
		$l | batch(2, $x) | list
		$l | slice(2) | list
		$l | select | list
		$l | reject('none') | list
		$l | map('upper') | list
		$l | reverse | list
		$l * 2
		$l if $b else $l
		w | map('replace', 'a', 'b') | list
		$d.values() | list
		[1, 2, 3] | select('odd') | list
		w | map('length') | list
		us | map(attribute='q', default=$x) | list
		$s.partition('l')`),
	'd': lines(`d
		m
		ed
		m.x
		{'a': $x}
		{$s: $i, 1: $x}
		dict(a=$x, b=$i)
		dict($d, a=1)
		dict([('k', $x)])
		us[0]
		$d if $b else $d
		$d.copy()`),
	'b': lines(`true
		not $b
		$b and $b
		$b or $x
		$x is defined
		$x is none
		$x is string
		$x is not mapping
		$x is iterable
		$x is sequence
		$x is number
		$i is odd
		$i is divisibleby(3)
		$s in $s
		$x in $l
		$x not in $l
		$s in $d
		$i < $i
		$i <= 3 < $i
		$s > $s
		$x == $x
		$x != $x
		$s.startswith('H')
		$s is upper
		$s is eq($s)
		$x is sameas(none)
		missing is undefined
		$d.q is defined
		$i is float
		$i is integer
		$x is boolean
		$l == $l
		$i is in($l)`),
}

func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// sound writes an expression that mostly makes sense.
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

// wild writes an expression of whatever goes together by the grammar.
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
	return pick(g, "'%s' % s", "'%d|%5.2f' % (n, f)", "'{0}-{a}'.format(s, a=1)", "'%(a)s' % d", "'{:>5}'.format(n)", "'{!r}'.format(s)", "'%x' % n", "'%s %s' % s", "'{}'.format(l)")
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
	return pick(g, "{{ ", "{{", "{{- ", "{{+ ") + pick(g, "", "", "", "", "\n") + g.expr(depth) + pick(g, " }}", "}}", " -}}", "\n}}", " }}", " }}")
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
		return g.tag("set %s%s", pick(g, "v", "s"), pick(g, "", " | upper", " | trim | length", "|nosuch")) + g.body(depth-1) + g.tag("endset") + "{{ v }}"
	case 12:
		return g.tag("with %s", pick(g, "", "v = n", "v = 1, q = v", "a=l, b=s")) + g.body(depth-1) + pick(g, "", "{{ v }}") + g.tag("endwith")
	case 13:
		return g.macro(depth)
	case 14:
		return g.tag("filter %s", pick(g, "upper", "trim", "indent(2)", "replace('a','b')", "title", "nosuch", "upper | lower")) + g.body(depth-1) + g.tag("endfilter")
	case 15:
		return g.tag("raw") + pick(g, "{{ x }}", "{% if %}", "{# c #}", "a\n") + g.tag("endraw")
	case 16:
		return g.tag("do %s", pick(g, "l.append(n)", "d.update({'q': 1})", "w.pop()", "l.sort()", "missing.x()", "d.pop('a')", "mix.remove(1)",
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
		over, target = pick(g, "d.items()", "us | groupby('g')", "d | dictsort", "m.items()", "[(1, 2)]", "l"), pick(g, "x, y", "(x, y)", "x, y")
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
	body := g.body(depth-1) + pick(g, "", "{{ a }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}", "{{ b }}", "{% do b.append(1) %}{{ b }}", "", "", "", "", "")
	g.loops = loops
	return g.tag("macro %s(%s)", name, params) + body + g.tag("endmacro") +
		"{{ " + name + "(" + pick(g, "", "1", "1, 2", "a=3", "1, 2, 3", "q=1", "*l", "**d", "1, a=2") + ") }}" +
		pick(g, "", "{{ "+name+"."+pick(g, "name", "arguments", "catch_kwargs", "catch_varargs", "caller", "q")+" }}")
}

func (g *generator) callBlock(depth int) string {
	if g.macros == 0 {
		return g.macro(depth)
	}
	return g.tag("call%s m%d(%s)", pick(g, "", "(v)", "(v, w=2)"), 1+g.IntN(g.macros), pick(g, "", "1", "a=1")) + g.body(depth-1) + g.tag("endcall")
}

// others are statements about other templates.
func (g *generator) others() string {
	if g.macros == 0 && g.loops == 0 && g.IntN(16) == 0 { // inside a function, Jinja2 3.1.2 makes a generator of it by mistake
		return "{% include 'inc' without context %}"
	}
	return pick(g,
		"{% include 'inc' %}", "{% include 'nosuch' ignore missing %}", "{% include ['nosuch', 'inc'] %}",
		"{% include 'nosuch' %}", "{% import 'mac' as mm %}{{ mm.m(1) }}{{ mm.v }}", "{% from 'mac' import m as mk, v %}{{ mk(1, 2, 3, q=4) }}{{ v }}",
		"{% from 'mac' import nosuch %}", "{% from 'mac' import nosuch %}{{ nosuch }}", "{% import 'mac' as mm with context %}{{ mm.nosuch }}",
		"{% from 'mac' import q with context %}{% call q() %}{{ s }}{% endcall %}", "{% include 'bad' %}", "{% import 'nosuch' as q %}",
		"{% block one %}x{{ n }}{% endblock %}", "{% block two scoped %}{{ super() }}{% endblock %}", "{{ self.one() }}")
}

// template writes a whole template.
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

// broken cuts something out of a template, or puts something in.
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
		s = s[:i] + pick(g, "{%", "%}", "{{", "}}", "{#", "(", ")", "]", "'", "|", ".", ",", " if ", " else ", "=", "$", "`", "\\", "\n", "endif", "~", "!", "1", "{% endfor %}", "{% elif x %}", "{% break %}", "{% set %}") + s[i:]
	default:
		s = s[:i] + s[j:] + s[i:j]
	}
	return strings.ToValidUTF8(s, "?")
}
