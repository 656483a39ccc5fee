package user

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// groupNamed finds a group by its name or number. A number without a group is a group without a name.
func groupNamed(h *host.Host, name string) (host.Group, error) {
	g, ok, err := h.Accounts.Group(name)
	if err != nil || ok {
		return g, err
	}
	gid, err := strconv.Atoi(name)
	if err != nil {
		return g, diag.WithHint(fmt.Errorf("group %s does not exist", name), "make it in a group.present state that this one requires")
	}
	if g, ok, err = h.Accounts.GroupByID(gid); !ok {
		g = host.Group{GID: gid}
	}
	return g, err
}

// memberOf lists the groups that name the user as a member.
func memberOf(h *host.Host, user string) ([]string, error) {
	names, err := h.Accounts.GroupsOf(user)
	if err != nil {
		return nil, err
	}
	var members []string
	for _, name := range names {
		g, _, err := h.Accounts.Group(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(g.Members, user) {
			members = append(members, name)
		}
	}
	return members, nil
}

func without(names []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(gone, name) })
}

func subset(small, large []string) bool {
	return !slices.ContainsFunc(small, func(name string) bool { return !slices.Contains(large, name) })
}

// sorted gives each name once, in order, and leaves out groups that have none.
func sorted(names []string) []string {
	names = without(names, "")
	slices.Sort(names)
	return slices.Compact(names)
}
