package pkg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// changesMap is changes as states report them: the old and the new version of each package.
func changesMap(changes []host.PackageChange) *value.Map {
	m := value.NewMap()
	for _, c := range changes {
		m.Set(c.Name, value.NewMap("old", c.Old, "new", c.New))
	}
	return m
}

// plannedMap is what Salt's dry run says of packages: the same word for each.
func plannedMap(names []string, word string) *value.Map {
	m := value.NewMap()
	for _, name := range names {
		m.Set(name, value.NewMap("new", word, "old", ""))
	}
	return m
}

// describe says changes in words, with a tense of the caller's: "would be" or "".
func describe(changes []host.PackageChange, tense string) string {
	var came, went, moved []string
	for _, c := range changes {
		switch {
		case c.Old == "":
			came = append(came, c.Name+" "+c.New)
		case c.New == "":
			went = append(went, c.Name)
		case c.Old == c.New:
			came = append(came, c.Name+" "+c.New+" again")
		default:
			moved = append(moved, fmt.Sprintf("%s from %s to %s", c.Name, c.Old, c.New))
		}
	}
	var parts []string
	for _, part := range []struct {
		names []string
		verb  string
	}{{came, "installed"}, {moved, "changed"}, {went, "removed"}} {
		if len(part.names) > 0 {
			parts = append(parts, fmt.Sprintf("%s%s: %s", tense, part.verb, strings.Join(part.names, ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

// perform does a transaction and reads from the database what became of it, also where it failed
// half-way.
func perform(ctx context.Context, h *host.Host, t host.Transaction) ([]host.PackageChange, error) {
	before, err := h.Packages.Installed()
	if err != nil {
		return nil, err
	}
	failure := h.Packages.Do(ctx, t)
	after, err := h.Packages.Installed()
	if err != nil {
		return nil, errors.Join(failure, err)
	}
	return before.Changes(after), failure
}
