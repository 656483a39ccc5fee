package pkg

import (
	"context"
	"reflect"
	"slices"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Batch installs the packages of this pkg.installed state and of those that follow it in one transaction, up to the
// first state that does more than install packages or has other options. It returns a report for each state of the
// batch, or nil if each state has to be applied alone. Dependencies are reported by the first state that has packages
// to install.
func (i *installed) Batch(ctx context.Context, h *host.Host, others []module.Resource) []module.Report {
	group := i.alike(others)
	if h.Packages.Allowed("installing packages") != nil || i.chooses(h) != nil || acting(jobsOf(ctx, h, group)) < 2 {
		return nil
	}
	warnings, err := i.refresh(ctx, h)
	jobs := jobsOf(ctx, h, group) // refresh may have fetched new indexes
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
	// If the transaction fails, each state installs what it still lacks and reports its own error.
	changes, _ := perform(ctx, h, i.transaction(packages))
	reports := share(changes, jobs)
	reports[0].Warnings = warnings
	return reports
}

// alike returns this state and the states directly after it that can share its transaction: those that only install
// packages and have the same options.
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

// jobsOf returns the jobs of the states of a batch. It stops at the first state whose job cannot be determined, or that
// wants another version of a package of the batch.
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

// acting returns the number of jobs that have packages to install.
func acting(jobs []job) (n int) {
	for _, j := range jobs {
		if len(j.targets) > 0 {
			n++
		}
	}
	return n
}

// share returns a report for each job of a batch, with the changes of the job's own packages. The report of the first
// job with packages to install also has the changes of packages that belong to no job.
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
