package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// detached implements git.detached: a checkout is at a commit, with a detached HEAD.
type detached struct {
	access
	Name          string `sls:"name"`
	Rev           string `sls:"rev,required"`
	Target        string `sls:"target,required"`
	Remote        string `sls:"remote"`
	ForceClone    bool   `sls:"force_clone"`
	ForceCheckout bool   `sls:"force_checkout"`
	FetchRemote   bool   `sls:"fetch_remote"`
	HardReset     bool   `sls:"hard_reset"`
	Submodules    bool   `sls:"submodules"`

	AllowOutsideLinks bool `sls:"allow_outside_links"`

	place  place
	now    string
	commit string
}

func (g *detached) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	var err error
	if g.place, err = placeOf(h, g.Target); err != nil {
		return module.Diff{}, err
	}
	if err = g.actFor(h, g.Target); err != nil {
		return module.Diff{}, err
	}
	if what, err := g.awaits(h); err != nil || what != "" {
		return module.Awaits(what, "check out "+address(g.Name)), err
	}
	if g.place == occupied && !g.ForceClone {
		return module.Diff{}, inTheWay(h, g.Target, "force_clone")
	}
	found, err := g.remoteRefs(ctx, h, g.Name)
	if err != nil {
		return module.Diff{}, err
	}
	kind, known, on := "", false, ""
	if g.commit, kind, known = found.find(g.Rev); kind == "" {
		return module.Diff{}, found.missing(g.Rev, g.Name)
	}
	if g.place == checkout {
		g.now, err = g.answer(ctx, h, g.Target, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
		if err == nil {
			on, err = g.answer(ctx, h, g.Target, "symbolic-ref", "--short", "--quiet", "HEAD")
		}
		if err != nil {
			return module.Diff{}, err
		}
	}
	if !known && strings.HasPrefix(g.now, g.Rev) {
		g.commit = g.now
	}
	switch {
	case g.now != "" && g.now == g.commit && on == "":
		return module.Diff{Comment: g.Target + " is at its commit"}, nil
	case g.commit == "":
		return module.Diff{Unknown: true, Planned: value.NewMap(),
			Comment: fmt.Sprintf("would check out %s of %s", g.Rev, address(g.Name))}, nil
	}
	return module.Diff{Changes: g.changes(),
		Comment: fmt.Sprintf("would check out %s of %s in %s", g.Rev, address(g.Name), g.Target)}, nil
}

func (g *detached) changes() *value.Map {
	m := value.NewMap()
	if g.place == occupied {
		m.Set("forced clone", true)
	}
	m.Set("HEAD", value.NewMap("old", orNone(g.now), "new", g.commit))
	return m
}

func (g *detached) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if what, err := g.awaits(h); err != nil || what != "" {
		return module.Report{}, g.absent(what, err)
	}
	w := written{dir: g.Target, allowed: g.AllowOutsideLinks}
	if g.place == checkout {
		w.back = []string{"checkout", "-"} // return to the previous branch or commit
	}
	var report module.Report
	err := g.within(ctx, h, w, func() (err error) {
		report, err = g.write(ctx, h)
		return ofCheckout(g.place, g.Target, err)
	})
	return report, err
}

func (g *detached) write(ctx context.Context, h *host.Host) (module.Report, error) {
	if err := g.get(ctx, h); err != nil {
		return module.Report{}, err
	}
	if g.commit == "" {
		var err error
		if g.commit, err = g.answer(ctx, h, g.Target, "rev-parse", "--verify", "--quiet", g.Rev+"^{commit}"); err != nil ||
			g.commit == "" {
			return module.Report{}, errors.Join(err, fmt.Errorf("the repository %s has no commit %s", address(g.Name), g.Rev))
		}
	}
	steps := [][]string{}
	if g.HardReset && g.place == checkout {
		steps = append(steps, []string{"reset", "--hard"})
	}
	move := []string{"checkout", "--detach", g.commit}
	if g.ForceCheckout {
		move = []string{"checkout", "--force", "--detach", g.commit}
	}
	for _, args := range append(steps, move) {
		if _, err := g.git().Do(ctx, h, in(g.Target, args...)...); err != nil {
			return module.Report{}, diag.Git.Hint(err,
				"set hard_reset: True or force_checkout: True to drop what was changed on the host")
		}
	}
	report := module.Report{Changes: g.changes(), Comment: fmt.Sprintf("%s is at %s", g.Target, g.commit)}
	if g.Submodules {
		return report, g.submodules(ctx, h, g.Name, g.Target)
	}
	return report, nil
}

// get clones the repository, or fetches into the existing checkout.
func (g *detached) get(ctx context.Context, h *host.Host) error {
	git := g.reaching(g.Name)
	if g.place == checkout {
		if !g.FetchRemote {
			return nil
		}
		if _, err := git.Do(ctx, h, in(g.Target, "fetch", "--tags", "--", address(g.Name),
			"+refs/heads/*:refs/remotes/"+g.Remote+"/*")...); err != nil {
			return fmt.Errorf("fetching %s: %w", address(g.Name), err)
		}
		return nil
	}
	if g.place == occupied {
		if err := empty(h, g.Target); err != nil {
			return err
		}
	}
	if _, err := git.Do(ctx, h, "clone", "--no-checkout", "--origin", g.Remote,
		"--", address(g.Name), g.Target); err != nil {
		return fmt.Errorf("cloning %s: %w", address(g.Name), err)
	}
	return nil
}
