package pkg

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

// latest implements pkg.latest: it installs the newest version of packages. With stale indexes, Check reports
// that the changes are unknown.
type latest struct{ install }

func (l *latest) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := errors.Join(h.Packages.Allowed("installing packages"), l.chooses(h)); err != nil {
		return module.Diff{}, err
	}
	if l.none() {
		return module.Diff{Comment: "there are no packages to install"}, nil
	}
	targets, err := l.behind(ctx, h)
	d := module.Diff{Planned: value.NewMap(), Unknown: l.stale(h)}
	switch {
	case err != nil && d.Unknown:
		d.Comment = fmt.Sprintf("would refresh the indexes; as of now, %v", err)
		return d, nil
	case err != nil:
		return module.Diff{}, err
	case len(targets) == 0 && d.Unknown:
		d.Comment = "would refresh the indexes and look for newer versions"
		return d, nil
	case len(targets) == 0:
		return module.Diff{Comment: "there is nothing newer"}, nil
	}
	changes, err := h.Packages.Plan(ctx, l.transaction(targets))
	if err != nil && !d.Unknown {
		return module.Diff{}, err
	}
	d.Changes, d.Comment = changesMap(changes), describe(changes, "would be ")
	return d, nil
}

// behind returns the packages for which the repositories have a newer version than the installed one, or that
// are not installed.
func (l *latest) behind(ctx context.Context, h *host.Host) ([]host.Wanted, error) {
	v, err := h.Packages.Installed()
	if err != nil {
		return nil, err
	}
	list, err := l.packages(v)
	if err != nil {
		return nil, err
	}
	offers, err := h.Packages.Offers(ctx, nameList(list), l.FromRepo)
	if err != nil {
		return nil, err
	}
	var targets []host.Wanted
	var unknown []string
	for _, w := range list {
		candidate, there := offers[w.name].Candidate, v.Versions(w.name)
		switch {
		case candidate == "" && len(there) == 0:
			unknown = append(unknown, w.name)
		case candidate != "" && !newer(h, there, candidate):
			targets = append(targets, host.Wanted{Name: w.name})
		}
	}
	if len(unknown) > 0 {
		return nil, diag.Packages.Hint(fmt.Errorf("the repositories do not have %s", strings.Join(unknown, ", ")),
			"add the repository that has it in a pkgrepo.managed state")
	}
	return targets, nil
}

// newer reports whether one of the versions is at least as new as the candidate.
func newer(h *host.Host, versions []string, candidate string) bool {
	for _, version := range versions {
		if h.Packages.Compare(version, candidate) >= 0 {
			return true
		}
	}
	return false
}

func (l *latest) Apply(ctx context.Context, h *host.Host, _ module.Diff) (report module.Report, err error) {
	if report.Warnings, err = l.refresh(ctx, h); err != nil {
		return report, err
	}
	targets, err := l.behind(ctx, h)
	if err != nil {
		return report, l.blame(ctx, h, nil, err)
	}
	if len(targets) == 0 {
		report.Comment = "there is nothing newer"
		return report, nil
	}
	var names []string
	for _, w := range targets {
		names = append(names, w.Name)
	}
	changes, err := perform(ctx, h, l.transaction(targets))
	report.Changes, report.Comment = changesMap(changes), describe(changes, "")
	if err != nil {
		return report, l.blame(ctx, h, names, err)
	}
	return report, l.done(ctx, h)
}

// done returns an error if packages are still out of date.
func (l *latest) done(ctx context.Context, h *host.Host) error {
	left, err := l.behind(ctx, h)
	if err != nil || len(left) == 0 {
		return err
	}
	names := make([]string, len(left))
	for n, w := range left {
		names[n] = w.Name
	}
	return notThere(h, names)
}

// Watched returns the state itself, as for pkg.installed.
func (l *latest) Watched() module.Resource { return l }
