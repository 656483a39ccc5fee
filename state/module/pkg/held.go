package pkg

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// held implements pkg.held: it puts packages on hold. With replace, it takes all others off hold.
type held struct {
	selection
	Replace bool `sls:"replace"`
}

func (s *held) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	holds, err := s.holds(h)
	return holdDiff(holds), err
}

func (s *held) holds(h *host.Host) ([]hold, error) {
	if err := h.Packages.Allowed("putting packages on hold"); err != nil {
		return nil, err
	}
	v, list, err := listed(h, &s.selection)
	if err != nil {
		return nil, err
	}
	on, named := true, map[string]bool{}
	holds := holdsFor(v, list, &on)
	for _, w := range list {
		named[w.name] = true
	}
	for _, name := range v.Holds() {
		if s.Replace && !named[name] {
			holds = append(holds, hold{name: name, old: "hold"})
		}
	}
	return holds, nil
}

func (s *held) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	holds, err := s.holds(h)
	if err != nil {
		return module.Report{}, err
	}
	return applyHolds(ctx, h, holds)
}

// unheld implements pkg.unheld: it takes packages, or with all every package, off hold.
type unheld struct {
	selection
	All bool `sls:"all"`
}

func (s *unheld) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	holds, err := s.holds(h)
	return holdDiff(holds), err
}

func (s *unheld) holds(h *host.Host) ([]hold, error) {
	if err := h.Packages.Allowed("taking packages off hold"); err != nil {
		return nil, err
	}
	v, list, err := listed(h, &s.selection)
	if err != nil {
		return nil, err
	}
	if s.All {
		list = nil
		for _, name := range v.Holds() {
			list = append(list, wanted{name: name})
		}
	}
	off := false
	return holdsFor(v, list, &off), nil
}

func (s *unheld) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	holds, err := s.holds(h)
	if err != nil {
		return module.Report{}, err
	}
	return applyHolds(ctx, h, holds)
}

func listed(h *host.Host, s *selection) (*host.Inventory, []wanted, error) {
	v, err := h.Packages.Installed()
	if err != nil || s.none() {
		return v, nil, err
	}
	list, err := s.packages(v)
	return v, list, err
}

// holdDiff returns the diff for holds. Salt's dry run reports no changes of holds, so Planned is empty.
func holdDiff(holds []hold) module.Diff {
	if len(holds) == 0 {
		return module.Diff{Comment: "no hold has to change"}
	}
	return module.Diff{Changes: holdReport(holds), Planned: value.NewMap(), Comment: "would be " + describeHolds(holds)}
}

// holdReport returns changes in the form of Salt's pkg.held and pkg.unheld.
func holdReport(holds []hold) *value.Map {
	m := value.NewMap()
	for _, c := range holds {
		change := value.NewMap("old", c.before(), "new", c.word(c.on))
		comment := fmt.Sprintf("package %s is now on hold", c.name)
		if !c.on {
			comment = fmt.Sprintf("package %s is no longer on hold", c.name)
		}
		m.Set(c.name, value.NewMap("name", c.name, "changes", change, "result", true, "comment", comment))
	}
	return m
}

func applyHolds(ctx context.Context, h *host.Host, holds []hold) (module.Report, error) {
	if err := setHolds(ctx, h, holds); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: holdReport(holds), Comment: describeHolds(holds)}, nil
}
