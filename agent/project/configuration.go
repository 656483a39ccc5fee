package project

import (
	"context"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Configuration returns what procedures of a pair's service see as cfg, with its secrets.
func (r *Run) Configuration(ctx context.Context, pair ledger.Pair) (*value.Map, error) {
	request, err := r.Request(ctx, pair)
	if err != nil {
		return nil, err
	}
	distribution, _ := request.Grains.Value("os").(string)
	layers := procedure.Layers{
		Project: pair.Service.Project, Defaults: r.defaults(), Facts: r.facts(pair),
		Env: r.Environment(), OS: distribution, Pillar: request.Override, Given: r.Settings,
	}
	if r.Entry != nil {
		layers.Saved = r.Entry.Settings
	}
	sample := filepath.Join(r.tree(pair), procedure.Dir, "PILLAR.sample")
	if layers.Sample, err = site.FileData(ctx, request, r.Host.Layout, sample); err != nil {
		return nil, err
	}
	return layers.Merge()
}

// defaults returns the lowest layer of the configuration, which every other one overrides.
func (r *Run) defaults() *value.Map {
	user, group := "root", "root"
	if r.Entry != nil && r.Entry.User != "" {
		user, group = r.Entry.User, r.Entry.Group
	}
	return value.NewMap(
		"user", user,
		"group", group,
		"data", value.NewMap(),
		"env_defaults", value.NewMap(),
		"os_defaults", value.NewMap(),
	)
}

// facts returns the highest layer of the configuration: paths, names and versions, which nothing overrides.
func (r *Run) facts(pair ledger.Pair) *value.Map {
	p := r.Host.LayoutOf(pair.Service.Project)
	service, base := r.Host.PairDirs(pair)
	inside := r.Host.Layout.Inside
	return value.NewMap(
		"api_version", ledger.APIVersion,
		"name", p.Name,
		"default_env", r.Environment(),
		"instance", r.Identity.Instance,
		"version", pair.Service.Version,
		"release", service,
		"base_release", base,
		"project_dir", inside(p.Dir),
		"project_root", inside(filepath.Join(p.Dir, "next")),
		"data_root", inside(p.Data()),
		"pillar_root", inside(p.Pillar()),
		"salt_root", filepath.Join(service, procedure.Dir),
		"archives_root", inside(p.Archives()),
		"current_archive_dir", inside(filepath.Join(p.Archives(), r.ID)),
	)
}

// SaveConfiguration writes the configuration of a pair that was deployed into the registry, without its secrets.
func (r *Run) SaveConfiguration(ctx context.Context, pair ledger.Pair) error {
	if r.Test || r.Entry == nil || pair.BaseAlone() {
		return nil
	}
	cfg, err := r.Configuration(ctx, pair)
	if err != nil {
		return err
	}
	now := r.Host.Time().UTC()
	r.Entry.Configuration, r.Entry.Saved = r.Host.Secrets().Value(cfg).(*value.Map), &now
	return r.Host.SaveEntry(r.Entry)
}
