package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/procedure"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// configuration is what procedures of a pair's service see as cfg.
func (r *run) configuration(ctx context.Context, pair ledger.Pair) (*value.Map, error) {
	cfg, _, err := r.configurations(ctx, pair)
	return cfg, err
}

// configurations gives the configuration, and the same without what was decrypted in it.
func (r *run) configurations(ctx context.Context, pair ledger.Pair) (cfg, hidden *value.Map, err error) {
	request, err := r.request(ctx, pair)
	if err != nil {
		return nil, nil, err
	}
	os, _ := request.Grains.Value("os").(string)
	open := procedure.Layers{Project: pair.Service.Project, Defaults: r.projectDefaults(), Facts: r.projectFacts(pair), Env: r.environment(), OS: os, Given: r.settings}
	if r.entry != nil {
		open.Saved = r.entry.Settings
	}
	closed := open
	project := r.project(pair.Service.Project)
	for _, source := range []struct {
		file         string
		open, closed **value.Map
	}{
		{filepath.Join(r.tree(pair), procedure.Dir, "PILLAR.sample"), &open.Sample, &closed.Sample},
		{filepath.Join(project.Pillar(), "init.sls"), &open.Pillar, &closed.Pillar},
	} {
		*source.open, *source.closed, err = r.data(ctx, request, source.file)
		if err != nil {
			return nil, nil, err
		}
	}
	if cfg, err = open.Merge(); err != nil {
		return nil, nil, err
	}
	hidden, err = closed.Merge()
	return cfg, hidden, err
}

// data renders a file of the project; one that is absent holds nothing.
func (r *run) data(ctx context.Context, request state.Request, file string) (data, hidden *value.Map, err error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return value.NewMap(), value.NewMap(), nil
	}
	return state.Data(ctx, request, r.Layout.Inside(file))
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
	p := r.project(pair.Service.Project)
	service, base := r.pairDirs(pair)
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
	if r.test || r.entry == nil {
		return nil
	}
	_, hidden, err := r.configurations(ctx, pair)
	if err != nil {
		return err
	}
	now := r.now().UTC()
	r.entry.Configuration, r.entry.Saved = hidden, &now
	return r.entry.Save(r.Layout.Registry(r.entry.Name))
}
