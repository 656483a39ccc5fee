package cloud

import (
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestWhatADeletionRemoves compares what two plans of a deletion remove: a person agreed to the first, and the second
// is that of the run. Less than was agreed to may go, and not more.
func TestWhatADeletionRemoves(t *testing.T) {
	user := func(id string, groups ...string) *value.Map {
		return value.NewMap("user", "u", "memberships", value.Strings(groups...), "id", id)
	}
	tagged := value.NewMap("vpc", "v", "tags", value.NewMap("keep", ""))
	group := func(instances int) *value.Map { return value.NewMap("asg", "g", "instances", instances, "id", "arn") }
	for what, c := range map[string]struct {
		shown, now *value.Map
		allowed    bool
	}{
		"the same":                   {user("1", "g"), user("1", "g"), true},
		"a user who left a group":    {user("1", "g", "h"), user("1", "h"), true},
		"a user who joined a group":  {user("1", "g"), user("1", "g", "h"), false},
		"another user of the name":   {user("1"), user("2"), false},
		"a group that scaled in":     {group(4), group(3), true},
		"a group that was empty":     {group(0), group(1), false},
		"a tag without a value":      {value.NewMap("vpc", "v"), tagged, false},
		"a tag that the plan showed": {tagged, value.NewMap("vpc", "v"), true},
	} {
		shown := gone(c.shown)
		allowed := true
		for _, removal := range gone(c.now) {
			allowed = allowed && slices.Contains(shown, removal)
		}
		if allowed != c.allowed {
			t.Errorf("%s: allowed is %v: %q, and %q was shown", what, allowed, gone(c.now), shown)
		}
	}
}
