package pkg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// installed implements pkg.installed: it installs packages in an acceptable version.
type installed struct {
	install
	Files        any    `sls:"sources"`
	AllowUpdates bool   `sls:"allow_updates"` // a version newer than the wanted one is acceptable
	Reinstall    bool   `sls:"reinstall"`
	Hold         *bool  `sls:"hold"`
	Debconf      string `sls:"debconf"`
	Verify       any    `sls:"pkg_verify"`
	SLSEnv       string `sls:"__env__"`
	// Coming lists this state and the later pkg states of the run. It is set only in a dry run of a whole program.
	Coming *value.List `sls:"__coming__"`

	sources Sources
	planned *planned
}

// job holds what a pkg.installed state has to do.
type job struct {
	all     []wanted // all packages of the state
	targets []wanted // missing packages and those with another version
	again   []wanted // packages to reinstall
	files   []file   // the files of targets and again if the state has sources
	holds   []hold
}

func (j *job) empty() bool { return len(j.targets) == 0 && len(j.again) == 0 && len(j.holds) == 0 }

func (i *installed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := errors.Join(h.Packages.Allowed("installing packages"), i.chooses(h)); err != nil {
		return module.Diff{}, err
	}
	if i.none() {
		return module.Diff{Comment: "there are no packages to install"}, nil
	}
	j, err := i.job(ctx, h)
	before := i.removePlanned(&j)
	switch {
	case err != nil:
		return module.Diff{}, err
	case j.empty() && len(before) > 0:
		return module.Diff{Comment: "an earlier state installs " + strings.Join(before, ", ")}, nil
	case j.empty():
		return module.Diff{Comment: "installed: " + strings.Join(nameList(j.all), ", ")}, nil
	case host.Decides(ctx):
		return module.Diff{Changes: plannedMap(nameList(j.all), "installed")}, nil
	case len(j.targets) == 0 && len(j.again) == 0:
		return module.Diff{Changes: withHolds(value.NewMap(), j.holds), Planned: value.NewMap(),
			Comment: "the hold of packages would change"}, nil
	}
	return i.predict(ctx, h, j)
}

func (i *installed) Valid() error {
	switch {
	case i.Pkgs != nil && i.Files != nil:
		return errors.New("pkgs and sources cannot both be given")
	case value.Truth(i.Verify):
		return diag.Argument.Hint(errors.New("pkg_verify does not exist for this package manager"),
			"run `dpkg --verify`, `rpm --verify` or the like in a cmd.run state")
	}
	return nil
}

// job compares the installed packages with the wanted ones.
func (i *installed) job(ctx context.Context, h *host.Host) (job, error) {
	if err := i.Valid(); err != nil {
		return job{}, err
	}
	v, err := h.Packages.Installed()
	if err != nil {
		return job{}, err
	}
	if i.Files != nil {
		return i.fileJob(ctx, h, v)
	}
	var j job
	if j.all, err = i.packages(v); err != nil {
		return j, err
	}
	if j.all, err = i.latest(ctx, h, j.all); err != nil {
		return j, err
	}
	if err := i.findRealPackages(ctx, h, v, j.all); err != nil {
		return j, err
	}
	for _, w := range j.all {
		if err := i.sort(h, v, w, &j); err != nil {
			return j, err
		}
	}
	j.holds = holdsFor(v, j.all, i.Hold)
	return j, nil
}

// sort adds a package to the targets of the job or to those to reinstall, or to neither.
func (i *installed) sort(h *host.Host, v *host.Inventory, w wanted, j *job) error {
	ok, err := i.present(h, v, w)
	if err == nil && !ok && i.AllowUpdates && w.version != "" {
		var d demand
		d, err = newDemand(w.version, i.IgnoreEpoch, h)
		ok = d.orNewer().allowsAny(v.Versions(w.name))
	}
	switch {
	case err != nil:
		return err
	case ok && i.Reinstall:
		j.again = append(j.again, w)
	case !ok && i.OnlyUpgrade && v.Version(w.name) == "":
		return diag.Packages.Hint(fmt.Errorf("package %s is not installed, and only_upgrade installs nothing new", w.name),
			"leave out only_upgrade")
	case !ok:
		j.targets = append(j.targets, w)
	}
	return nil
}

// latest returns the list with the version "latest" replaced by the candidate of the repositories.
func (i *installed) latest(ctx context.Context, h *host.Host, list []wanted) ([]wanted, error) {
	var names []string
	for _, w := range list {
		if w.version == "latest" {
			names = append(names, w.name)
		}
	}
	offers, err := h.Packages.Offers(ctx, names, i.FromRepo)
	if err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	for n, w := range list {
		if w.version == "latest" {
			list[n].version = offers[w.name].Candidate
		}
	}
	return list, nil
}

