package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// dnf is the package manager of Red Hat's family: dnf, its successor dnf5, or yum before them. Most of their commands
// are the same.
type dnf struct {
	client
	program string // dnf5, dnf or yum
}

func (d *dnf) family() string {
	if d.program == "yum" {
		return "yum"
	}
	return "dnf"
}

func (d *dnf) compare(a, b string) int { return order.RPM(a, b) }

func (d *dnf) describe(file io.Reader) (host.Package, error) { return describeRPM(file) }

func (d *dnf) installed() (*host.Inventory, error) {
	locks, err := d.versionLocks()
	if err != nil {
		return nil, err
	}
	return d.readRPM(locks.holds)
}

func (d *dnf) refreshedAt() time.Time { return d.newest(d.cache()) }

func (d *dnf) repositoriesAt() time.Time {
	return d.newest("/etc/yum.repos.d", "/etc/yum.conf", "/etc/dnf/dnf.conf")
}

func (d *dnf) refresh(ctx context.Context) ([]string, error) {
	argv := []string{d.program, "-y", "--setopt=exit_on_lock=True", "makecache", "--refresh"}
	if d.program == "yum" {
		argv = []string{d.program, "-y", "--setopt=exit_on_lock=1", "makecache", "fast"}
		if out, err := d.insist(ctx, false, dnfLocked, d.program, "clean", "expire-cache"); err != nil || out.Code != 0 {
			return nil, errors.Join(err, host.Complaint(out))
		}
	}
	out, err := d.change(ctx, "refreshing the package indexes", dnfLocked, argv...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, orPassing(ctx, dnfLocked, out, whyFailed("refreshing the package indexes", out, dnfClues()))
	}
	var warnings []string
	for line := range strings.SplitSeq(out.Stderr, "\n") {
		if text, ok := strings.CutPrefix(line, "Error: "); ok {
			warnings = append(warnings, redact.URLs(text))
		}
	}
	return warnings, nil
}

// options returns the options for a transaction.
func (d *dnf) options(t host.Transaction) []string {
	argv := fromRepository(t.Release)
	for _, option := range []struct {
		on   bool
		name string
	}{
		{t.Unverified, "--nogpgcheck"}, {t.DownloadOnly, "--downloadonly"},
		{t.Recommends != nil && *t.Recommends, "--setopt=install_weak_deps=True"},
		{t.Recommends != nil && !*t.Recommends, "--setopt=install_weak_deps=False"},
		{d.program == "dnf5" && t.Action == host.InstallPackages, "--allow-downgrade"},
	} {
		if option.on {
			argv = append(argv, option.name)
		}
	}
	return argv
}

// orders returns the commands of a transaction: installed packages are upgraded, downgraded or reinstalled by separate
// commands.
func (d *dnf) orders(v *host.Inventory, t host.Transaction) [][]string {
	switch t.Action {
	case host.RemovePackages, host.PurgePackages:
		return [][]string{append([]string{"remove"}, plainNames(t)...)}
	case host.UpgradePackages, host.FullUpgradePackages:
		return [][]string{{"upgrade"}}
	}
	byVerb := map[string][]string{}
	for _, w := range t.Packages {
		verb := d.verb(v, t, w)
		byVerb[verb] = append(byVerb[verb], rpmSpec(w))
	}
	var orders [][]string
	for _, verb := range []string{"install", "upgrade", "downgrade", "reinstall"} {
		if specs := byVerb[verb]; len(specs) > 0 {
			orders = append(orders, append([]string{verb}, specs...))
		}
	}
	return orders
}

func (d *dnf) verb(v *host.Inventory, t host.Transaction, w host.Wanted) string {
	there := v.Versions(w.Name)
	switch {
	case len(there) == 0 || len(there) > 1: // several versions are installed, as with kernels
		return "install"
	case t.Reinstall && (w.Version == "" || order.RPM(there[0], w.Version) == 0):
		return "reinstall"
	case w.File == "" && w.Version == "":
		return "upgrade"
	case d.program == "yum" && w.Version != "" && order.RPM(there[0], w.Version) > 0:
		return "downgrade"
	}
	return "install"
}

func plainNames(t host.Transaction) []string {
	names := make([]string, len(t.Packages))
	for i, w := range t.Packages {
		names[i] = w.Name
	}
	return names
}

// rpmSpec returns the argument for a package: a file, a name, or a name with a version and then the architecture.
func rpmSpec(w host.Wanted) string {
	switch {
	case w.File != "":
		return w.File
	case w.Version == "":
		return w.Name
	}
	name, arch := w.Name, ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && slices.Contains(rpmArchs(), name[i+1:]) {
		name, arch = name[:i], name[i:]
	}
	return name + "-" + w.Version + arch
}

func rpmArchs() []string {
	return []string{"x86_64", "i386", "i486", "i586", "i686", "noarch", "aarch64", "armv7hl", "ppc64le", "s390x",
		"riscv64"}
}

func (d *dnf) perform(ctx context.Context, t host.Transaction) error {
	v, err := d.installed()
	if err != nil {
		return err
	}
	if err := d.waitForRPM(ctx); err != nil {
		return err
	}
	return aroundHold(ctx, heldOf(v, t), d.hold, func() error {
		for _, order := range d.orders(v, t) {
			argv := slices.Concat([]string{d.program, "-y", "--setopt=exit_on_lock=True"}, d.options(t), order)
			out, err := d.change(ctx, t.String(), dnfLocked, argv...)
			if err != nil {
				return err
			}
			if out.Code != 0 {
				return orPassing(ctx, dnfLocked, out, whyFailed(t.String(), out, dnfClues()))
			}
		}
		return nil
	})
}

// plan makes dnf simulate a transaction.
func (d *dnf) plan(ctx context.Context, t host.Transaction) ([]host.PackageChange, error) {
	v, err := d.installed()
	if err != nil {
		return nil, err
	}
	if err := checkPackageNames(t, "+._-"); err != nil {
		return nil, err
	}
	locks, err := d.versionLocks()
	if err != nil {
		return nil, err
	}
	held := heldOf(v, t)
	if len(held) == 0 {
		locks = nil
	}
	var changes []host.PackageChange
	for _, order := range d.orders(v, t) {
		argv := slices.Concat(d.fromCache("--assumeno"), d.withoutLocks(locks), d.options(t), order)
		more, err := d.simulate(ctx, v, t, argv)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	structsort.Func(changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(changes), refuseHeld(v, changes, held, d.program+" versionlock delete")
}

// simulate returns the changes that a command would make. The command ends with a failure, because its question is
// answered with no.
func (d *dnf) simulate(ctx context.Context, v *host.Inventory, t host.Transaction, argv []string) ([]host.PackageChange,
	error) {
	out, err := d.insist(ctx, true, dnfLocked, argv...)
	if err != nil {
		return nil, err
	}
	said := out.Stdout + out.Stderr
	refused := strings.Contains(said, "Operation aborted") || strings.Contains(said, "Exiting on user command")
	if out.Code != 0 && !refused {
		return nil, orPassing(ctx, dnfLocked, out, whyFailed(t.String(), out, dnfClues()))
	}
	changes, err := parseDnfPlan(d.program, out.Stdout, v)
	if err == nil && refused && len(changes) == 0 && !t.DownloadOnly {
		return nil, fmt.Errorf("%s: %w", t, notUnderstood(d.program, host.LastLine(out.Stdout)))
	}
	return changes, err
}
