package agent

import (
	"context"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// configuration is what procedures of a pair's service see as cfg, secrets included.
func (r *run) configuration(ctx context.Context, pair ledger.Pair) (*value.Map, error) {
	request, err := r.request(ctx, pair)
	if err != nil {
		return nil, err
	}
	distribution, _ := request.Grains.Value("os").(string)
	layers := procedure.Layers{
		Project: pair.Service.Project, Defaults: r.projectDefaults(), Facts: r.projectFacts(pair),
		Env: r.environment(), OS: distribution, Pillar: request.Override, Given: r.settings,
	}
	if r.entry != nil {
		layers.Saved = r.entry.Settings
	}
	if layers.Sample, err = site.FileData(ctx, request, r.Layout, filepath.Join(r.tree(pair), procedure.Dir, "PILLAR.sample")); err != nil {
		return nil, err
	}
	return layers.Merge()
}

// projectDefaults are the configuration before anybody says anything.
func (r *run) projectDefaults() *value.Map {
	user, group := "root", "root"
	if r.entry != nil && r.entry.User != "" {
		user, group = r.entry.User, r.entry.Group
	}
	return value.NewMap("user", user, "group", group, "data", value.NewMap(), "env_defaults", value.NewMap(), "os_defaults", value.NewMap())
}

// projectFacts are what nobody can say otherwise.
func (r *run) projectFacts(pair ledger.Pair) *value.Map {
	p := r.LayoutOf(pair.Service.Project)
	service, base := r.PairDirs(pair)
	inside := r.Layout.Inside
	return value.NewMap(
		"api_version", ledger.APIVersion, "name", p.Name, "default_env", r.environment(), "instance", r.identity.Instance,
		"version", pair.Service.Version, "release", service, "base_release", base,
		"project_dir", inside(p.Dir), "project_root", inside(filepath.Join(p.Dir, "next")),
		"data_root", inside(p.Data()), "pillar_root", inside(p.Pillar()), "salt_root", filepath.Join(service, procedure.Dir),
		"archives_root", inside(p.Archives()), "current_archive_dir", inside(filepath.Join(p.Archives(), r.id)))
}

// saveProject writes the registry's entry after what succeeded.
func (r *run) saveProject(ctx context.Context, pair ledger.Pair) error {
	if r.test || r.entry == nil || pair.BaseAlone() {
		return nil
	}
	cfg, err := r.configuration(ctx, pair)
	if err != nil {
		return err
	}
	now := r.Time().UTC()
	r.entry.Configuration, r.entry.Saved = r.Secrets().Value(cfg).(*value.Map), &now
	return r.SaveEntry(r.entry)
}
