package jinja_test

import "strings"

func words(text string) []string { return strings.Fields(text) }

var (
	names    = words("s e u n z g f t no l w d h m us el ed ln num mix s n l d us w")
	literals = words(`1 0 -1 3 10 2.5 0.5 1e3 'a' 'b' "x" '' 'He' 'l' true false none True None [] {} () [1,2] (1,2) (1,)
		{'a':1} {'k':[1]} 'a\nb' '%s' '%d-%s' '{}' '{0}' '{a}' ['b','a'] [[1,2],[3,4]] 'ñ' 'one' range(3) range(1,6,2) dict(a=1) 1_000 0x1f`)
	binary  = words(`+ - * / // % == != < <= > >= and or ~ in + ~ == and`)
	filters = words(
		`abs attr('a') batch(2) batch(2,'x') capitalize center(9) count d('q') d('q',true) default('q') default dictsort
		dictsort(true) dictsort(by='value') dictsort(false,'value',true) e escape filesizeformat filesizeformat(true) first float float(1.5)
		forceescape format(1) format(a=1) groupby('g') groupby('n') groupby(0) indent indent(2) indent(2,true) indent('>') indent(width=1,blank=true)
		int int(3) int(0,16) items join join(',') join('-','n') last length list lower map('upper') map(attribute='n') map('length')
		map(attribute='q',default=0) max min max(attribute='a') min(attribute='n') pprint reject reject('odd') rejectattr('g') rejectattr('g','eq',1)
		replace('l','L') replace('l','L',1) replace('','-') reverse round round(1) round(1,'floor') round(method='ceil') round(-1) safe select
		select('string') selectattr('g') selectattr('a','gt',25) slice(2) slice(2,'x') sort sort(true) sort(attribute='n') sort(true,true)
		sort(attribute='g,n') sort(case_sensitive=true) string striptags sum sum(attribute='a') sum(start=1) title tojson tojson(2) trim trim('H')
		truncate(5) truncate(5,true) truncate(8,false,'..',0) unique unique(true) unique(attribute='g') upper urlencode urlize wordcount wordwrap(5)
		wordwrap(5,false) wordwrap(5,wrapstring='|') xmlattr list first upper length join(',') nosuch map('nosuch') map select(1) first(1) join(1,2,3,4)`)
	tests = words(
		`boolean callable defined divisibleby(2) even odd eq(1) equalto(1) false true filter float ge(1) gt(1) in([1,2])
		integer iterable le(1) lower lt(1) mapping ne(1) none number sameas(none) sequence string undefined upper test defined none nosuch
		divisibleby(0) greaterthan(0) lessthan('a')`)
	methods = words(
		`upper() lower() strip() strip('H') lstrip('h') rstrip() split() split(',') split('l',1) rsplit('l',1) splitlines() splitlines(true)
		replace('l','_') replace('l','_',1) startswith('H') endswith(('d','x')) find('o') rfind('o') index('o') index('q') count('l') title() capitalize()
		swapcase() center(9,'*') ljust(9) rjust(9,'.') zfill(4) isdigit() isalpha() isalnum() isspace() isupper() islower() istitle() join(['a','b'])
		join([1]) format(1,2) format(a=1) partition('l') rpartition('o') expandtabs() encode() casefold() removeprefix('He') removesuffix('d')
		items() keys() values() get('a') get('q') get('q',1) get('a','b','c') copy() pop('a') pop('q') pop('q',1) setdefault('q',2) update({'q':1})
		append(1) extend([1]) insert(0,9) remove(1) sort() reverse() clear() pop() pop(0) index(1) count(1) bit_length() is_integer() hex() translate({})
		nosuch() nosuch isidentifier() isdecimal() __class__ items items()|list fromkeys([1]) popitem()`)
	attributes = words(
		`.a .b .items .x .q .n .x.y.z .0 ['a'] ['q'] [0] [-1] [5] [1:] [:2] [::-1] [1:2] [-2:] [none] ['x']['y'] [n] [s] ` +
			`[0].n [0]['g'] [1.0] [true] [::0]`)
	loopVars = words(
		`index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle('a','b') cycle() changed(1) nosuch previtem|default('-')
		nextitem is defined index index0 first last cycle('x','y','z')`)
)

// typed has expressions by the types of their results. $s stands for a string, $i for a number, $l for a list, $d for a
// mapping, $b for a boolean and $x for any value.
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
