package service_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/service"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestReactions(t *testing.T) {
	for _, c := range []struct {
		name, function string
		arguments      *value.Map
		unit           string
		changes        *value.Map
		log            string
	}{
		{"active", "running", nil, "active enabled", value.NewMap("web", true), "restart web.service\n"},
		{"reload", "running", value.NewMap("reload", true), "active enabled", value.NewMap("web", true),
			"reload web.service\n"},
		{"forced", "running", value.NewMap("reload", true, "force", true), "active enabled", value.NewMap("web", true),
			"reload-or-restart web.service\n"},
		{"full", "running", value.NewMap("full_restart", true), "active enabled", value.NewMap("web", true),
			"restart web.service\n"},
		{"failed", "running", value.NewMap("reload", true), "failed enabled", value.NewMap("web", true),
			"stop web.service\nstart web.service\n"},
		{"dead", "dead", nil, "inactive enabled", nil, ""},
		{"dead of an active unit", "dead", value.NewMap("enable", false), "active enabled", value.NewMap("web", true),
			"stop web.service\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := statetest.NewHost(t)
			statetest.UseUnits(h)
			h.Build(t, statetest.Tree{"/units": statetest.File("web.service " + c.unit + "\n")})
			changes := watch(t, h, c.function, c.arguments)
			if !value.Equal(changes, orEmpty(c.changes)) {
				t.Errorf("changes are %s, want %s", value.Repr(changes), value.Repr(c.changes))
			}
			log, _ := h.Files.ReadFile("/units.log") // missing if nothing was done
			if string(log) != c.log {
				t.Errorf("the actions are %q, want %q", log, c.log)
			}
		})
	}
}

// watch applies the reaction to a change of a watched state. A dry run before it must not change anything.
func watch(t *testing.T, h *statetest.Host, function string, arguments *value.Map) *value.Map {
	t.Helper()
	resource := service.Functions()[function]()
	call := module.Call{Function: "service." + function, Arguments: value.NewMap("name", "web"),
		At: func(string) diag.Pos { return diag.Pos{} }}
	call.Arguments.Update(arguments)
	if warnings, problems := module.Decode(resource, call); len(warnings) > 0 || len(problems) > 0 {
		t.Fatal(warnings, problems)
	}
	watched, before := resource.(module.Watcher).Watched(), h.Snapshot(t)
	d, err := watched.Check(context.Background(), h.Host)
	if err != nil {
		t.Fatal(err)
	}
	if d.Planned.Len() > 0 || len(before.Diff(h.Snapshot(t))) > 0 {
		t.Errorf("a dry run reports %s and changes %v", value.Repr(d.Planned), before.Diff(h.Snapshot(t)))
	}
	if d.Empty() {
		return value.NewMap()
	}
	report, err := watched.Apply(context.Background(), h.Host, d)
	if err != nil || !value.Equal(report.Changes, d.Changes) {
		t.Errorf("%v: changes are %s, and %s were predicted", err, value.Repr(report.Changes), value.Repr(d.Changes))
	}
	return report.Changes
}

// TestRestartOfAServiceThatExits restarts a program that exits shortly after.
func TestRestartOfAServiceThatExits(t *testing.T) {
	for _, arguments := range []*value.Map{value.NewMap("name", "web"),
		value.NewMap("name", "web", "reload", true, "force", true)} {
		h := statetest.NewHost(t)
		statetest.UseUnits(h)
		h.Build(t, statetest.Tree{"/units": statetest.File("web.service active enabled ends\n")})
		resource := service.Functions()["running"]()
		module.Decode(resource, module.Call{Function: "service.running", Arguments: arguments})
		_, err := resource.(module.Watcher).Watched().Apply(context.Background(), h.Host, module.Diff{})
		if err == nil || !strings.Contains(err.Error(), "the last words of it") {
			t.Errorf("%s: %v; want the failure with the output of the unit", value.Repr(arguments), err)
		}
	}
}

func orEmpty(m *value.Map) *value.Map {
	if m == nil {
		return value.NewMap()
	}
	return m
}

func TestReactionInAChroot(t *testing.T) {
	h := statetest.NewHost(t)
	statetest.UseUnits(h)
	h.Build(t, statetest.Tree{"/units": statetest.File("web.service inactive enabled\n"), "/chroot": statetest.File("")})
	resource := service.Functions()["running"]()
	if _, err := resource.(module.Watcher).Watched().Check(context.Background(), h.Host); err == nil {
		t.Error("a restart in a chroot has no error")
	}
}
