package git

import (
	"context"
	"fmt"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
)

func (l *latest) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if what, err := l.awaits(h); err != nil || what != "" {
		return module.Report{}, l.absent(what, err)
	}
	w := written{dir: l.Target, allowed: l.AllowOutsideLinks || l.Bare || l.Mirror}
	if l.place == checkout {
		w.back = []string{"reset", "--keep", l.now.commit}
	}
	var report module.Report
	err := l.within(ctx, h, w, func() (err error) {
		report, err = l.write(ctx, h, d)
		return ofCheckout(l.place, l.Target, err)
	})
	return report, err
}

func (l *latest) write(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if l.place != checkout {
		return l.clone(ctx, h)
	}
	if err := l.fetch(ctx, h); err != nil {
		return module.Report{}, err
	}
	if l.commit == "" {
		var err error
		if l.commit, err = l.resolved(ctx, h); err != nil {
			return module.Report{}, err
		}
		l.todo.move = l.now.commit != l.commit
		d.Changes = l.changes()
	}
	if !l.Bare && !l.Mirror && l.UpdateHead {
		if err := l.move(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: fmt.Sprintf("%s is at %s of %s", l.Target, l.Rev, address(l.Name))},
		l.finish(ctx, h)
}

// absent returns err or, if err is nil, the error for the missing prerequisite what.
func (a access) absent(what string, err error) error {
	switch {
	case err != nil:
		return err
	case what == "git":
		return a.git().Missing()
	}
	return diag.Prerequisite.Hint(fmt.Errorf("%s does not exist", what), "require the state that makes it")
}

func (l *latest) clone(ctx context.Context, h *host.Host) (module.Report, error) {
	if l.place == occupied {
		if err := empty(h, l.Target); err != nil {
			return module.Report{}, err
		}
	}
	args := []string{"clone", "--origin", l.Remote}
	switch {
	case l.Mirror:
		args = []string{"clone", "--mirror"}
	case l.Bare:
		args = []string{"clone", "--bare"}
	}
	if l.Depth > 0 {
		args = append(args, "--depth", strconv.Itoa(l.Depth))
		if l.kind == "branch" || l.kind == "tag" {
			args = append(args, "--branch", l.Rev)
		}
	}
	if _, err := l.reaching(l.Name).Do(ctx, h, append(args, "--", address(l.Name), l.Target)...); err != nil {
		return module.Report{}, fmt.Errorf("cloning %s: %w", address(l.Name), err)
	}
	report := module.Report{Changes: l.cloning(), Comment: fmt.Sprintf("cloned %s to %s", address(l.Name), l.Target)}
	if l.Bare || l.Mirror {
		return report, nil
	}
	if l.commit == "" {
		var err error
		if l.commit, err = l.resolved(ctx, h); err != nil {
			return report, err
		}
		report.Changes = l.cloning()
	}
	if err := l.look(ctx, h); err != nil {
		return report, err
	}
	l.todo.branch = l.Branch != "" && l.Branch != l.now.branch
	l.todo.move, l.todo.reset = l.now.commit != l.commit, true // a fresh clone has no changes to lose
	if err := l.move(ctx, h); err != nil {
		return report, err
	}
	return report, l.finish(ctx, h)
}

// resolved returns the commit for an abbreviated hash.
func (l *latest) resolved(ctx context.Context, h *host.Host) (string, error) {
	commit, err := l.answer(ctx, h, l.Target, "rev-parse", "--verify", "--quiet", l.Rev+"^{commit}")
	if err == nil && commit == "" {
		err = diag.Git.Hint(fmt.Errorf("the repository %s has no commit %s", address(l.Name), l.Rev),
			"name a branch, a tag or a commit of it")
	}
	return commit, err
}

// fetch fetches from the remote repository.
func (l *latest) fetch(ctx context.Context, h *host.Host) error {
	if l.todo.remote {
		verb := "set-url"
		if l.now.url == "" {
			verb = "add"
		}
		if _, err := l.git().Do(ctx, h, in(l.Target, "remote", verb, l.Remote, address(l.Name))...); err != nil {
			return err
		}
	}
	args := []string{"fetch"}
	if l.FetchTags {
		args = append(args, "--tags")
	}
	if l.ForceFetch {
		args = append(args, "--force")
	}
	if l.Depth > 0 {
		args = append(args, "--depth", strconv.Itoa(l.Depth))
	}
	if _, err := l.reaching(l.Name).Do(ctx, h, in(l.Target, append(args, l.Remote)...)...); err != nil {
		return diag.Git.Hint(fmt.Errorf("fetching %s: %w", address(l.Name), err),
			"if a branch or a tag was moved there, set force_fetch: True")
	}
	if l.commit == "" {
		return nil
	}
	if have, err := l.answer(ctx, h, l.Target, "cat-file", "-t", l.commit); err != nil || have != "" {
		return err
	}
	// A clone of a single branch fetches other commits only if they are named.
	_, err := l.reaching(l.Name).Do(ctx, h, in(l.Target, "fetch", l.Remote, l.commit)...)
	return err
}

// move moves the checkout to its commit and branch.
func (l *latest) move(ctx context.Context, h *host.Host) error {
	git := func(args ...string) error {
		_, err := l.git().Do(ctx, h, in(l.Target, args...)...)
		return err
	}
	if l.todo.branch {
		if err := l.switchBranch(ctx, h, git); err != nil {
			return err
		}
	}
	at, err := l.answer(ctx, h, l.Target, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil || at == l.commit && !l.todo.reset {
		return err
	}
	forward := at == "" || at == l.commit
	if !forward {
		_, err := l.git().Ask(ctx, h, in(l.Target, "merge-base", "--is-ancestor", at, l.commit)...)
		if err != nil && !program.EndedWith(err, 1, 128) {
			return err
		}
		forward = err == nil
	}
	force := l.todo.reset || l.discards()
	switch {
	case force || at == "":
		return git("reset", "--hard", l.commit)
	case forward:
		if err := git("merge", "--ff-only", l.commit); err != nil {
			return diag.Git.Hint(err, "files were changed on the host; set force_reset: True to drop what was changed")
		}
		return nil
	}
	return diag.Git.Hint(fmt.Errorf("%s has commits that %s of %s does not have", l.Target, l.Rev, address(l.Name)),
		"set force_reset: True to drop them")
}

func (l *latest) switchBranch(ctx context.Context, h *host.Host, git func(args ...string) error) error {
	args := []string{"checkout"}
	if l.ForceCheckout {
		args = append(args, "--force")
	}
	have, err := l.answer(ctx, h, l.Target, "rev-parse", "--verify", "--quiet", "refs/heads/"+l.Branch)
	if err != nil {
		return err
	}
	if have == "" {
		return git(append(args, "--no-track", "-b", l.Branch, l.commit)...)
	}
	if err := git(append(args, l.Branch, "--")...); err != nil {
		return diag.Git.Hint(err, "set force_checkout: True to drop what was changed on the host")
	}
	return nil
}

// finish updates the upstream branch, tags and submodules of the checkout.
func (l *latest) finish(ctx context.Context, h *host.Host) error {
	if l.kind == "branch" && !l.Bare && !l.Mirror && l.UpdateHead {
		// A detached HEAD has no upstream branch, so failures are ignored.
		_, err := l.git().Do(ctx, h, in(l.Target, "branch", "--set-upstream-to="+l.Remote+"/"+l.Rev)...)
		if err != nil && !program.EndedWith(err, 1, 128) {
			return err
		}
	}
	if len(l.todo.oldTags) > 0 {
		if _, err := l.git().Do(ctx, h,
			in(l.Target, append([]string{"tag", "--delete", "--"}, l.todo.oldTags...)...)...); err != nil {
			return err
		}
	}
	if !l.Submodules || l.Bare || l.Mirror {
		return nil
	}
	return l.submodules(ctx, h, l.Name, l.Target)
}

func (a access) submodules(ctx context.Context, h *host.Host, rawURL, dir string) error {
	_, err := a.reaching(rawURL).Do(ctx, h, in(dir, "submodule", "update", "--init", "--recursive")...)
	return err
}
