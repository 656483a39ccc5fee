// Package packages reads and changes the packages of a host with its package manager: apt, dnf, yum, zypper, pacman
// or apk.
//
// Packages has the common part: which operations are allowed, what is cached for a run, and that every change is
// recorded first. Each family has a file with its name; the files ending in _plan predict the changes of a
// transaction, and those ending in _errors interpret messages. client runs the programs of all families. Package
// order compares versions.
package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/outage"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
)

// packageManager is the package manager of one family of distributions. It keeps no state between calls.
type packageManager interface {
	family() string
	compare(a, b string) int
	describe(file io.Reader) (host.Package, error)
	installed() (*host.Inventory, error)
	offers(ctx context.Context, names []string, release string) (map[string]host.Offer, error)
	names(ctx context.Context) ([]string, error)
	cached() ([]host.Package, error)
	// refreshedAt returns the time when the indexes were fetched, or the zero time if that is unknown.
	refreshedAt() time.Time
	// repositoriesAt returns the time of the last change of the list of repositories.
	repositoriesAt() time.Time
	refresh(ctx context.Context) (warnings []string, err error)
	plan(ctx context.Context, t host.Transaction) ([]host.PackageChange, error)
	perform(ctx context.Context, t host.Transaction) error
	hold(ctx context.Context, names []string, held bool) error
}

// Packages implements host.Packages. It has the part that all package managers share: it refuses changes that are not
// allowed, caches reads for the run, and records every change before it is made.
type Packages struct {
	manager  packageManager // nil if no known package manager was found
	refused  bool
	recorder host.ChangeRecorder

	mu        sync.Mutex
	inventory *host.Inventory
	refreshed time.Time // time of the refresh of this run; zero for none
	outage    error     // an *outage.Error, or an error of the host, that kept the last refresh from a repository
	plans     map[string][]host.PackageChange
	joint     map[string]*jointPlan // see PlanAhead; by kind of transactions, nil if it is impossible for that kind
	ahead     *ahead                // see FetchAhead
}

var errNoPackageManager = diag.Program.Hint(errors.New("no package manager that is known here was found"),
	"packages are managed with apt, dnf, yum, zypper, pacman and apk")

// New returns the Packages of a host, with the package manager that it has.
func New(h *host.Host, o host.Options) *Packages {
	return &Packages{manager: packageManagerOf(h.Files, h.Commands, h.Env, o), refused: o.Refuses(), recorder: o.Recorder}
}

// Changed drops the cached packages if a file of the database was written.
func (p *Packages) Changed(path string) {
	if holdsPackages(path) {
		p.Forget()
	}
}

// Allowed returns an error if packages cannot be changed: a *host.Skipped, or the error for a host without a known
// package manager.
func (p *Packages) Allowed(what string) error {
	if p.refused {
		return &host.Skipped{What: what}
	}
	if p.manager == nil {
		return errNoPackageManager
	}
	return nil
}

// Family returns the name of the package manager, such as apt; "" for none.
func (p *Packages) Family() string {
	if p.manager == nil {
		return ""
	}
	return p.manager.family()
}

// Compare compares two versions of a package and returns -1, 0 or 1. Without a package manager, it compares them as
// dpkg does.
func (p *Packages) Compare(a, b string) int {
	if p.manager == nil {
		return order.Debian(a, b)
	}
	return p.manager.compare(a, b)
}

// Describe reads name and version out of a package file.
func (p *Packages) Describe(file io.Reader) (host.Package, error) {
	if p.manager == nil {
		return host.Package{}, errNoPackageManager
	}
	return p.manager.describe(file)
}

// Forget drops the cached database.
func (p *Packages) Forget() {
	p.mu.Lock()
	p.inventory, p.plans, p.joint = nil, nil, nil
	p.mu.Unlock()
}

