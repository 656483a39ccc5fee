package check

import (
	"maps"
	"slices"
	"strings"
)

// StateChange is the difference between a state of a tree and the same state of an older one.
type StateChange struct {
	Change    string   `json:"change"`              // added, removed or changed
	State     string   `json:"state"`               // function, ID and name
	Arguments []string `json:"arguments,omitempty"` // names of the arguments that differ
	Hosts     []string `json:"hosts"`
}

// Changed compares what two trees declare for the same hosts. Only the names of arguments are returned, since their
// values may be secrets. The result is sorted by the titles of the states.
func Changed(older, newer *Report) []StateChange {
	found := map[string]*StateChange{}
	note := func(host, title, change string, arguments []string) {
		c := found[change+title]
		if c == nil {
			c = &StateChange{Change: change, State: title}
			found[change+title] = c
		}
		c.Hosts = append(c.Hosts, host)
		for _, name := range arguments {
			if !slices.Contains(c.Arguments, name) {
				c.Arguments = append(c.Arguments, name)
			}
		}
	}
	for i, host := range newer.Hosts {
		before, after := older.Hosts[i].Arguments, host.Arguments
		for title, now := range after {
			if then, had := before[title]; !had {
				note(host.ID, title, "added", nil)
			} else if names := differing(then, now); len(names) > 0 {
				note(host.ID, title, "changed", names)
			}
		}
		for title := range before {
			if _, has := after[title]; !has {
				note(host.ID, title, "removed", nil)
			}
		}
	}
	var all []StateChange
	for _, c := range found {
		slices.Sort(c.Arguments)
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b StateChange) int {
		if a.State != b.State {
			return strings.Compare(a.State, b.State)
		}
		return strings.Compare(a.Change, b.Change)
	})
	return all
}

// differing returns the names of the arguments that differ.
func differing(a, b map[string]string) (names []string) {
	for name := range maps.Keys(a) {
		if other, has := b[name]; !has || other != a[name] {
			names = append(names, name)
		}
	}
	for name := range maps.Keys(b) {
		if _, had := a[name]; !had {
			names = append(names, name)
		}
	}
	return names
}
