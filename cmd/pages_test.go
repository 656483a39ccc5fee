package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page reads a file of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pages returns the Markdown files for people, by their paths in the repository.
func pages(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md", ".github/*.md"} {
		found, err := filepath.Glob("../" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		for _, file := range found {
			names = append(names, filepath.ToSlash(strings.TrimPrefix(file, "../")))
		}
	}
	return names
}

var (
	pageLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\pL\pN _-]`)
)

// anchors returns the fragments with which links name the headings of a page.
func anchors(text string) (names []string) {
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		plain := pageLink.ReplaceAllString(strings.ReplaceAll(h[1], "[", ""), "")
		names = append(names, strings.ReplaceAll(strings.ToLower(notInSlug.ReplaceAllString(plain, "")), " ", "-"))
	}
	return names
}

// TestDocsLinksLeadToPagesAndHeadings follows each link between pages of this repository.
func TestDocsLinksLeadToPagesAndHeadings(t *testing.T) {
	for _, name := range pages(t) {
		for _, link := range pageLink.FindAllStringSubmatch(page(t, name), -1) {
			path, fragment, _ := strings.Cut(link[1], "#")
			if strings.Contains(path, ":") {
				continue
			}
			target := name
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, link[1])
			} else if fragment != "" && !slices.Contains(anchors(page(t, target)), fragment) {
				t.Errorf("%s links to %s, but that page has no such heading", name, link[1])
			}
		}
	}
}

// TestDocsIndexNamesEachPage checks that README.md or docs/README.md links to each page of docs, README.md to
// docs/README.md, and the list of decisions to each decision.
func TestDocsIndexNamesEachPage(t *testing.T) {
	readme, decisions := page(t, "README.md"), page(t, "docs/decisions/README.md")
	documents := readme + strings.ReplaceAll(page(t, "docs/README.md"), "](", "](docs/")
	for _, name := range pages(t) {
		index, path := documents, name
		if name == "docs/README.md" {
			index = readme
		}
		if filepath.Dir(name) == "docs/decisions" && filepath.Base(name) != "README.md" {
			index, path = decisions, filepath.Base(name)
		}
		appendix := name == "docs/states-applications.md" // docs/states.md links to it
		if strings.HasPrefix(name, "docs/") && !appendix && !strings.Contains(index, "]("+path+")") {
			t.Errorf("no index links to %s", name)
		}
	}
}

// TestDocsDecisionsHaveOneForm checks that each decision has its four parts and at most 40 lines.
func TestDocsDecisionsHaveOneForm(t *testing.T) {
	want := []string{"context", "decision", "consequences", "what-would-make-us-change-it"}
	for _, name := range pages(t) {
		if filepath.Dir(name) != "docs/decisions" || filepath.Base(name) == "README.md" {
			continue
		}
		text := page(t, name)
		if got := anchors(text)[1:]; !slices.Equal(got, want) {
			t.Errorf("%s has the parts %v, want %v", name, got, want)
		}
		if lines := strings.Count(text, "\n"); lines > 40 {
			t.Errorf("%s has %d lines, want at most 40", name, lines)
		}
	}
}

// TestDocsGlossaryHasEachWordOnce checks that docs/glossary.md has one meaning for a word, and that the words of a
// table are in order.
func TestDocsGlossaryHasEachWordOnce(t *testing.T) {
	seen, before := map[string]bool{}, ""
	for line := range strings.Lines(page(t, "docs/glossary.md")) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 {
			before = ""
			continue
		}
		for word := range strings.SplitSeq(strings.TrimSpace(cells[1]), ", ") {
			if seen[word] && word != "word" {
				t.Errorf("docs/glossary.md has %q twice", word)
			}
			seen[word] = true
		}
		if word := strings.ToLower(cells[1]); word != " word " {
			if word < before {
				t.Errorf("docs/glossary.md has %q after %q", word, before)
			}
			before = word
		}
	}
	if len(seen) < 80 {
		t.Errorf("docs/glossary.md has %d words", len(seen))
	}
}

// TestDocsChangelogHasOneForm checks that the headings of CHANGELOG.md can be read by tools, newest first.
func TestDocsChangelogHasOneForm(t *testing.T) {
	version := regexp.MustCompile(`^## \d+\.\d+\.\d+(-[0-9a-z.]+)? - (\d{4}-\d{2}-\d{2})$`)
	last, headings := "9999", 0
	for line := range strings.Lines(page(t, "CHANGELOG.md")) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "## ") {
			continue
		}
		headings++
		match := version.FindStringSubmatch(line)
		switch {
		case headings == 1 && line == "## Unreleased":
		case match == nil:
			t.Errorf("CHANGELOG.md: %q is neither ## Unreleased at the top nor ## VERSION - YYYY-MM-DD", line)
		case match[2] > last:
			t.Errorf("CHANGELOG.md: %q comes after %s; newer versions come first", line, last)
		default:
			last = match[2]
		}
	}
	if headings == 0 {
		t.Error("CHANGELOG.md has no versions")
	}
}
