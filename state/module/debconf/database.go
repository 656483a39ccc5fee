package debconf

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// database is what debconf knows: its files are stanzas of "Field: value" lines. Questions have an
// answer or take their template's default; what a template asks for is its type.
type database struct {
	answers   map[string]stanza
	templates map[string]stanza
}

type stanza map[string]string

// parse reads stanzas by name. Lines that start with a blank go on with a long text, which nobody here
// reads.
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

// read reads the database, passwords too. A host on which nothing was asked yet has none.
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

// has tells whether a question of a package has an answer.
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
