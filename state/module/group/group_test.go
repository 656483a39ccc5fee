package group_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/group"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "group",
		Functions: func(*statetest.Host) module.Table { return group.Functions() },
		Prepare: func(_ *testing.T, h *statetest.Host) {
			h.Users.Users = append(h.Users.Users, host.User{Name: "alice", UID: 1000, GID: 100},
				host.User{Name: "bob", UID: 1001, GID: 100})
			h.Users.Groups = append(h.Users.Groups, host.Group{Name: "team", GID: 2000, Members: []string{"alice"}})
		},
		Cases: statetest.Load(t, "../../../testdata/modules/account/group.yaml"),
	})
}

// TestRealTools runs the host's group tools in a chroot.
func TestRealTools(t *testing.T) {
	h, err := machine.New(host.Options{Root: hosttest.Chroot(t), Chroot: true})
	if err != nil {
		t.Fatal(err)
	}
	final := value.NewMap("Final", "All changes applied successfully")
	for _, step := range []struct {
		function      string
		args, changes *value.Map
	}{
		{"present", value.NewMap("name", "crew"),
			value.NewMap("name", "crew", "passwd", "x", "gid", 1001, "members", value.NewList())},
		{"present", value.NewMap("name", "old", "system", true),
			value.NewMap("name", "old", "passwd", "x", "gid", 999, "members", value.NewList())},
		{"present", value.NewMap("name", "team", "gid", 7001, "members", value.Strings("alice", "daemon")),
			value.NewMap("name", "team", "passwd", "x", "gid", 7001, "members", value.Strings("alice", "daemon"))},
		{"present", value.NewMap("name", "twin", "gid", 7001, "non_unique", true),
			value.NewMap("name", "twin", "passwd", "x", "gid", 7001, "members", value.NewList())},
		{"present", value.NewMap("name", "team", "gid", 7002, "delusers", value.Strings("alice"),
			"addusers", value.Strings("root")), final},
		{"present", value.NewMap("name", "team", "members", value.NewList()), final},
		{"absent", value.NewMap("name", "team"), value.NewMap("team", "")},
	} {
		report := hosttest.Converge(t, h, group.Functions(), step.function, step.args)
		if !value.Equal(step.changes, report.Changes) {
			t.Errorf("%s reports %s, want %s", value.Repr(step.args), value.Repr(report.Changes), value.Repr(step.changes))
		}
	}
	resource, diff := hosttest.Look(t, h, group.Functions(), "absent", value.NewMap("name", "alice"))
	_, err = resource.Apply(context.Background(), h, diff)
	if err == nil || !strings.Contains(err.Error(), "cannot remove the primary group of user 'alice'") ||
		diag.HintOf(err) == "" {
		t.Errorf("removing a user's own group: %v (hint: %s)", err, diag.HintOf(err))
	}
}
