package leaks

import "math"

// run is a number of bytes in a row, all of a set.
type run struct {
	length int
	set    [256]bool
}

// sequence is runs, one directly after the other.
type sequence []run

// with adds a run.
func (s sequence) with(r run) sequence {
	if last := len(s) - 1; last >= 0 && s[last].set == r.set {
		s[last].length += r.length
		return s
	}
	return append(s, r)
}

// length returns the number of bytes.
func (s sequence) length() int {
	n := 0
	for i := range s {
		n += s[i].length
	}
	return n
}

// bits returns how rare the sequence is among random bytes: the negative logarithm of its share.
func (s sequence) bits() float64 {
	sum := 0.0
	for i := range s {
		n := 0
		for _, has := range s[i].set {
			if has {
				n++
			}
		}
		sum += float64(s[i].length) * math.Log2(float64(len(s[i].set))/float64(max(1, n)))
	}
	return sum
}

// in reports whether a text has the sequence.
func (s sequence) in(text []byte) bool {
	length := s.length()
	for from := 0; from+length <= len(text); {
		next, ok := s.at(text, from, from+length)
		if ok {
			return true
		}
		from = next
	}
	return false
}

// at reports whether text[from:to] is the sequence. If not, next is the next place where it can begin.
func (s sequence) at(text []byte, from, to int) (next int, ok bool) {
	at := to - 1 // backwards: a byte rules out all places where a run without it would have it
	for i := len(s) - 1; i >= 0; i-- {
		set := &s[i].set
		start := to - s[i].length
		for ; at >= start; at-- {
			if !set[text[at]] {
				return s[:i].beyond(text[at], at, start-from), false
			}
		}
		to = start
	}
	return 0, true
}

// beyond returns the first place after at-length where the sequence can begin if a byte that is in none of the runs
// after these is at a position. length is that of these runs.
func (s sequence) beyond(b byte, at, length int) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].set[b] {
			return at - length + 1
		}
		length -= s[i].length
	}
	return at + 1
}
