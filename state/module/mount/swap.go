package mount

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// swap implements mount.swap: a device or file is used as swap space.
type swap struct {
	Name    string `sls:"name"`
	Persist bool   `sls:"persist"`
	Config  string `sls:"config"`

	live bool
	text string
}

func (s *swap) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	skipped := h.Kernel.Allowed("swapping to " + s.Name)
	if skipped != nil && !s.Persist {
		return module.Diff{}, skipped
	}
	d := module.Diff{Changes: value.NewMap(), Comment: s.Name + " is swapped to"}
	if skipped == nil {
		on, err := swaps(h)
		if err != nil {
			return module.Diff{}, err
		}
		if s.live = on[real(h, s.Name)] == nil; s.live {
			d.Changes.Set("swap", "on")
		}
	}
	if s.Persist {
		if err := s.planTable(h, d.Changes); err != nil {
			return module.Diff{}, err
		}
	}
	if d.Changes.Len() > 0 {
		d.Planned, d.Comment = value.NewMap(), s.Name+" would be swapped to"
	}
	return d, nil
}

func (s *swap) planTable(h *host.Host, changes *value.Map) error {
	t, err := openTable(h, s.Config)
	if err != nil {
		return err
	}
	device := escaped(s.Name)
	if _, ok := t.find(func(e entry) bool { return e.device == device && e.fstype == "swap" }); ok {
		return nil
	}
	text, what := t.with(entry{device, "none", "swap", "defaults", "0", "0"}, func(e entry) bool {
		return e.device == device
	}, false)
	s.text = text
	changes.Set("persist", map[string]string{"new": "new", "change": "update"}[what])
	return nil
}

func (s *swap) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if s.live {
		err := run(ctx, h, s.Name, "", nil, "swapon", s.Name)
		if err != nil {
			return module.Report{}, err
		}
		if on, err := swaps(h); err == nil && on[real(h, s.Name)] == nil {
			return module.Report{}, diag.Mount.Hint(errors.New(s.Name+" is not swapped to"),
				"make swap space of it with mkswap in a state that this one requires")
		}
	}
	if s.text != "" {
		if err := h.WriteText(s.Config, s.text); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: s.Name + " is swapped to"}, nil
}
