// Package leaks finds secrets in the files of a source tree, so that none is published by accident. It recognises
// files by their names, with rules of this package, and by their content, with the rules of gitleaks, which are
// updated with that module.
package leaks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"sync"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// Finding is a place that looks like a secret. It does not contain the secret.
type Finding struct {
	Rule string // such as "private-key", or "name"
	Line int    // 0 for a finding about the file as a whole, or in a file that is not text
}

// String describes the finding in a sentence for a message about the file.
func (f Finding) String() string {
	switch f.Rule {
	case nameRule:
		return "its name is that of a secret"
	case privateKey:
		return "it contains a private key (rule private-key)"
	}
	return "it contains what looks like a secret (rule " + f.Rule + ")"
}

// Scanner finds secrets. It is safe for concurrent use.
type Scanner struct{ rules *contents }

// New returns a Scanner, or an error if its rules cannot be read.
func New() (*Scanner, error) {
	rules, err := rulesOnce()
	return &Scanner{rules: rules}, err
}

// File scans the content of a file, which has a slash-separated name in its tree. If one rule matches several places,
// the first is returned. It returns the context's error once the context is done.
func (s *Scanner) File(ctx context.Context, f io.Reader, name string) ([]Finding, error) {
	found, public, err := s.rules.scan(artifact.Stoppable(ctx, f), name)
	if err != nil || len(found) > 0 || !secretName(name) || public && keyName(name) {
		return found, err
	}
	return []Finding{{Rule: nameRule}}, nil
}

// A file is read in overlapping pieces, so that a match across the end of a piece is found.
const (
	piece   = 8 << 20
	overlap = 256 << 10
)

// scan reads a file. public reports that the file begins with keys or certificates, none of which is private.
func (c *contents) scan(r io.Reader, name string) (found []Finding, public bool, err error) {
	head := heads.Get().(*bufio.Reader)
	defer heads.Put(head)
	defer head.Reset(nil)
	head.Reset(r)
	r, binary := readable(head)
	b := pieces.Get().(*[]byte)
	defer pieces.Put(b)
	rest := (*b)[:0]
	seen := map[string]bool{}
	for line, first := 1, true; ; first = false {
		text, last, err := readPiece(r, rest)
		if *b = text; err != nil || len(text) == len(rest) {
			return found, public, err
		}
		if first {
			public = publicMark().Match(text) && !privateMark().Match(text)
		}
		for _, m := range c.all(name, text, first) {
			if seen[m.rule] || binary && m.rule == privateKey && !keyInBinary().Match(text[m.at:]) {
				continue
			}
			seen[m.rule] = true
			at := Finding{Rule: m.rule}
			if !binary {
				at.Line = line + bytes.Count(text[:m.at], []byte{'\n'})
			}
			found = append(found, at)
		}
		if last {
			return found, public, nil
		}
		from := max(0, len(text)-overlap)
		line += bytes.Count(text[:from], []byte{'\n'})
		rest = append(text[:0], text[from:]...)
	}
}

// pieces has the memory in which files are read. Most files of a tree are small, and growing memory for each costs more
// than scanning them.
var pieces = sync.Pool{New: func() any {
	b := make([]byte, 0, 64<<10)
	return &b
}}

// readPiece appends the next piece of a file to data. last reports that the file ends with it.
func readPiece(r io.Reader, data []byte) (_ []byte, last bool, err error) {
	for end := len(data) + piece; len(data) < end; {
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
		n, err := r.Read(data[len(data):min(cap(data), end)])
		if data = data[:len(data)+n]; err != nil {
			if errors.Is(err, io.EOF) {
				return data, true, nil
			}
			return data, false, err
		}
	}
	return data, false, nil
}

var (
	publicMark  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----`) })
	privateMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)PRIVATE KEY`) })
	// startsPrivate matches a file that begins with a private key, even if the end of the key is missing.
	startsPrivate = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^\s*(?:-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----|` +
				`PuTTY-User-Key-File-[0-9])`)
	})
)

// all returns the matches of all rules.
func (c *contents) all(name string, text []byte, first bool) []match {
	found := c.in(name, text)
	if first && startsPrivate().Match(text) {
		found = append([]match{{rule: privateKey}}, found...)
	}
	return found
}
