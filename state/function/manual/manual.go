// Package manual documents the functions that templates and `call` can call, and those of states. The parameters of a
// function are in its code; its purpose is in functions.txt and states.txt. A test compares both.
package manual

import (
	"compress/gzip"
	_ "embed"
	"io"
	"maps"
	"strings"
)

// The program carries the texts compressed, at a third of their size.
//
//go:generate sh -c "gzip -9n < functions.txt > functions.gz"
//go:generate sh -c "gzip -9n < states.txt > states.gz"

//go:embed functions.gz
var functions string

//go:embed states.gz
var states string

// Book has an entry for each function by its full name.
type Book map[string]Entry

// Entry explains one function.
type Entry struct {
	Sentence string
	Example  string // as the text has it
	meanings []map[string]string
}

// Functions explains execution functions.
func Functions() Book { return parse(unpacked(functions)) }

// States explains functions of states.
func States() Book { return parse(unpacked(states)) }

// unpacked decompresses a file that `go generate` made. The file is part of the program, so errors are impossible.
func unpacked(data string) string {
	r, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		return ""
	}
	text, _ := io.ReadAll(r)
	return string(text)
}

// general is the name of the section whose arguments apply to all functions.
const general = "*"

// parse parses sections, functions and their arguments.
func parse(text string) Book {
	book := Book{}
	all, section, own := map[string]string{}, map[string]string{}, map[string]string{}
	module := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch argument, indented := strings.CutPrefix(line, "  "); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			module = strings.Trim(line, "[]")
			section = map[string]string{}
			own = section
			if module == general {
				own = all
			}
		case indented:
			name, meaning, _ := strings.Cut(argument, ": ")
			own[name] = meaning
		default:
			call, sentence, _ := strings.Cut(line, " | ")
			function, example, _ := strings.Cut(call, " ")
			own = map[string]string{}
			book[module+"."+function] = Entry{Sentence: sentence, Example: example,
				meanings: []map[string]string{own, section, all}}
		}
	}
	return book
}

// Meaning returns the explanation of an argument, or "".
func (e Entry) Meaning(argument string) string {
	for _, meanings := range e.meanings {
		if meaning := meanings[argument]; meaning != "" {
			return meaning
		}
	}
	return ""
}

// Own returns the arguments that the entry itself explains.
func (e Entry) Own() []string {
	var names []string
	if len(e.meanings) > 0 {
		for name := range maps.Keys(e.meanings[0]) {
			names = append(names, name)
		}
	}
	return names
}

// Function returns the text about an execution function.
func (b Book) Function(name, signature string, arguments []string) string {
	e := b[name]
	return e.text(name, signature, arguments) + "\n\nCLI Example:\n\n" +
		indent(strings.TrimRight("corpus-agent call "+name+" "+e.Example, " "))
}

// State returns the text about a function of a state.
func (b Book) State(name, signature string, arguments []string) string {
	e := b[name]
	return e.text(name, signature, arguments) + "\n\nExample:\n\n" + indent(e.Declaration(name))
}

// Declaration returns the example of a state function as SLS.
func (e Entry) Declaration(name string) string {
	id, arguments, _ := strings.Cut(e.Example, "; ")
	text := id + ":\n  " + name
	if arguments == "" {
		return text
	}
	return text + ":\n    - " + strings.Join(strings.Split(arguments, "; "), "\n    - ")
}

func (e Entry) text(name, signature string, arguments []string) string {
	var b strings.Builder
	b.WriteString(name + "(" + signature + ")\n\n" + e.Sentence)
	lead := "\n\n"
	for _, argument := range arguments {
		if meaning := e.Meaning(argument); meaning != "" {
			b.WriteString(lead + argument + "\n" + indent(meaning))
			lead = "\n"
		}
	}
	return b.String()
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
