package diag

import (
	"fmt"
	"strings"
)

// DidYouMean returns `did you mean "x"?` for the known word nearest to the given one, or "" if none is similar enough.
func DidYouMean(word string, known []string) string {
	if best := Nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return ""
}

// Nearest returns the known word nearest to a given one, or "" if none is similar enough or the word is known itself.
// Of two at the same distance, it prefers one that begins with the given word, such as its plural, and then one of the
// same length, since letters are swapped more often than lost. If two letters or more differ, it prefers one that only
// lacks letters, and excludes one of which half differs.
func Nearest(word string, known []string) string {
	best, bestDistance := "", min(2+len(word)/4, 4, len(word))
	for _, k := range known {
		d := distance(word, k, bestDistance)
		if d > 1 && 2*d >= max(len(word), len(k)) {
			continue
		}
		if d < bestDistance || d == bestDistance && best != "" && likeness(word, k, d) > likeness(word, best, d) {
			best, bestDistance = k, d
		}
	}
	if best == word {
		return ""
	}
	return best
}

// likeness ranks a known word among those at the same distance from a given word.
func likeness(word, known string, distance int) int {
	switch {
	case strings.HasPrefix(known, word), distance > 1 && len(known) == len(word)+distance && shortens(word, known):
		return 2
	case len(known) == len(word):
		return 1
	}
	return 0
}

// shortens reports whether a word is another word without some of its letters.
func shortens(word, known string) bool {
	for i := range len(word) {
		at := strings.IndexByte(known, word[i])
		if at < 0 {
			return false
		}
		known = known[at+1:]
	}
	return true
}

// Misspelling returns the known word that a word misspells: by one letter, or by two if the word has at least six
// letters. It is stricter than DidYouMean, for words that may be correct; "" means that there is none.
func Misspelling(word string, known []string) string {
	best, bestDistance := "", 2+len(word)/6
	if bestDistance > 3 {
		bestDistance = 3
	}
	for _, k := range known {
		if k == word {
			return ""
		}
		if d := distance(word, k, bestDistance); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance returns the number of letters to insert, delete, replace or swap with their neighbour that turns a into b
// (optimal string alignment); it stops counting at limit.
func distance(a, b string, limit int) int {
	ra, rb := []rune(a), []rune(b)
	if diff := len(ra) - len(rb); diff >= limit || -diff >= limit {
		return limit
	}
	before, previous, current := make([]int, len(rb)+1), make([]int, len(rb)+1), make([]int, len(rb)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		current[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(rb)]
}
