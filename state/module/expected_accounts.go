package module

import (
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ExpectedAccounts returns the users and groups that earlier steps of a dry run would create and remove. Each
// step is a mapping with its function, its name and the predicted changes. If a user would be a member of a
// group with the user's name, that group counts as created.
func ExpectedAccounts(steps *value.List) (e host.Expected) {
	if steps == nil {
		return e
	}
	for _, item := range steps.Items {
		step, _ := item.(*value.Map)
		changes, _ := step.Value("changes").(*value.Map)
		expect(&e, value.Str(step.Value("function")), value.Str(step.Value("name")), changes)
	}
	return e
}

func expect(e *host.Expected, function, name string, changes *value.Map) {
	gid, hasGroup := changes.Value("gid").(int)
	uid, hasUser := changes.Value("uid").(int)
	switch {
	case function == "user.present" && hasUser:
		e.Users, e.GoneUsers = append(e.Users, host.User{Name: name, UID: uid, GID: gid}), without(e.GoneUsers, name)
		groups, _ := changes.Value("groups").(*value.List)
		if groups != nil && slices.Contains(groups.Items, any(name)) && !e.Has(name) {
			expectGroup(e, host.Group{Name: name, GID: gid})
		}
	case function == "group.present" && hasGroup:
		expectGroup(e, host.Group{Name: name, GID: gid})
	case function == "group.absent":
		expectNoGroup(e, name)
	case function == "user.absent":
		e.GoneUsers = append(e.GoneUsers, name)
		e.Users = structsort.Without(e.Users, func(u host.User) bool { return u.Name == name })
		if changes.Has(name + " group") {
			expectNoGroup(e, name)
		}
	}
}

func expectGroup(e *host.Expected, g host.Group) {
	e.Groups, e.GoneGroups = append(e.Groups, g), without(e.GoneGroups, g.Name)
}

func expectNoGroup(e *host.Expected, name string) {
	e.Groups = structsort.Without(e.Groups, func(g host.Group) bool { return g.Name == name })
	e.GoneGroups = append(e.GoneGroups, name)
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
