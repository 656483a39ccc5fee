package leaks

import (
	"cmp"
	"maps"
	"slices"
)

// keywords finds the words of a set in a text, in one pass and in any case of ASCII letters. It is the automaton of
// Aho and Corasick as a table: each byte of the text costs one look at it. Bytes that are in no word share a column,
// so the table stays in the processor's cache.
type keywords struct {
	column [256]uint8
	next   []uint32 // by state and column; a state is the index of its row
	ends   map[uint32][]keyword
	first  uint32 // the first state in which a word ends; those after it are such states too

	longest int // length of the longest word
}

// keyword is a word that ends in a state.
type keyword struct {
	length int
	rules  []int
}

// newKeywords returns the automaton for words in lower case and the rules of each.
func newKeywords(rules map[string][]int) *keywords {
	words := slices.Sorted(maps.Keys(rules))
	k := &keywords{ends: map[uint32][]keyword{}}
	columns := k.columns(words)
	states := completed(trie(words, k.column, columns))
	order := make([]int, len(states))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(min(1, len(states[a].words)), min(1, len(states[b].words)))
	})
	row := make([]uint32, len(states))
	for at, i := range order {
		row[i] = uint32(at * columns)
	}
	k.first = uint32(len(states) * columns)
	for _, word := range words {
		k.longest = max(k.longest, len(word))
	}
	for _, i := range order {
		for _, to := range states[i].next {
			k.next = append(k.next, row[to])
		}
		for _, word := range states[i].words {
			k.first = min(k.first, row[i])
			k.ends[row[i]] = append(k.ends[row[i]], keyword{len(word), rules[word]})
		}
	}
	return k
}

// columns gives each byte of the words a column, letters one for both cases, and returns the number of columns.
func (k *keywords) columns(words []string) int {
	n := 1
	for _, word := range words {
		for _, b := range []byte(word) {
			if k.column[b] != 0 {
				continue
			}
			k.column[b] = uint8(n)
			if 'a' <= b && b <= 'z' {
				k.column[b-'a'+'A'] = uint8(n)
			}
			n++
		}
	}
	return n
}

// trieState is a beginning of words.
type trieState struct {
	next  []int    // by column; 0 where no word continues
	words []string // the words that end here
}

func trie(words []string, column [256]uint8, columns int) []trieState {
	states := []trieState{{next: make([]int, columns)}}
	for _, word := range words {
		at := 0
		for _, b := range []byte(word) {
			to := &states[at].next[column[b]]
			if *to == 0 {
				*to = len(states)
				states = append(states, trieState{next: make([]int, columns)})
			}
			at = states[at].next[column[b]]
		}
		states[at].words = append(states[at].words, word)
	}
	return states
}

// completed adds to each state of a trie the transitions and words of its longest proper suffix that is a state too.
func completed(states []trieState) []trieState {
	suffix := make([]int, len(states))
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for column, to := range states[at].next {
			through := 0
			if at != 0 {
				through = states[suffix[at]].next[column]
			}
			if to == 0 {
				states[at].next[column] = through
				continue
			}
			suffix[to] = through
			states[to].words = append(states[to].words, states[through].words...)
			queue = append(queue, to)
		}
	}
	return states
}

// streams is the number of parts of a text that are walked at the same time. Each step of one depends on the step
// before it, so one alone would leave the processor waiting.
const streams = 4

// end is the end of words in a text, and the state there.
type end struct {
	at    int
	state uint32
}

// walk calls visit for each occurrence of a word, in the order of their ends. The occurrence is text[from:to].
func (k *keywords) walk(text []byte, visit func(from, to int, rules []int)) {
	for _, e := range k.found(text) {
		for _, word := range k.ends[e.state] {
			visit(e.at-word.length, e.at, word.rules)
		}
	}
}

// found returns the ends of words in a text, in order.
func (k *keywords) found(text []byte) []end {
	length := len(text) / streams
	if length < k.longest {
		return k.rest(nil, text, 0, 0)
	}
	var states [streams]uint32
	for i := 1; i < streams; i++ {
		states[i] = k.after(text[i*length-k.longest : i*length])
	}
	var ends [streams][]end
	a, b, c, d := states[0], states[1], states[2], states[3]
	as, bs, cs, ds := text[:length], text[length:2*length], text[2*length:3*length], text[3*length:4*length]
	next, column, first := k.next, &k.column, k.first
	for i := range as {
		a = next[a+uint32(column[as[i]])]
		b = next[b+uint32(column[bs[i]])]
		c = next[c+uint32(column[cs[i]])]
		d = next[d+uint32(column[ds[i]])]
		if max(a, b, c, d) < first {
			continue
		}
		for j, state := range [streams]uint32{a, b, c, d} {
			if state >= first {
				ends[j] = append(ends[j], end{j*length + i + 1, state})
			}
		}
	}
	return k.rest(slices.Concat(ends[:]...), text, streams*length, d)
}

// after returns the state after a text.
func (k *keywords) after(text []byte) uint32 {
	state := uint32(0)
	for _, b := range text {
		state = k.next[state+uint32(k.column[b])]
	}
	return state
}

// rest adds the ends of words in a text from a position on, before which is a state.
func (k *keywords) rest(ends []end, text []byte, from int, state uint32) []end {
	for i := from; i < len(text); i++ {
		if state = k.next[state+uint32(k.column[text[i]])]; state >= k.first {
			ends = append(ends, end{i + 1, state})
		}
	}
	return ends
}
