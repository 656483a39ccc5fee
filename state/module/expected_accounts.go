package module

import (
	"slices"

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
		e.Users = append(e.Users, host.User{Name: name, UID: uid, GID: gid})
		groups, _ := changes.Value("groups").(*value.List)
		if groups != nil && slices.Contains(groups.Items, any(name)) && !e.Has(name) {
			e.Groups = append(e.Groups, host.Group{Name: name, GID: gid})
		}
	case function == "group.present" && hasGroup:
		e.Groups = append(e.Groups, host.Group{Name: name, GID: gid})
	case function == "group.absent":
		e.GoneGroups = append(e.GoneGroups, name)
	case function == "user.absent":
		e.GoneUsers = append(e.GoneUsers, name)
		if changes.Has(name + " group") {
			e.GoneGroups = append(e.GoneGroups, name)
		}
	}
}
