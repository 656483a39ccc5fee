package pkg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// changesMap returns changes in the form of Salt's reports: the old and the new version of each package.
func changesMap(changes []host.PackageChange) *value.Map {
	m := value.NewMap()
	for _, c := range changes {
		m.Set(c.Name, value.NewMap("old", c.Old, "new", c.New))
	}
	return m
}

// plannedMap returns the changes of Salt's dry run, which have the same word for every package.
func plannedMap(names []string, word string) *value.Map {
	m := value.NewMap()
	for _, name := range names {
		m.Set(name, value.NewMap("new", word, "old", ""))
	}
	return m
}

// describe describes changes in a sentence; tense is "would be " or "".
func describe(changes []host.PackageChange, tense string) string {
	came, went, moved := sorted(changes)
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

// sorted returns the packages that were installed, removed and changed, with their versions.
func sorted(changes []host.PackageChange) (came, went, moved []string) {
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
	return came, went, moved
}

// perform runs a transaction and returns the changes that it made, which it reads from the package database.
// They are complete even if the transaction failed part-way.
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
