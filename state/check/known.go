package check

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// list has a line for each state function with its arguments; * stands for arguments of any name. The line that begins
// with "general" has the arguments of all states, which the run handles.
//
//go:embed functions.txt
var list string

var functions = sync.OnceValue(func() map[string][]string {
	known := map[string][]string{}
	for line := range strings.Lines(list) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "general" {
			known[words[0]] = words[1:]
		}
	}
	return known
})

var generalNames = sync.OnceValue(func() []string {
	for line := range strings.Lines(list) {
		if rest, is := strings.CutPrefix(line, "general "); is {
			return strings.Fields(rest)
		}
	}
	return nil
})

func general(name string) bool {
	return slices.Contains(generalNames(), name) || strings.HasPrefix(name, "__")
}
