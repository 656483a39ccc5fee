package cmd_test

import (
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// riddles are words that hide who acts or what happens. Comments and messages name the subject instead: the user, the
// caller, the host, the agent, the store; and they use the field's words: correct, similar, result.
var riddles = regexp.MustCompile(`(?i)\b(whoever|anew|somebody|nobody|anybody|everybody|told|wayward|deed|leaving|` +
	`kin|fare[sd]?|mend(s|ed|ing)?|riddles?|strangers?|takes root|put right|hand to hand|has no say|of its business|` +
	`afoot|hence|thence|lest|cut short|ways? back|goes on with|power cuts?|thief|thieves|` +
	`lies (below|in|behind|outside|above|beside)|stands in the place|(is|are) not there)\b`)

// riddlesAllowed are the places where such a word is correct, with the reason.
var riddlesAllowed = map[string]string{
	"state/host/shell.go nobody":      "the user nobody",
	"artifact/cloud/access.go nobody": "the user nobody",
}

// TestTextsNameWhoActs checks that comments and string literals of code other than tests do not contain these words.
func TestTextsNameWhoActs(t *testing.T) {
	used := map[string]bool{}
	for _, name := range goFiles(t) {
		if strings.Contains(name, "test") {
			continue
		}
		for _, text := range texts(t, filepath.Join("..", name)) {
			for _, word := range riddles.FindAllString(text.literal, -1) {
				place := name + " " + strings.ToLower(word)
				if used[place] = true; riddlesAllowed[place] == "" {
					t.Errorf("%s: %q hides who acts: name the user, the caller, the host or the store",
						text.position, word)
				}
			}
		}
	}
	for place := range riddlesAllowed {
		if !used[place] {
			t.Errorf("%s is an exception that is not needed", place)
		}
	}
}

// TestDocsNameWhoActs checks the same for the documents, outside of code and of comments about it.
func TestDocsNameWhoActs(t *testing.T) {
	code := regexp.MustCompile("`[^`\n]*`|(?s:<!--.*?-->)|(?m:^ {4}.*$)")
	names, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../CHANGELOG.md") {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(code.ReplaceAllString(string(content), ""), "\n") {
			for _, word := range riddles.FindAllString(line, -1) {
				t.Errorf("%s, line %d of its prose: %q hides who acts: name the user, the caller, the host or the store",
					name, i+1, word)
			}
		}
	}
}

type text struct {
	position token.Position
	literal  string
}

// texts returns the comments and the string literals of a Go file.
func texts(t *testing.T, path string) (all []text) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	if _, err := parser.ParseFile(set, path, source, parser.PackageClauseOnly); err != nil {
		t.Fatal(err)
	}
	file := set.AddFile(path, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	for {
		pos, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return all
		case token.COMMENT, token.STRING:
			all = append(all, text{set.Position(pos), literal})
		}
	}
}
