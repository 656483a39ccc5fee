package debconf

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// database is the database of debconf, whose files have stanzas of "Field: value" lines. A question has an
// answer, or the default of its template, which also has its type.
type database struct {
	answers   map[string]stanza
	templates map[string]stanza
}

type stanza map[string]string

// parse returns the stanzas by name. It ignores the continuation lines of long texts.
func parse(text string) map[string]stanza {
	all := map[string]stanza{}
	for block := range strings.SplitSeq(text, "\n\n") {
		s := stanza{}
		for l := range strings.Lines(block) {
			field, v, ok := strings.Cut(strings.TrimRight(l, "\n"), ":")
			if ok && !strings.HasPrefix(l, " ") {
				s[field] = strings.TrimPrefix(v, " ")
			}
		}
		if s["Name"] != "" {
			all[s["Name"]] = s
		}
	}
	return all
}

// read reads the database, including passwords. The files may not exist.
func read(h *host.Host) (db database, err error) {
	db.answers = map[string]stanza{}
	for _, file := range []string{"config.dat", "passwords.dat", "templates.dat"} {
		part, err := host.Parsed(h, "/var/cache/debconf/"+file, parse)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return db, err
		}
		if file == "templates.dat" {
			db.templates = part
			continue
		}
		maps.Copy(db.answers, part)
	}
	return db, nil
}

// has reports whether a question of a package already has the answer.
func (db database) has(q question) bool {
	s, ok := db.answers[q.name]
	if !ok || !slices.Contains(strings.Split(s["Owners"], ", "), q.owner) {
		return false
	}
	template := db.templates[s["Template"]]
	answer, given := s["Value"]
	if !given {
		answer = template["Default"]
	}
	return template["Type"] == q.kind && answer == q.answer
}
