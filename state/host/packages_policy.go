package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// packageManager is how one family of hosts does it. It keeps nothing between calls.
type packageManager interface {
	family() string
	compare(a, b string) int
	describe(file io.Reader) (Package, error)
	installed() (*Inventory, error)
	offers(ctx context.Context, names []string, release string) (map[string]Offer, error)
	names(ctx context.Context) ([]string, error)
	cached() ([]Package, error)
	// refreshedAt is when the indexes were got; the zero time if nobody knows.
	refreshedAt() time.Time
	// repositoriesAt is when somebody last changed which repositories there are.
	repositoriesAt() time.Time
	refresh(ctx context.Context) (warnings []string, err error)
	plan(ctx context.Context, t Transaction) ([]PackageChange, error)
	perform(ctx context.Context, t Transaction) error
	hold(ctx context.Context, names []string, held bool) error
}

// packages is the part of Packages that is the same everywhere: what may be done, what is kept for
// the run, and that every change is recorded before it is made.
type packages struct {
	manager  packageManager // nil where none is known
	refused  bool
	recorder Recorder

	mu        sync.Mutex
	inventory *Inventory
	refreshed time.Time // when this run did it; zero if it has not
	plans     map[string][]PackageChange
	joint     *jointPlan // see PlanAhead
	alone     bool       // PlanAhead found that transactions cannot be played through together
}

var errNoPackageManager = diag.WithHint(errors.New("no package manager that is known here was found"),
	"packages are managed with apt, dnf, yum, zypper, pacman and apk")

func (p *packages) Allowed(what string) error {
	if p.refused {
		return &Skipped{What: what}
	}
	if p.manager == nil {
		return errNoPackageManager
	}
	return nil
}

func (p *packages) Family() string {
	if p.manager == nil {
		return ""
	}
	return p.manager.family()
}

func (p *packages) Compare(a, b string) int {
	if p.manager == nil {
		return compareDebian(a, b)
	}
	return p.manager.compare(a, b)
}

func (p *packages) Describe(file io.Reader) (Package, error) {
	if p.manager == nil {
		return Package{}, errNoPackageManager
	}
	return p.manager.describe(file)
}

// forget makes the next question read the database again.
func (p *packages) forget() {
	p.mu.Lock()
	p.inventory, p.plans, p.joint, p.alone = nil, nil, nil, false
	p.mu.Unlock()
}

func (p *packages) Installed() (*Inventory, error) {
	if p.manager == nil {
		return NewInventory("", nil), nil
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

func (p *packages) Offers(ctx context.Context, names []string, release string) (map[string]Offer, error) {
	if err := p.Allowed("asking what the repositories have"); err != nil || len(names) == 0 {
		return nil, err
	}
	return p.manager.offers(ctx, names, release)
}

func (p *packages) Names(ctx context.Context) ([]string, error) {
	if err := p.Allowed("listing what the repositories have"); err != nil {
		return nil, err
	}
	return p.manager.names(ctx)
}

func (p *packages) Cached() ([]Package, error) {
	if p.manager == nil {
		return nil, nil
	}
	return p.manager.cached()
}

func (p *packages) Fresh(maxAge time.Duration) bool {
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

func (p *packages) Refresh(ctx context.Context) ([]string, error) {
	if err := p.Allowed("refreshing the package indexes"); err != nil || p.Fresh(0) {
		return nil, err
	}
	start := time.Now()
	warnings, err := p.manager.refresh(ctx)
	p.forget()
	if err == nil {
		p.mu.Lock()
		p.refreshed = start
		p.mu.Unlock()
	}
	return warnings, err
}

func (p *packages) Plan(ctx context.Context, t Transaction) ([]PackageChange, error) {
	if err := p.Allowed(t.String()); err != nil {
		return nil, err
	}
	key := t.key()
	p.mu.Lock()
	changes, ok := p.plans[key]
	if ok {
		p.mu.Unlock()
		return changes, nil
	}
	if p.joint.covers(t) {
		changes = p.joint.take(t)
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

func withPlan(plans map[string][]PackageChange, key string, changes []PackageChange) map[string][]PackageChange {
	if plans == nil {
		plans = map[string][]PackageChange{}
	}
	plans[key] = changes
	return plans
}

func (p *packages) Do(ctx context.Context, t Transaction) error {
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
	defer p.forget()
	return p.manager.perform(ctx, t)
}

func (p *packages) record(names []string) error {
	subjects := make([]Subject, len(names))
	for i, name := range names {
		subjects[i] = Subject{KindPackage, name}
	}
	return replacing(p.recorder, subjects...)
}

func (p *packages) Hold(ctx context.Context, names []string, held bool) error {
	if err := p.Allowed("holding packages"); err != nil || len(names) == 0 {
		return err
	}
	if err := p.record(names); err != nil {
		return err
	}
	defer p.forget()
	return p.manager.hold(ctx, names, held)
}

// String says in a few words what a transaction is to do.
func (t Transaction) String() string {
	switch t.Action {
	case RemovePackages:
		return "removing packages"
	case PurgePackages:
		return "purging packages"
	case UpgradePackages, FullUpgradePackages:
		return "upgrading packages"
	}
	return "installing packages"
}

// key tells transactions apart.
func (t Transaction) key() string {
	recommends := "as set"
	if t.Recommends != nil {
		recommends = fmt.Sprint(*t.Recommends)
	}
	t.Recommends = nil
	type plain Transaction // without its String
	return fmt.Sprintf("%+v recommends %s", plain(t), recommends)
}
