package pkg

import (
	"context"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// uptodate implements pkg.uptodate: it upgrades all packages.
type uptodate struct {
	selection
	Refresh        bool `sls:"refresh"`
	CacheValidTime int  `sls:"cache_valid_time"`
	Full           bool `sls:"dist_upgrade"` // also upgrades that install or remove other packages
	SkipVerify     bool `sls:"skip_verify"`
	NewConfig      bool `sls:"force_conf_new"`
}

func (u *uptodate) stale(h *host.Host) bool {
	return u.Refresh && !h.Packages.Fresh(time.Duration(u.CacheValidTime)*time.Second)
}

// transaction returns the upgrade of all packages, or of those of pkgs that are installed.
func (u *uptodate) transaction(h *host.Host) (host.Transaction, error) {
	t := host.Transaction{Action: host.UpgradePackages, Unverified: u.SkipVerify, NewConfig: u.NewConfig}
	if u.Full {
		t.Action = host.FullUpgradePackages
	}
	if u.Pkgs == nil {
		return t, nil
	}
	v, err := h.Packages.Installed()
	if err != nil {
		return t, err
	}
	list, err := u.packages(v)
	t.Action, t.OnlyUpgrade = host.InstallPackages, true
	for _, w := range list {
		if v.Version(w.name) != "" {
			t.Packages = append(t.Packages, host.Wanted{Name: w.name})
		}
	}
	return t, err
}

func (u *uptodate) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := h.Packages.Allowed("upgrading packages"); err != nil {
		return module.Diff{}, err
	}
	t, err := u.transaction(h)
	if err != nil {
		return module.Diff{}, err
	}
	changes, err := h.Packages.Plan(ctx, t)
	d := module.Diff{Changes: changesMap(changes), Unknown: u.stale(h), Comment: describe(changes, "would be ")}
	switch {
	case err != nil && d.Unknown:
		d.Comment = fmt.Sprintf("would refresh the indexes; as of now, %v", err)
	case err != nil:
		return module.Diff{}, err
	case len(changes) == 0 && d.Unknown:
		d.Comment = "would refresh the indexes and look for newer versions"
	case len(changes) == 0:
		d.Comment = "there is nothing newer"
	}
	return d, nil
}

func (u *uptodate) Apply(ctx context.Context, h *host.Host, _ module.Diff) (report module.Report, err error) {
	if u.stale(h) {
		if report.Warnings, err = h.Packages.Refresh(ctx); err != nil {
			return report, err
		}
	}
	t, err := u.transaction(h)
	if err != nil {
		return report, err
	}
	changes, err := perform(ctx, h, t)
	report.Changes, report.Comment = changesMap(changes), describe(changes, "")
	if len(changes) == 0 {
		report.Comment = "there is nothing newer"
	}
	return report, err
}
