package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// options returns the options of apt-get for a transaction.
func (a *apt) options(t host.Transaction) []string {
	argv := []string{"-q", "-y"}
	if t.NewConfig {
		argv = append(argv, "-o", "DPkg::Options::=--force-confnew")
	} else {
		argv = append(argv, "-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Options::=--force-confdef")
	}
	if t.Action == host.InstallPackages {
		// The wanted versions are known by now, and some may be downgrades.
		argv = append(argv, "--allow-downgrades")
	}
	for _, option := range []struct {
		on   bool
		name string
	}{
		{t.Reinstall, "--reinstall"}, {t.OnlyUpgrade, "--only-upgrade"},
		{t.DownloadOnly, "--download-only"}, {t.Unverified, "--allow-unauthenticated"},
		{t.Recommends != nil && *t.Recommends, "--install-recommends"},
		{t.Recommends != nil && !*t.Recommends, "--no-install-recommends"},
	} {
		if option.on {
			argv = append(argv, option.name)
		}
	}
	if t.Release != "" {
		argv = append(argv, "-t", t.Release)
	}
	return argv
}

func (a *apt) order(t host.Transaction) []string {
	verb := map[host.PackageAction]string{host.InstallPackages: "install", host.RemovePackages: "remove",
		host.PurgePackages:   "purge",
		host.UpgradePackages: "upgrade", host.FullUpgradePackages: "dist-upgrade"}[t.Action]
	argv := []string{verb, "--"}
	return append(argv, targets(t)...)
}

// targets returns the packages in the notation of apt and zypper.
func targets(t host.Transaction) []string {
	var all []string
	for _, w := range t.Packages {
		switch {
		case w.File != "":
			all = append(all, w.File)
		case w.Version != "":
			all = append(all, w.Name+"="+w.Version)
		default:
			all = append(all, w.Name)
		}
	}
	return all
}

func (a *apt) perform(ctx context.Context, t host.Transaction) error {
	if err := a.waitForOthers(ctx); err != nil {
		return err
	}
	held := a.heldTargets(t)
	argv := slices.Concat([]string{"apt-get"}, a.options(t), []string{"-o",
		fmt.Sprintf("DPkg::Lock::Timeout=%d", int(a.lockWait.Seconds()))},
		allowHeld(held), a.order(t))
	if a.scoped {
		argv = append(inScope(t.String()), argv...)
	}
	before := a.downloads()
	out, err := a.insist(ctx, argv)
	if err != nil {
		return err
	}
	// Installing a package on hold removes the hold.
	if err := a.hold(ctx, held, true); err != nil {
		return err
	}
	if out.Code != 0 {
		return a.freed(before, a.failure(ctx, t.String(), out))
	}
	return nil
}

// downloads returns the packages that apt has downloaded, whole or in part, and not removed.
func (a *apt) downloads() map[string]bool {
	all := map[string]bool{}
	for _, dir := range []string{aptArchives, aptArchives + "/partial"} {
		names, err := a.files.ReadDir(dir)
		if err != nil {
			continue // there is none, or nothing can be removed from it either
		}
		for _, name := range names {
			if name != "lock" && name != "partial" {
				all[dir+"/"+name] = true
			}
		}
	}
	return all
}

// freed removes the packages that a transaction downloaded if it failed because the disk is full, and returns its
// error. apt removes them only when they are installed, so on a small disk there was less room after each try.
func (a *apt) freed(before map[string]bool, err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	for path := range a.downloads() {
		if !before[path] {
			_ = a.files.Remove(path) // the error of the transaction has the hint to make room
		}
	}
	return err
}

// insist runs a command, and runs it again if another process took a lock first, within the limit.
func (a *apt) insist(ctx context.Context, argv []string) (host.Output, error) {
	ctx, done := unhurried(ctx)
	defer done()
	for start := time.Now(); ; {
		out, err := a.run(ctx, false, argv...)
		if err != nil || !aptLocked(out) || time.Since(start) > a.lockWait {
			return out, err
		}
		if err := a.waitForOthers(ctx); err != nil {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// heldTargets lists the packages on hold that a transaction names.
func (a *apt) heldTargets(t host.Transaction) []string {
	v, err := a.installed()
	if err != nil || t.Action != host.InstallPackages {
		return nil
	}
	var held []string
	for _, w := range t.Packages {
		if v.Held(w.Name) {
			held = append(held, w.Name)
		}
	}
	return held
}

func allowHeld(held []string) []string {
	if len(held) == 0 {
		return nil
	}
	return []string{"--allow-change-held-packages"}
}

func (a *apt) hold(ctx context.Context, names []string, held bool) error {
	if len(names) == 0 {
		return nil
	}
	verb := map[bool]string{true: "hold", false: "unhold"}[held]
	if err := a.waitFor(ctx, "/var/lib/dpkg/lock"); err != nil {
		return err
	}
	out, err := a.run(ctx, false, slices.Concat([]string{"apt-mark", verb, "--"}, names)...)
	if err == nil && out.Code != 0 {
		err = a.failure(ctx, "putting packages on hold", out)
	}
	return err
}
