package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The options of GNU patch that a state may set. The others choose the input, the output, its directory or direction,
// or a form of patch that runs an editor.
const (
	patchLetters = "lucntfsE" // without a value
	patchValues  = "pFD"      // with one
)

// patchWords returns the long names of these options, and the letter of those with a value.
func patchWords() map[string]byte {
	return map[string]byte{
		"ignore-whitespace": 0, "unified": 0, "context": 0, "normal": 0, "batch": 0, "force": 0, "silent": 0, "quiet": 0,
		"remove-empty-files": 0, "binary": 0, "posix": 0, "verbose": 0, "strip": 'p', "fuzz": 'F', "ifdef": 'D',
	}
}

// patchOptions parses the options argument of file.patch. It returns them without -p (--strip), whose number
// splitPatch needs, and an error for an option that a state may not set, such as an abbreviated long option. given
// overrides the number.
func patchOptions(text string, given *int) (options []string, strip int, err error) {
	words := strings.Fields(text)
	for len(words) > 0 {
		word := words[0]
		letter, number, left, ok := nextPatchOption(words)
		if !ok {
			return nil, 0, diag.Argument.Hint(fmt.Errorf("the option %s is not allowed", word),
				"leave it out; the state decides what is read and written")
		}
		if letter != 'p' {
			options = append(options, words[:len(words)-len(left)]...)
		} else if strip, err = strconv.Atoi(number); err != nil {
			return nil, 0, diag.Argument.Hint(fmt.Errorf("the option %s is not a number", word), "write strip: NUMBER")
		}
		words = left
	}
	if given != nil {
		strip = *given
	}
	return options, strip, nil
}

// nextPatchOption returns the letter and the value of the first option, if it has a value, and the words after it. ok
// is false if a state may not set the option.
func nextPatchOption(words []string) (letter byte, v string, left []string, ok bool) {
	word, left := words[0], words[1:]
	if long, is := strings.CutPrefix(word, "--"); is {
		name, v, given := strings.Cut(long, "=")
		letter, ok := patchWords()[name]
		if letter != 0 && !given {
			v, left = first(left)
			given = v != ""
		}
		return letter, v, left, ok && given == (letter != 0)
	}
	if len(word) < 2 || word[0] != '-' {
		return 0, "", left, false
	}
	if strings.IndexByte(patchValues, word[1]) < 0 {
		return 0, "", left, !slices.ContainsFunc([]byte(word[1:]), func(c byte) bool {
			return strings.IndexByte(patchLetters, c) < 0
		})
	}
	if v = word[2:]; v == "" {
		v, left = first(left)
	}
	return word[1], v, left, v != ""
}

// first returns the first word and the others.
func first(words []string) (string, []string) {
	if len(words) == 0 {
		return "", nil
	}
	return words[0], words[1:]
}
