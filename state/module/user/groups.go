package user

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// errNoGroup is wrapped by the error for a missing group.
var errNoGroup = errors.New("there is no such group")

// groupNamed returns a group by name or number. For a number without a group it returns a group without a name.
func groupNamed(h *host.Host, name string) (host.Group, error) {
	g, ok, err := h.Accounts.Group(name)
	if err != nil || ok {
		return g, err
	}
	gid, err := strconv.Atoi(name)
	if err != nil {
		return g, noGroup(name)
	}
	if g, ok, err = h.Accounts.GroupByID(gid); !ok {
		g = host.Group{GID: gid}
	}
	return g, err
}

func noGroup(name string) error {
	err := diag.Prerequisite.Hint(fmt.Errorf("group %s: %w", name, errNoGroup),
		"make it in a group.present state that this one requires")
	return host.WithMissing(err, host.AGroup, name)
}

// memberOf returns the groups that list a user as a member.
func memberOf(h *host.Host, user string) ([]string, error) {
	groups, err := h.Accounts.AllGroups()
	var names []string
	for _, g := range groups {
		if slices.Contains(g.Members, user) {
			names = append(names, g.Name)
		}
	}
	return names, err
}

// withSameGIDs returns the groups of a user who is in the named groups. They include all groups with the same gids,
// since the kernel knows groups by number.
func withSameGIDs(h *host.Host, names ...string) ([]string, error) {
	groups, err := h.Accounts.AllGroups()
	if err != nil {
		return nil, err
	}
	numbers := map[int]bool{}
	for _, g := range groups {
		if slices.Contains(names, g.Name) {
			numbers[g.GID] = true
		}
	}
	all := slices.Clone(names)
	for _, g := range groups {
		if numbers[g.GID] {
			all = append(all, g.Name)
		}
	}
	return sorted(all), nil
}

func without(names []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(gone, name) })
}

func subset(small, large []string) bool {
	return !slices.ContainsFunc(small, func(name string) bool { return !slices.Contains(large, name) })
}

// sorted returns the names sorted, without duplicates and empty names.
func sorted(names []string) []string {
	names = without(names, "")
	slices.Sort(names)
	return slices.Compact(names)
}
