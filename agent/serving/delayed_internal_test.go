package serving

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// failingUnits are units that do not start.
type failingUnits struct{ host.Units }

func (failingUnits) Allowed(string) error { return nil }

func (failingUnits) Act(_ context.Context, verb host.UnitVerb, name string, _ bool) error {
	if verb == host.Stop {
		return nil
	}
	return errors.New(name + " failed")
}

func (failingUnits) Unit(_ context.Context, name, _ string) (host.Unit, error) {
	return host.Unit{Name: name + ".service", Active: "failed"}, nil
}

func TestFailedStartIsDeferredUntilTheLinksHaveMoved(t *testing.T) {
	d := &delayedUnits{
		Units: failingUnits{}, failed: map[string]error{}, tried: map[string]bool{},
		follows: func(_ context.Context, unit string) bool { return unit != "sshd" },
	}
	for _, unit := range []string{"worker", "app", "other"} {
		if err := d.Act(t.Context(), host.Start, unit, true); err != nil {
			t.Errorf("%s follows the links, but its failure was not deferred: %v", unit, err)
		}
	}
	if err := d.Act(t.Context(), host.Start, "sshd", true); err == nil {
		t.Error("the failure of a unit that does not follow the links was deferred")
	}
	if u, err := d.Unit(t.Context(), "app", ""); err != nil || u.Active != "active" {
		t.Errorf("a unit whose start was deferred is %q (%v), want active", u.Active, err)
	}
	if err := d.Act(t.Context(), host.Stop, "other", true); err != nil {
		t.Error(err)
	}
	if got, want := d.units(), []string{"app.service", "worker.service"}; !slices.Equal(got, want) {
		t.Errorf("the deferred starts are %v, want %v", got, want)
	}
}
