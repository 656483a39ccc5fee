package function

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

//go:embed elsewhere.txt
var elsewhere string

//go:embed acting.txt
var acting string

// ErrNotHere is wrapped by the error of a function that lacks its program on this host.
var ErrNotHere = errors.New("on this host")

// Unknown returns an error that says why a function does not exist. Its hint names an alternative.
func (t Table) Unknown(name string) error {
	if f := t[name]; f != nil {
		if why := f.absent(); why != nil {
			return diag.Function.Hint(fmt.Errorf("there is no function %s %w: __virtual__ is False, since %w", name,
				ErrNotHere, why), "%s", diag.HintOf(why))
		}
	}
	module, _, _ := strings.Cut(name, ".")
	err := fmt.Errorf("there is no function %s", name)
	hint := diag.DidYouMean(name, t.Names())
	if other := t.reordered(name); other != "" {
		hint = fmt.Sprintf("did you mean %q?", other)
	}
	reason, instead := reasonFor(module)
	switch {
	case Acts(name) && !t.acts():
		return diag.Function.Hint(fmt.Errorf("%s: it changes the host, and templates only read", name),
			"use a state for it, or call it in a module.run state")
	case reason != "":
		return diag.Function.Hint(fmt.Errorf("%s: %s", name, reason), "%s", instead)
	case hint == "" && t.hasModule(module):
		hint = "`corpus-agent call sys.list_functions " + module + "` lists its functions"
	case hint == "":
		hint = "if it is a module of your own, converge this host with `engine: salt-call`"
	}
	return diag.Function.Hint(err, "%s", hint)
}

// reordered returns the function of the same module whose name has the same words in another order, such as
// file.file_exists for file.exists_file, or "".
func (t Table) reordered(name string) string {
	wanted := sortedWords(name)
	for _, known := range t.Names() {
		if known != name && slices.Equal(sortedWords(known), wanted) {
			return known
		}
	}
	return ""
}

// sortedWords returns a function's module and the words of its name in alphabetical order.
func sortedWords(name string) []string {
	module, function, _ := strings.Cut(name, ".")
	words := strings.Split(function, "_")
	slices.Sort(words)
	return append(words, module)
}

func (t Table) hasModule(module string) bool {
	for name := range t {
		if strings.HasPrefix(name, module+".") {
			return true
		}
	}
	return false
}

// acts reports whether the table has functions that change the host.
func (t Table) acts() bool {
	for name := range t {
		if Acts(name) {
			return true
		}
	}
	return false
}

// Acts reports whether a function of Salt changes something and so must not be called by templates.
func Acts(name string) bool {
	module, function, _ := strings.Cut(name, ".")
	for line := range strings.Lines(acting) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == module && slices.Contains(words[1:], function) {
			return true
		}
	}
	return false
}

// reasonFor returns why a module of Salt is not supported, and the alternative; "" for any other module.
func reasonFor(module string) (reason, instead string) {
	for line := range strings.Lines(elsewhere) {
		if heading, ok := strings.CutPrefix(line, ":"); ok {
			reason, instead, _ = strings.Cut(strings.TrimSpace(heading), "|")
			continue
		}
		if !strings.HasPrefix(line, "#") && slices.Contains(strings.Fields(line), module) {
			return reason, instead
		}
	}
	return "", ""
}
