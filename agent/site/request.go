package site

import (
	"context"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// LinkedDirs returns the links that lead to a pair's releases, with paths as the host sees them.
func (s *Site) LinkedDirs(pair ledger.Pair) (service, base string) {
	switch {
	case s.Alone != "":
		service = filepath.Join(s.Layout.Inside(s.LayoutOf(s.Alone).Dir), "next")
	case !pair.BaseAlone():
		service = filepath.Join(s.Layout.Inside(s.Layout.ServiceLink()), "next")
	}
	if pair.Base != nil {
		base = filepath.Join(s.Layout.Inside(s.Layout.BaseLink()), "current")
	}
	return service, base
}

// EngineRequest returns the request to converge two release directories. Errors of grains are returned as warnings.
func (s *Site) EngineRequest(ctx context.Context, id grains.Identity, service, base string) (request state.Request,
	warnings []error, err error) {
	baseGrains := ""
	if base != "" {
		baseGrains = s.Layout.Path(base)
	}
	dirs := GrainDirs{Base: baseGrains}
	for _, root := range layout.StateRoots(service, base) {
		dirs.States = append(dirs.States, s.Layout.Path(root))
	}
	all, warnings, err := s.Grains(ctx, id, dirs)
	if err != nil {
		return state.Request{}, warnings, err
	}
	h, err := s.StateHost()
	if err != nil {
		return state.Request{}, warnings, err
	}
	request = state.Request{
		Host: h, Grains: all, Service: service, Base: base, Remote: s.Remote,
		Buckets: s.Buckets, Version: s.Version,
		TopRoots:   s.Config.Top == TopMerge,
		StateRoots: layout.StateRoots(service, base), PillarRoots: layout.PillarRoots(service, base),
		WorkDir: s.Layout.State(), Redactor: s.Secrets(), Failhard: s.Config.Failhard, Grace: s.Config.StopTimeout,
		StrictArguments: s.Config.StrictArguments, Options: s.minionOptions(),
		StateOutput: s.Config.StateOutput, StateVerbose: s.Config.StateVerbose,
	}
	if id.Service == "" || s.WithoutPillar {
		return request, warnings, nil
	}
	if err := s.CheckPillar(id.Service); err != nil {
		return request, warnings, err
	}
	// The project's pillar on this host has priority over that of its releases.
	request.Override, err = FileData(ctx, request, s.Layout, filepath.Join(s.LayoutOf(id.Service).Pillar(), "init.sls"))
	if s.Skips(err) {
		err = nil
	}
	return request, warnings, err
}

// minionOptions returns the settings that are options of a Salt minion.
func (s *Site) minionOptions() *value.Map {
	options := value.NewMap()
	if len(s.Config.EventCommand) > 0 {
		options.Set("event_command", value.Strings(s.Config.EventCommand...))
	}
	if s.Config.ExtPillar != nil {
		options.Set("ext_pillar", s.Config.ExtPillar)
		options.Set("ext_pillar_first", s.Config.ExtPillarFirst)
	}
	return options
}

// TopMerge is the value of the setting `top` that uses the top files of both base and the service.
const TopMerge = "merge"

// FileData renders a file of the host. It returns nil if the file does not exist.
func FileData(ctx context.Context, request state.Request, l layout.Layout, file string) (*value.Map, error) {
	if found, err := walk.Exists(file); err != nil {
		return nil, exit.WithCode(exit.Usage, diag.Records.Hint(err, "make it readable by the agent, or remove it"))
	} else if !found {
		return nil, nil
	}
	return state.Data(ctx, request, l.Inside(file))
}
