package git

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cloned implements git.cloned: a clone exists, whatever it contains.
type cloned struct {
	access
	Name   string `sls:"name"`
	Target string `sls:"target,required"`
	Branch string `sls:"branch"`

	AllowOutsideLinks bool `sls:"allow_outside_links"`

	place place
	now   string // the branch that is checked out
}

func (c *cloned) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	var err error
	if c.place, err = placeOf(h, c.Target); err != nil {
		return module.Diff{}, err
	}
	if err = c.actFor(h, c.Target); err != nil {
		return module.Diff{}, err
	}
	if what, err := c.awaits(h); err != nil || what != "" {
		return module.Awaits(what, "clone "+address(c.Name)), err
	}
	switch c.place {
	case occupied:
		return module.Diff{}, inTheWay(h, c.Target, "force_clone")
	case nothing:
		found, err := c.remoteRefs(ctx, h, c.Name)
		if err != nil {
			return module.Diff{}, err
		}
		if _, _, known := found.find(c.Branch); c.Branch != "" && !known {
			return module.Diff{}, found.missing(c.Branch, c.Name)
		}
		return module.Diff{Changes: value.NewMap("new", address(c.Name)+" => "+c.Target),
			Comment: fmt.Sprintf("would clone %s to %s", address(c.Name), c.Target)}, nil
	}
	if c.now, err = c.answer(ctx, h, c.Target, "symbolic-ref", "--short", "--quiet", "HEAD"); err != nil {
		return module.Diff{}, err
	}
	if c.Branch == "" || c.Branch == c.now {
		return module.Diff{Comment: c.Target + " is a clone"}, nil
	}
	return module.Diff{Changes: value.NewMap("branch", value.NewMap("old", orNone(c.now), "new", c.Branch)),
		Comment: fmt.Sprintf("would check out the branch %s in %s", c.Branch, c.Target)}, nil
}

func (c *cloned) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if what, err := c.awaits(h); err != nil || what != "" {
		return module.Report{}, c.absent(what, err)
	}
	w := written{dir: c.Target, allowed: c.AllowOutsideLinks}
	if c.place == checkout {
		w.back = []string{"checkout", "-"} // return to the previous branch or commit
	}
	var report module.Report
	err := c.within(ctx, h, w, func() (err error) {
		if report, err = c.write(ctx, h, d); err != nil && c.known(ctx, h) {
			err = ofCheckout(c.place, c.Target, err)
		}
		return err
	})
	return report, err
}

// known reports whether the remote repository has the branch.
func (c *cloned) known(ctx context.Context, h *host.Host) bool {
	all, err := c.remoteRefs(ctx, h, c.Name)
	_, _, known := all.find(c.Branch)
	return err == nil && known
}

func (c *cloned) write(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if c.place == checkout {
		if _, err := c.git().Do(ctx, h, in(c.Target, "checkout", c.Branch, "--")...); err != nil {
			return module.Report{}, err
		}
		return module.Report{Changes: d.Changes,
			Comment: fmt.Sprintf("checked out the branch %s in %s", c.Branch, c.Target)}, nil
	}
	args := []string{"clone"}
	if c.Branch != "" {
		args = append(args, "--branch", c.Branch)
	}
	if _, err := c.reaching(c.Name).Do(ctx, h, append(args, "--", address(c.Name), c.Target)...); err != nil {
		return module.Report{}, fmt.Errorf("cloning %s: %w", address(c.Name), err)
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("cloned %s to %s", address(c.Name), c.Target)}, nil
}