// Installed returns the package database, which is read again only after something may have changed it.
func (p *Packages) Installed() (*host.Inventory, error) {
	if p.manager == nil {
		return host.NewInventory("", nil), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inventory == nil {
		v, err := p.manager.installed()
		if err != nil {
			return nil, err
		}
		p.inventory = v
	}
	return p.inventory, nil
}

// Offers returns the available versions of packages, by name. It prefers those of release.
func (p *Packages) Offers(ctx context.Context, names []string, release string) (map[string]host.Offer, error) {
	if err := p.Allowed("querying the repositories"); err != nil || len(names) == 0 {
		return nil, err
	}
	return p.manager.offers(ctx, names, release)
}

// Names lists all packages of the repositories.
func (p *Packages) Names(ctx context.Context) ([]string, error) {
	if err := p.Allowed("listing the packages of the repositories"); err != nil {
		return nil, err
	}
	return p.manager.names(ctx)
}

// Cached lists the package files that were downloaded and kept.
func (p *Packages) Cached() ([]host.Package, error) {
	if p.manager == nil {
		return nil, nil
	}
	return p.manager.cached()
}

// Fresh reports whether a Refresh would do nothing.
func (p *Packages) Fresh(maxAge time.Duration) bool {
	if p.manager == nil {
		return false
	}
	p.mu.Lock()
	at := p.refreshed
	p.mu.Unlock()
	if at.IsZero() {
		at = p.manager.refreshedAt()
		if time.Since(at) >= maxAge {
			return false
		}
	}
	return !p.manager.repositoriesAt().After(at)
}

// Refresh fetches the indexes of the repositories. The warnings name those that could not be fetched.
func (p *Packages) Refresh(ctx context.Context) ([]string, error) {
	if err := p.Allowed("refreshing the package indexes"); err != nil || p.Fresh(0) {
		return nil, err
	}
	start := time.Now()
	warnings, err := p.manager.refresh(ctx)
	p.Forget()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outage = partialOutage(ctx, warnings)
	if err == nil {
		p.refreshed = start
		p.ahead.stop()
		p.ahead = nil // new indexes may have other packages to download
	}
	return warnings, err
}

// partialOutage returns the outage, or the error of the host, that kept a refresh from fetching all indexes, or nil if
// there was none.
func partialOutage(ctx context.Context, warnings []string) error {
	for _, warning := range warnings {
		if errno := process.PrintedByHost(warning); errno != 0 {
			return diag.Packages.Hint(&ofHost{errors.New(warning), errno}, "%s", hintOf(errno, "make room there"))
		}
		if err := outage.Recognize(ctx, warning, errors.New(warning)); outage.Passing(err) {
			return err
		}
	}
	return nil
}

// Outage is part of host.Packages.
func (p *Packages) Outage() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outage
}

// Plan returns the changes that a transaction would make.
func (p *Packages) Plan(ctx context.Context, t host.Transaction) ([]host.PackageChange, error) {
	if err := p.Allowed(t.String()); err != nil {
		return nil, err
	}
	key := keyOf(t)
	p.mu.Lock()
	changes, ok := p.plans[key]
	if ok {
		p.mu.Unlock()
		return changes, nil
	}
	if j := p.joint[kindOf(t)]; j.covers(t) {
		changes = j.take(t)
		p.plans = withPlan(p.plans, key, changes)
		p.mu.Unlock()
		return changes, nil
	}
	p.mu.Unlock()
	changes, err := p.manager.plan(ctx, t)
	if err == nil {
		p.mu.Lock()
		p.plans = withPlan(p.plans, key, changes)
		p.mu.Unlock()
	}
	return changes, err
}

func withPlan(plans map[string][]host.PackageChange, key string,
	changes []host.PackageChange) map[string][]host.PackageChange {
	if plans == nil {
		plans = map[string][]host.PackageChange{}
	}
	plans[key] = changes
	return plans
}

// Do performs a transaction in one call of the package manager.
func (p *Packages) Do(ctx context.Context, t host.Transaction) error {
	changes, err := p.Plan(ctx, t)
	if err != nil {
		return err
	}
	if !t.DownloadOnly {
		var names []string
		for _, c := range changes {
			names = append(names, c.Name)
		}
		if err := p.record(names); err != nil {
			return err
		}
	}
	p.adopt(ctx, changes)
	defer p.Forget()
	return p.manager.perform(ctx, t)
}

func (p *Packages) record(names []string) error {
	subjects := make([]host.Subject, len(names))
	for i, name := range names {
		subjects[i] = host.Subject{Kind: host.KindPackage, Name: name}
	}
	return host.Record(p.recorder, subjects...)
}

// Hold puts packages on hold or removes the hold.
func (p *Packages) Hold(ctx context.Context, names []string, held bool) error {
	if err := p.Allowed("holding packages"); err != nil || len(names) == 0 {
		return err
	}
	if err := p.record(names); err != nil {
		return err
	}
	defer p.Forget()
	return p.manager.hold(ctx, names, held)
}

// keyOf returns a key that is unique to a transaction.
func keyOf(t host.Transaction) string {
	recommends := "as set"
	if t.Recommends != nil {
		recommends = fmt.Sprint(*t.Recommends)
	}
	t.Recommends = nil
	type plain host.Transaction // without its String
	return fmt.Sprintf("%+v recommends %s", plain(t), recommends)
}
