package pkg

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// downloaded implements pkg.downloaded: it downloads the files of packages. It never reports changes, since no
// installed package changes.
type downloaded struct{ install }

func (d *downloaded) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := errors.Join(h.Packages.Allowed("downloading packages"), d.chooses(h)); err != nil {
		return module.Diff{}, err
	}
	if d.none() {
		return module.Diff{Comment: "there are no packages to download"}, nil
	}
	targets, err := d.targets(h)
	if err != nil {
		return module.Diff{}, err
	}
	if len(targets) == 0 {
		return module.Diff{Comment: "all of them are downloaded"}, nil
	}
	return module.Diff{Unknown: true, Planned: value.NewMap(),
		Comment: "would download: " + strings.Join(nameList(targets), ", ")}, nil
}

// targets returns the packages without a suitable file in the cache.
func (d *downloaded) targets(h *host.Host) ([]wanted, error) {
	v, err := h.Packages.Installed()
	if err != nil {
		return nil, err
	}
	list, err := d.packages(v)
	if err != nil {
		return nil, err
	}
	files, err := h.Packages.Cached()
	if err != nil {
		return nil, err
	}
	return d.withoutFiles(h, files, list)
}

// withoutFiles returns the packages whose files the cache of the package manager lacks.
func (d *downloaded) withoutFiles(h *host.Host, files []host.Package,
	list []wanted) (targets []wanted, err error) {
	for _, w := range list {
		ok, err := d.hasFile(h, files, w)
		if err != nil {
			return nil, err
		}
		if !ok {
			targets = append(targets, w)
		}
	}
	return targets, nil
}

func (d *downloaded) hasFile(h *host.Host, files []host.Package, w wanted) (bool, error) {
	base, _, _ := strings.Cut(w.name, ":")
	if w.version == "" {
		return slices.ContainsFunc(files, func(p host.Package) bool { return p.Name == base }), nil
	}
	demand, err := newDemand(w.version, d.IgnoreEpoch, h)
	return err == nil && slices.ContainsFunc(files, func(p host.Package) bool {
		return p.Name == base && demand.allows(p.Version)
	}), err
}

func (d *downloaded) Apply(ctx context.Context, h *host.Host, _ module.Diff) (report module.Report, err error) {
	if report.Warnings, err = d.refresh(ctx, h); err != nil {
		return report, err
	}
	targets, err := d.targets(h)
	if err != nil {
		return report, err
	}
	packages, err := d.resolve(ctx, h, targets)
	if err != nil {
		return report, d.blame(ctx, h, nameList(targets), err)
	}
	t := d.transaction(packages)
	t.DownloadOnly, t.Reinstall = true, true // download an installed package too
	report.Comment = "downloaded: " + strings.Join(nameList(targets), ", ")
	return report, d.blame(ctx, h, nameList(targets), h.Packages.Do(ctx, t))
}
