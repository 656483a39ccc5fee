package host

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// Packages reads and changes the packages of a host with its package manager.
//
// Reading never takes the package manager's locks and never reaches the network: installed packages come from its
// database, available ones from the indexes of the last refresh.
type Packages interface {
	// Allowed returns an error if packages cannot be changed: a *Skipped, or the error for a host without a known
	// package manager.
	Allowed(what string) error
	// Family returns the name of the package manager, such as apt.
	Family() string
	// Compare compares two versions of a package. It returns -1, 0 or 1.
	Compare(a, b string) int
	// Describe reads name and version out of a package file. It reads no more than it needs.
	Describe(file io.Reader) (Package, error)
	// Installed returns the package database. It is cached until something may have changed it. Callers must not change
	// the result.
	Installed() (*Inventory, error)

	// Offers returns the available versions of packages, by name; release is a release to prefer. Names that the
	// repositories do not have are absent; a name that other packages merely provide has no versions.
	Offers(ctx context.Context, names []string, release string) (map[string]Offer, error)
	// Names lists all packages that the repositories have.
	Names(ctx context.Context) ([]string, error)
	// Fresh reports whether a Refresh would do nothing, because this run has done one or the indexes are younger than
	// maxAge.
	Fresh(maxAge time.Duration) bool
	// Refresh fetches the indexes of the repositories. Repositories that could not be fetched are returned in
	// warnings; an error means that none could be used.
	Refresh(ctx context.Context) (warnings []string, err error)
	// Outage returns the outage because of which the last Refresh did not get all indexes; nil for none.
	Outage() error

	// Plan returns the changes that a transaction would make.
	Plan(ctx context.Context, t Transaction) ([]PackageChange, error)
	// Do performs a transaction, in one call of the package manager.
	Do(ctx context.Context, t Transaction) error
	// Hold puts packages on hold, so that only transactions that name them change them, or removes the hold.
	Hold(ctx context.Context, names []string, held bool) error
	// Cached lists the package files that were downloaded and kept.
	Cached() ([]Package, error)
}

// PackageAction is the kind of a transaction.
type PackageAction int

// The actions. UpgradePackages removes nothing and installs nothing new; FullUpgrade does so if necessary.
const (
	InstallPackages PackageAction = iota
	RemovePackages
	PurgePackages
	UpgradePackages
	FullUpgradePackages
)

// Transaction is one call of the package manager. The zero value of each option is safe for an unattended run.
type Transaction struct {
	Action   PackageAction
	Packages []Wanted // not for upgrades

	Release      string // prefer packages from this release
	Recommends   *bool  // install recommended packages; nil leaves it to the host's settings
	Reinstall    bool   // also packages that are installed already
	OnlyUpgrade  bool   // no package that is not installed yet
	DownloadOnly bool
	Unverified   bool // also from unsigned repositories
	NewConfig    bool // take the package's version of configuration files that were changed by hand
}

// Wanted is a package in a transaction: by name, at a version if one is given, or as a file.
type Wanted struct {
	Name    string
	Version string
	File    string // absolute path of a package file
}

// Offer has the versions of a package in the repositories.
type Offer struct {
	Candidate string   // the version that would be installed; "" for none
	Versions  []string // all versions, newest first
}

// PackageChange is the change of one package; a version of "" means that it is not installed.
type PackageChange struct {
	Name     string
	Old, New string
	// Purged is true if configuration files of an earlier removal are deleted; Old is then the version that left them.
	Purged bool
}

// String describes a transaction in a few words.
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

// workKey is the key of a context's counter of work that must not be interrupted.
type workKey struct{}

// Tracking returns ctx with a counter of work that continues after ctx is done. busy reports whether there is any.
func Tracking(ctx context.Context) (tracked context.Context, busy func() bool) {
	var n atomic.Int32
	return context.WithValue(ctx, workKey{}, &n), func() bool { return n.Load() > 0 }
}

// Working adds n to the counter of Tracking in ctx.
func Working(ctx context.Context, n int32) {
	if count, ok := ctx.Value(workKey{}).(*atomic.Int32); ok {
		count.Add(n)
	}
}
