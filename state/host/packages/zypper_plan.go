package packages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
)

// order returns the command of a transaction.
func (z *zypper) order(v *host.Inventory, t host.Transaction, test bool) []string {
	var argv []string
	switch t.Action {
	case host.RemovePackages, host.PurgePackages:
		argv = []string{"remove"}
	case host.UpgradePackages:
		argv = []string{"update", "--auto-agree-with-licenses"}
	case host.FullUpgradePackages:
		argv = []string{"dist-upgrade", "--auto-agree-with-licenses"}
	default:
		argv = append([]string{"install", "--auto-agree-with-licenses"}, z.options(v, t)...)
	}
	if test {
		argv = append(argv, "--dry-run")
	} else if t.DownloadOnly {
		argv = append(argv, "--download-only")
	}
	return append(append(argv, "--"), targets(t)...)
}

func (z *zypper) options(v *host.Inventory, t host.Transaction) []string {
	older := slices.ContainsFunc(t.Packages, func(w host.Wanted) bool {
		there := v.Versions(w.Name)
		return w.File != "" || len(there) == 1 && w.Version != "" && order.RPM(there[0], w.Version) > 0
	})
	var argv []string
	for _, option := range []struct {
		on   bool
		name string
	}{
		{older, "--oldpackage"}, {t.Reinstall, "--force"},
		{t.Recommends != nil && *t.Recommends, "--recommends"},
		{t.Recommends != nil && !*t.Recommends, "--no-recommends"},
		{t.Release != "", "--from=" + t.Release},
		{t.Unverified, "--allow-unsigned-rpm"},
	} {
		if option.on {
			argv = append(argv, option.name)
		}
	}
	return argv
}

// unverified returns argv with the global option to skip signature checks if t.Unverified is set.
func unverified(argv []string, t host.Transaction) []string {
	if !t.Unverified {
		return argv
	}
	return slices.Insert(slices.Clone(argv), 1, "--no-gpg-checks")
}

// plan makes zypper simulate a transaction. zypper cannot simulate the change of a held package that the transaction
// names, so planHeld predicts it.
func (z *zypper) plan(ctx context.Context, t host.Transaction) ([]host.PackageChange, error) {
	v, err := z.installed()
	if err != nil {
		return nil, err
	}
	if err := checkPackageNames(t, "+._-:"); err != nil {
		return nil, err
	}
	if held := heldOf(v, t); len(held) > 0 {
		return z.planHeld(ctx, v, t, held)
	}
	return z.simulate(ctx, v, t)
}

// planHeld predicts the changes of a transaction with packages on hold: for the packages on hold from the offers of the
// repositories, and for the others by a simulation.
func (z *zypper) planHeld(ctx context.Context, v *host.Inventory, t host.Transaction,
	held []string) ([]host.PackageChange, error) {
	others := t
	others.Packages = structsort.Without(t.Packages, func(w host.Wanted) bool {
		return slices.Contains(held, w.Name)
	})
	var changes []host.PackageChange
	if len(others.Packages) > 0 {
		var err error
		if changes, err = z.simulate(ctx, v, others); err != nil {
			return nil, err
		}
	}
	offers, err := z.offers(ctx, held, t.Release)
	if err != nil {
		return nil, err
	}
	for _, w := range t.Packages {
		if !slices.Contains(held, w.Name) {
			continue
		}
		version := w.Version
		if w.File != "" {
			p, err := z.describeFile(w.File)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", w.File, err)
			}
			version = p.Version
		} else if version == "" {
			version = offers[w.Name].Candidate
		}
		changes = append(changes, host.PackageChange{Name: w.Name, Old: v.Version(w.Name), New: version})
	}
	structsort.Func(changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return changes, nil
}

func (z *zypper) simulate(ctx context.Context, v *host.Inventory, t host.Transaction) ([]host.PackageChange, error) {
	out, err := z.insist(ctx, true, zypperLocked, unverified(z.quiet(z.order(v, t, true)...), t)...)
	if err != nil {
		return nil, err
	}
	answer, parseErr := parseZypper(out.Stdout)
	if zypperFailed(out) && (t.Action != host.RemovePackages && t.Action != host.PurgePackages ||
		out.Code != zypperNothing) {
		return nil, z.failure(ctx, t.String(), out)
	}
	if parseErr != nil {
		return nil, parseErr
	}
	return answer.changes(v)
}

func (z *zypper) perform(ctx context.Context, t host.Transaction) error {
	v, err := z.installed()
	if err != nil {
		return err
	}
	if err := z.waitForRPM(ctx); err != nil {
		return err
	}
	return aroundHold(ctx, heldOf(v, t), z.hold, func() error {
		out, err := z.change(ctx, t.String(), zypperLocked, unverified(z.quiet(z.order(v, t, false)...), t)...)
		if err == nil && zypperFailed(out) {
			err = z.failure(ctx, t.String(), out)
		}
		return err
	})
}
