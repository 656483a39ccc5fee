package pkg

import (
	"context"
	"reflect"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Batch installs the packages of several pkg.installed states in one transaction, as far as these only install and have
// the same options. What comes along because packages need it is reported by the first state that installs anything.
func (i *installed) Batch(ctx context.Context, h *host.Host, others []module.Resource) []module.Report {
	group := i.alike(others)
	if h.Packages.Allowed("installing packages") != nil || i.chooses(h) != nil || acting(jobsOf(ctx, h, group)) < 2 {
		return nil
	}
	warnings, err := i.refresh(ctx, h)
	jobs := jobsOf(ctx, h, group) // the indexes may be new
	if err != nil || acting(jobs) < 2 {
		return nil // each state reports its own error
	}
	targets := []wanted{}
	for _, j := range jobs {
		targets = append(targets,
			structsort.Without(j.targets, func(w wanted) bool { return slices.Contains(targets, w) })...)
	}
	packages, err := i.resolve(ctx, h, targets)
	if err != nil {
		return nil
	}
	fetchAhead(ctx, h, i.transaction(packages))
	// a state that lacks something yet installs it again, and says why
	changes, _ := perform(ctx, h, i.transaction(packages))
	reports := share(changes, jobs)
	reports[0].Warnings = warnings
	return reports
}

// alike returns this state and those that follow it in a batch.
func (i *installed) alike(others []module.Resource) []*installed {
	group := []*installed{i}
	for _, o := range others {
		other, ok := o.(*installed)
		if !ok || !other.onlyInstalls() || !i.onlyInstalls() || !reflect.DeepEqual(i.options(), other.options()) {
			break
		}
		group = append(group, other)
	}
	return group
}

// onlyInstalls reports whether a state does nothing but install packages of the repositories.
func (i *installed) onlyInstalls() bool {
	return i.Files == nil && i.Hold == nil && i.Debconf == "" && !i.Reinstall && !i.none() && i.Valid() == nil
}

// options returns the options of a state without its packages.
func (i *installed) options() install {
	o := i.install
	o.Name, o.Version, o.Pkgs, o.real, o.refreshErr = "", nil, nil, nil, nil
	return o
}

// jobsOf returns the jobs of the states of a batch. It ends before a state whose job is not known yet, or that wants
// another version of a package of the batch.
func jobsOf(ctx context.Context, h *host.Host, group []*installed) (jobs []job) {
	versions := map[string]string{}
	for _, state := range group {
		j, err := state.job(ctx, h)
		if err != nil || slices.ContainsFunc(j.targets, func(w wanted) bool {
			version, known := versions[w.name]
			return known && version != w.version
		}) {
			break
		}
		for _, w := range j.targets {
			versions[w.name] = w.version
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// acting is how many jobs have packages to install.
func acting(jobs []job) (n int) {
	for _, j := range jobs {
		if len(j.targets) > 0 {
			n++
		}
	}
	return n
}

// share gives each job of a batch the changes of its own packages, and those of all others to the first that has any.
func share(changes []host.PackageChange, jobs []job) []module.Report {
	owner, others := map[string]int{}, -1
	for n, j := range jobs {
		if len(j.targets) > 0 && others < 0 {
			others = n
		}
		for _, w := range j.targets {
			if _, known := owner[w.name]; !known {
				owner[w.name] = n
			}
		}
	}
	reports := make([]module.Report, len(jobs))
	for n := range jobs {
		own := structsort.Without(changes, func(c host.PackageChange) bool {
			of, known := owner[c.Name]
			return known && of != n || !known && n != others
		})
		reports[n] = module.Report{Changes: changesMap(own), Comment: describe(own, "")}
	}
	return reports
}
