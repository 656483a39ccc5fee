package yaml_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

type dumpCase struct {
	Value []any `json:"value"`
	Flow  *bool `json:"flow"`
	Sort  bool  `json:"sort"`
	ASCII bool  `json:"ascii"`
}

func (c dumpCase) options() yaml.DumpOptions {
	o := yaml.DumpOptions{ASCII: c.ASCII}
	if c.Sort {
		o.Sort = yaml.SortAll
	}
	switch {
	case c.Flow == nil:
	case *c.Flow:
		o.Collections = yaml.Flow
	default:
		o.Collections = yaml.Block
	}
	return o
}

func TestDumpMatchesPyYAML(t *testing.T) {
	needPyYAML(t)
	seed, count := uint64(1), 2000
	if s := os.Getenv("YAML_DIFFERENTIAL"); s != "" { // seed,count for a longer run by hand
		if err := json.Unmarshal([]byte("["+s+"]"), &[]any{&seed, &count}); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	yes, no := true, false
	values, cases := make([]any, count), make([]dumpCase, count)
	for i := range cases {
		shared := []any{}
		values[i] = randomValue(r, 3, &shared)
		seen := map[any]int{}
		cases[i] = dumpCase{
			Value: typedShared(values[i], seen), Flow: []*bool{nil, &yes, &no}[r.IntN(3)],
			Sort: r.IntN(2) == 0, ASCII: r.IntN(4) == 0,
		}
	}
	var want []string
	runPyYAML(t, "dump_oracle.py", cases, &want)
	for i, c := range cases {
		if got := yaml.Dump(values[i], c.options()); got != want[i] {
			t.Errorf("%v %+v:\n got %q\nwant %q", value.Repr(values[i]), c.options(), got, want[i])
		}
	}
}

// typedShared returns the result of typed, with ["ref", n] for a list or mapping that occurred before.
func typedShared(v any, seen map[any]int) []any {
	switch v := v.(type) {
	case *value.List:
		if n, ok := seen[v]; ok {
			return []any{"ref", n}
		}
		seen[v] = len(seen)
		items := []any{}
		for _, item := range v.Items {
			items = append(items, typedShared(item, seen))
		}
		return []any{"list", items}
	case *value.Map:
		if n, ok := seen[v]; ok {
			return []any{"ref", n}
		}
		seen[v] = len(seen)
		pairs := []any{}
		for k, item := range v.All() {
			pairs = append(pairs, []any{typed(k), typedShared(item, seen)})
		}
		return []any{"map", pairs}
	}
	return typed(v)
}

var words = strings.Split(
	"a|key|x y|yes|No|null|~|1|-5|0644|1.5|1e3|22:22|2001-12-14|it's|a: b|a:b|a #b|#a|- a|-a|?|? x|[x]|{x|x,y|"+
		"é|\u2028|\x07|\ttab|trailing |  leading|line\nbreak|line\n\nbreaks|end\n|\nstart|space \nbreak|break\n"+
		" space|a\"b|a\\b|"+
		"'q'|\"q\"|<<|=|@x|`x|%x|!x|&x|*x|x]|x}|---|...|--- x||long words that continue and on until the line is full and "+
		"must be folded somewhere near here "+
		"but not exactly where one may think it would "+
		"be|averyveryveryveryveryveryveryveryveryveryveryverylongwordthatcannotbefoldedanywhereatallreally and more|"+
		"double  spaces  in  a  text  that  is  long  enough  to  be  folded  if  it  had  single  spaces  only  somewhere|"+
		"\U0001f600|tab\there|\u00a0|\u0085x|\ufeffbom|None|.inf|0x1f|0b1|1_000|:x|x:|::|key: |a\rb", "|")

func randomValue(r *rand.Rand, depth int, shared *[]any) any {
	if depth == 0 || r.IntN(3) == 0 {
		return randomLeaf(r)
	}
	if len(*shared) > 0 && r.IntN(8) == 0 {
		return (*shared)[r.IntN(len(*shared))]
	}
	if r.IntN(2) == 0 {
		l := value.NewList()
		for range r.IntN(6) {
			l.Append(randomValue(r, depth-1, shared))
		}
		*shared = append(*shared, l)
		return l
	}
	m := value.NewMap()
	for range r.IntN(6) {
		key := randomLeaf(r)
		if f, ok := key.(float64); ok && f != f {
			continue
		}
		_ = m.SetKey(key, randomValue(r, depth-1, shared))
	}
	*shared = append(*shared, m)
	return m
}

func randomLeaf(r *rand.Rand) any {
	switch r.IntN(12) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return r.IntN(2000) - 1000
	case 3:
		return []float64{0, 1.5, -2.25, 1e20, 1e-7, 123456789.125}[r.IntN(6)]
	case 4:
		return words[r.IntN(len(words))] + " " + words[r.IntN(len(words))]
	}
	return words[r.IntN(len(words))]
}
