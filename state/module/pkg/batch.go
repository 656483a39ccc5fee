package pkg

import (
	"context"
	"iter"
	"reflect"
	"slices"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// member is a pkg state that can share one transaction of the package manager with the states directly after it.
type member interface {
	// shares reports whether the transaction of another state has the same options, so that one does for both.
	shares(other module.Resource) bool
	// lacking returns the packages that the state has to install or remove.
	lacking(ctx context.Context, h *host.Host) ([]wanted, error)
	refresh(ctx context.Context, h *host.Host) (warnings []string, err error)
	// postpone keeps warnings of a refresh for the report of the state.
	postpone(warnings []string)
	// combined returns the transaction for packages of several states.
	combined(ctx context.Context, h *host.Host, targets []wanted) (host.Transaction, error)
	// available returns the jobs before the first one with a package or version that the repositories lack.
	available(ctx context.Context, h *host.Host, jobs [][]wanted) [][]wanted
	// reported returns changes in the form of the state's report.
	reported(changes []host.PackageChange) *value.Map
}

// Batch installs the packages of this pkg.installed state and of those that follow it in one transaction, up to the
// first state that does more than install packages or has other options. It returns a report for each state of the
// batch, or nil if each state has to be applied alone. Dependencies are reported by the first state that has packages
// to install.
func (i *installed) Batch(ctx context.Context, h *host.Host, others iter.Seq[module.Resource]) []module.Report {
	if h.Packages.Allowed("installing packages") != nil || i.chooses(h) != nil {
		return nil
	}
	return batch(ctx, h, i, others)
}

func (i *installed) shares(o module.Resource) bool {
	other, ok := o.(*installed)
	return ok && i.onlyInstalls() && other.onlyInstalls() && reflect.DeepEqual(i.options(), other.options())
}

// onlyInstalls reports whether a state does nothing but install packages of the repositories.
func (i *installed) onlyInstalls() bool {
	return i.Files == nil && i.Hold == nil && i.Debconf == "" && !i.Reinstall && !i.none() && i.Valid() == nil
}

func (i *installed) lacking(ctx context.Context, h *host.Host) ([]wanted, error) {
	j, err := i.job(ctx, h)
	return j.targets, err
}

// Batch is that of pkg.installed, for pkg.latest.
func (l *latest) Batch(ctx context.Context, h *host.Host, others iter.Seq[module.Resource]) []module.Report {
	if h.Packages.Allowed("installing packages") != nil || l.chooses(h) != nil {
		return nil
	}
	return batch(ctx, h, l, others)
}

func (l *latest) shares(o module.Resource) bool {
	other, ok := o.(*latest)
	return ok && !l.none() && !other.none() && reflect.DeepEqual(l.options(), other.options())
}

func (l *latest) lacking(ctx context.Context, h *host.Host) ([]wanted, error) {
	behind, err := l.behind(ctx, h)
	return wantedOf(behind), err
}

// Batch is that of pkg.installed, for pkg.removed and pkg.purged.
func (r *removed) Batch(ctx context.Context, h *host.Host, others iter.Seq[module.Resource]) []module.Report {
	if h.Packages.Allowed("removing packages") != nil {
		return nil
	}
	return batch(ctx, h, r, others)
}

func (r *removed) shares(o module.Resource) bool {
	other, ok := o.(*removed)
	return ok && r.purge == other.purge && !r.none() && !other.none()
}

func (r *removed) lacking(_ context.Context, h *host.Host) ([]wanted, error) {
	names, err := r.targets(h)
	return wantedOf(r.transaction(names).Packages), err
}

func (r *removed) refresh(context.Context, *host.Host) ([]string, error) { return nil, nil }

func (r *removed) postpone([]string) {} // a removal needs no indexes

func (r *removed) combined(_ context.Context, _ *host.Host, targets []wanted) (host.Transaction, error) {
	return r.transaction(nameList(targets)), nil
}

func (r *removed) available(_ context.Context, _ *host.Host, jobs [][]wanted) [][]wanted { return jobs }

func (r *removed) reported(changes []host.PackageChange) *value.Map {
	if len(changes) == 0 {
		return nil
	}
	return r.report(changes)
}

// options returns the options of a state without its packages.
func (i *install) options() install {
	o := *i
	o.Name, o.Version, o.Pkgs, o.real, o.refreshErr, o.unreported = "", nil, nil, nil, nil, nil
	return o
}

func (i *install) postpone(warnings []string) { i.unreported = warnings }

func (i *install) combined(ctx context.Context, h *host.Host, targets []wanted) (host.Transaction, error) {
	packages, err := i.resolve(ctx, h, targets)
	return i.transaction(packages), err
}

func (i *install) available(ctx context.Context, h *host.Host, jobs [][]wanted) [][]wanted {
	targets, _ := union(jobs)
	offers, err := h.Packages.Offers(ctx, nameList(targets), i.FromRepo)
	if err != nil {
		return jobs
	}
	lacks := func(w wanted) bool {
		offer, known := offers[w.name]
		version, err := i.chosen(h, w, offer)
		return !known || err != nil || version != "" && !slices.Contains(offer.Versions, version)
	}
	if n := slices.IndexFunc(jobs, func(job []wanted) bool { return slices.ContainsFunc(job, lacks) }); n >= 0 {
		return jobs[:n]
	}
	return jobs
}

func (i *install) reported(changes []host.PackageChange) *value.Map { return changesMap(changes) }

func wantedOf(packages []host.Wanted) []wanted {
	list := make([]wanted, len(packages))
	for n, p := range packages {
		list[n] = wanted{name: p.Name}
	}
	return list
}

// batch applies a state and those directly after it that share its transaction. It returns a report for each of them,
// which is empty if each has to be applied alone, and nil if there are no others.
func batch(ctx context.Context, h *host.Host, first member, others iter.Seq[module.Resource]) []module.Report {
	group := []member{first}
	for o := range others {
		if !first.shares(o) {
			break
		}
		group = append(group, o.(member))
	}
	if len(group) < 2 {
		return nil
	}
	warnings, err := first.refresh(ctx, h)
	jobs := jobsOf(ctx, h, group)
	jobs, t, possible := transactionOf(ctx, h, first, jobs)
	if err != nil || !possible { // each state reports its own error
		first.postpone(warnings)
		return make([]module.Report, len(jobs))
	}
	fetchAhead(ctx, h, t)
	// If the transaction fails, each state does what is left to do, and reports its own error.
	changes, _ := perform(ctx, h, t)
	reports := share(changes, jobs, first)
	reports[0].Warnings = warnings
	return reports
}

// jobsOf returns the packages of each state of a batch. It stops at the first state whose packages cannot be
// determined, or that wants another version of a package of the batch.
func jobsOf(ctx context.Context, h *host.Host, group []member) (jobs [][]wanted) {
	versions := map[string]string{}
	for _, state := range group {
		targets, err := state.lacking(ctx, h)
		if err != nil || slices.ContainsFunc(targets, func(w wanted) bool {
			version, known := versions[w.name]
			return known && version != w.version
		}) {
			break
		}
		for _, w := range targets {
			versions[w.name] = w.version
		}
		jobs = append(jobs, targets)
	}
	return jobs
}

// transactionOf returns the transaction for all jobs, if it is possible and more than one job has packages. Where the
// repositories lack a package, it is for the jobs before that.
func transactionOf(ctx context.Context, h *host.Host, first member,
	jobs [][]wanted) (done [][]wanted, t host.Transaction, possible bool) {
	for {
		targets, acting := union(jobs)
		if acting < 2 {
			return jobs, t, false
		}
		t, err := first.combined(ctx, h, targets)
		if err == nil {
			_, err = h.Packages.Plan(ctx, t)
		}
		if err == nil {
			return jobs, t, true
		}
		some := first.available(ctx, h, jobs)
		if len(some) == len(jobs) {
			return jobs, t, false
		}
		jobs = some
	}
}

// union returns the packages of all jobs, each once, and the number of jobs that have any.
func union(jobs [][]wanted) (targets []wanted, acting int) {
	seen := map[wanted]bool{}
	for _, job := range jobs {
		if len(job) > 0 {
			acting++
		}
		for _, w := range job {
			if !seen[w] {
				targets = append(targets, w)
			}
			seen[w] = true
		}
	}
	return targets, acting
}

// share returns a report for each job of a batch, with the changes of the job's own packages. The report of the first
// job with packages also has the changes of packages that belong to no job.
func share(changes []host.PackageChange, jobs [][]wanted, first member) []module.Report {
	owner, others := map[string]int{}, -1
	for n, job := range jobs {
		if len(job) > 0 && others < 0 {
			others = n
		}
		for _, w := range job {
			if _, known := owner[w.name]; !known {
				owner[w.name] = n
			}
		}
	}
	own := make([][]host.PackageChange, len(jobs))
	for _, c := range changes {
		n, known := owner[c.Name]
		if !known {
			n = others
		}
		own[n] = append(own[n], c)
	}
	reports := make([]module.Report, len(jobs))
	for n := range jobs {
		reports[n] = module.Report{Changes: first.reported(own[n]), Comment: describe(own[n], "")}
	}
	return reports
}
