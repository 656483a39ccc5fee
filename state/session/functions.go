package session

import (
	"context"
	"path"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// facts returns the data and methods of the session for functions.
func (s *Session) facts() function.Facts {
	return function.Facts{
		ID: s.ID, Grains: s.Grains, GrainsFile: s.GrainsFile, Options: s.options, Host: s.Host,
		Pillar: func() *value.Map { return s.pillar }, Refresh: s.refreshed,
		States: s.states, Pillars: s.pillars, Trees: s.Trees,
		Trusted: s.trusted, Render: s.renderAs, Match: s.matches,
		Packages: packages{s.Host}, Units: units{s.Host.Units},
		Network: s.Host.Network, Resolver: s.Host.Network, Web: s.Host.Network,
		Modules: s.registry, Listed: s.everyState, Own: s.own.described, Calls: stateSignatures(),
		Log: s.log, Version: s.Version, Retcode: func(code int) { s.retcode = code },
	}
}

// newFunctions returns the table of the functions that templates may call, and the table that also has the
// functions that act on the host.
func (s *Session) newFunctions() (reading, acting TreeFunctions) {
	s.agentActions = s.Tables.Acting(s.facts())
	return TreeFunctions{s.Tables.Reading(s.facts()), s.own}, TreeFunctions{s.agentActions, s.own}
}

func (s *Session) log(level, message string) {
	if s.Log != nil {
		s.Log(level, s.Redactor.Text(message))
	}
}

// refreshed compiles the pillar again, for the environment env if it is not empty, and with the data of override in
// place of the session's.
func (s *Session) refreshed(ctx context.Context, env string, override *value.Map) (*value.Map, error) {
	settings := s.Settings
	settings.Options = s.Options.Clone()
	if env != "" {
		settings.Options.Set("pillarenv", env)
	}
	if override.Len() > 0 {
		settings.Override = override
	}
	other := New(settings)
	defer other.Close()
	data, err := other.Pillar(ctx)
	if err != nil && s.partial {
		return withErrors(data, err), nil
	}
	return data, err
}

// trusted returns an error if an unprivileged user can change the file of a tree or of the host that a URL names.
func (s *Session) trusted(url, file string) error {
	return s.sources.checkTrusted(parsePlace(url, "").scheme, file)
}

// renderAs renders a file with the renderers of pipe.
func (s *Session) renderAs(ctx context.Context, src render.Source, pipe string, vars *value.Map) (any, error) {
	if path.IsAbs(src.File) {
		scheme := "file"
		if src.Name != src.File {
			scheme = "salt"
		}
		if err := s.sources.checkTrusted(scheme, src.File); err != nil {
			return nil, err
		}
	}
	r := *s.renderer
	r.Default = pipe
	all := s.slsVars(src, "", s.pillar)
	all.Update(vars)
	doc, err := r.Render(withTree(ctx, s.states), src, all)
	if err != nil {
		return nil, err
	}
	return doc.Value, nil
}

// matches reports whether the host matches a query of match.compound and similar functions.
func (s *Session) matches(q function.Query) (bool, error) {
	target := s.target(s.pillar)
	if q.ID != "" {
		target.ID = q.ID
	}
	return target.MatchDelimited(q.Kind, q.Expression, q.Delimiter)
}

// packages implements the access of functions to the host's package database.
type packages struct{ host *host.Host }

func (p packages) Versions() (map[string]string, error) {
	inventory, err := p.host.Packages.Installed()
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, name := range inventory.Names() {
		versions[name] = inventory.Version(name)
	}
	return versions, nil
}

func (p packages) Candidates(ctx context.Context, names []string, release string) (map[string]string, error) {
	offers, err := p.host.Packages.Offers(ctx, names, release)
	if err != nil {
		return nil, err
	}
	candidates := make(map[string]string, len(offers))
	for name, offer := range offers {
		if offer.Candidate != "" {
			candidates[name] = offer.Candidate
		}
	}
	return candidates, nil
}

func (p packages) Upgrades(ctx context.Context, full bool) (map[string]string, error) {
	action := host.UpgradePackages
	if full {
		action = host.FullUpgradePackages
	}
	changes, err := p.host.Packages.Plan(ctx, host.Transaction{Action: action})
	versions := map[string]string{}
	for _, c := range changes {
		if c.Old != "" && c.New != "" {
			versions[c.Name] = c.New
		}
	}
	return versions, err
}

func (p packages) Compare(a, b string) int { return p.host.Packages.Compare(a, b) }

// units implements the access of functions to the host's init system.
type units struct{ host.Units }

func (u units) Unit(ctx context.Context, name string) (function.Unit, bool, error) {
	unit, err := u.Units.Unit(ctx, name, "")
	return function.Unit{Running: unit.Running(), Enabled: unit.StartsAtBoot(), Masked: unit.Masked}, unit.Found, err
}