// predict makes the package manager simulate the transaction. A failure is an error only if the state does not
// refresh the indexes, since the transaction may succeed with new ones.
func (i *installed) predict(ctx context.Context, h *host.Host, j job) (module.Diff, error) {
	d := module.Diff{Planned: plannedMap(nameList(append(slices.Clone(j.targets), j.again...)), "installed")}
	changes, err := i.plan(ctx, h, j)
	if err != nil {
		if i.Refresh != nil && !*i.Refresh && i.Files == nil {
			return module.Diff{}, err
		}
		d.Unknown = true
		d.Comment = fmt.Sprintf("would install: %s; as of now, %v", strings.Join(d.Planned.Names(), ", "), err)
		d.Missing = i.lacks(ctx, h, j, err)
		return d, nil
	}
	d.Changes = withHolds(changesMap(changes), j.holds)
	d.Comment = describe(changes, "would be ")
	return d, nil
}

// lacks returns an error that names the packages without a candidate in the repositories, if a plan failed because of
// them. It returns nil if the indexes were never fetched or are older than a change of the repositories.
func (i *installed) lacks(ctx context.Context, h *host.Host, j job, why error) []error {
	if i.Files != nil || !h.Packages.Fresh(ever) {
		return nil
	}
	names := nameList(append(slices.Clone(j.targets), j.again...))
	offers, err := h.Packages.Offers(ctx, names, i.FromRepo)
	names = slices.DeleteFunc(names, func(name string) bool { return offers[name].Candidate != "" })
	if err != nil || len(names) == 0 {
		return nil
	}
	return []error{host.WithMissing(why, host.APackage, names...)}
}

// ever exceeds the age of any index.
const ever = 100 * 365 * 24 * time.Hour

// plan returns the changes that the package manager predicts.
func (i *installed) plan(ctx context.Context, h *host.Host, j job) ([]host.PackageChange, error) {
	order, err := i.order(ctx, h, j)
	if err != nil {
		return nil, err
	}
	if err := i.planAhead(ctx, h, order); err != nil {
		return nil, err
	}
	changes, err := h.Packages.Plan(ctx, order)
	if err != nil {
		return nil, err
	}
	i.note(changes)
	return i.reinstalls(h, j, changes, nil)
}

// order returns the transaction of a job.
func (i *installed) order(ctx context.Context, h *host.Host, j job) (host.Transaction, error) {
	packages, err := j.onHost()
	if i.Files == nil {
		packages, err = i.resolve(ctx, h, append(slices.Clone(j.targets), j.again...))
	}
	t := i.transaction(packages)
	t.Reinstall = i.Reinstall
	return t, err
}

// reinstalls returns changes without the entries that keep their version, and with the packages that were reinstalled.
// If the transaction failed, it returns changes as they are.
func (i *installed) reinstalls(h *host.Host, j job, changes []host.PackageChange,
	failure error) ([]host.PackageChange, error) {
	v, err := h.Packages.Installed()
	if err != nil || failure != nil {
		return changes, err
	}
	changes = structsort.Without(changes, func(c host.PackageChange) bool { return c.Old == c.New })
	for _, w := range j.again {
		if !slices.ContainsFunc(changes, func(c host.PackageChange) bool { return c.Name == w.name }) {
			changes = append(changes, host.PackageChange{Name: w.name, Old: v.Version(w.name), New: v.Version(w.name)})
		}
	}
	structsort.Func(changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return changes, nil
}

func (i *installed) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	var report module.Report
	j, err := i.job(ctx, h)
	if err != nil {
		return report, err
	}
	if len(j.targets) > 0 || len(j.again) > 0 {
		if report.Warnings, err = i.refresh(ctx, h); err != nil {
			return report, err
		}
		if err := i.perform(ctx, h, &report); err != nil {
			return report, i.blame(ctx, h, nameList(j.all), err)
		}
	}
	report.Changes = withHolds(report.Changes, j.holds)
	report.Comment = strings.Trim(report.Comment+"; "+describeHolds(j.holds), "; ")
	return report, setHolds(ctx, h, j.holds)
}

// perform installs the packages and records all changes in report, even after a failure part-way. It computes the job
// again, since refreshed indexes may have other versions.
func (i *installed) perform(ctx context.Context, h *host.Host, report *module.Report) error {
	j, err := i.job(ctx, h)
	if err != nil || len(j.targets) == 0 && len(j.again) == 0 {
		return err
	}
	if i.Debconf != "" {
		if err := preseed(ctx, h, i.sources, i.Debconf, i.SLSEnv); err != nil {
			return err
		}
	}
	defer j.discard(h)
	if err := j.fetch(ctx, h, i); err != nil {
		return err
	}
	order, err := i.order(ctx, h, j)
	if err != nil {
		return err
	}
	fetchAhead(ctx, h, order)
	changes, failure := perform(ctx, h, order)
	changes, err = i.reinstalls(h, j, changes, failure)
	report.Changes, report.Comment = changesMap(changes), describe(changes, "")
	if failure != nil || err != nil {
		return errors.Join(failure, err)
	}
	v, err := h.Packages.Installed()
	if missing := i.missing(h, v, j.targets); err == nil && len(missing) > 0 {
		err = notThere(h, missing)
	}
	return err
}

// Watched returns the state itself: a pkg state does nothing else when a watched state changes.
func (i *installed) Watched() module.Resource { return i }
