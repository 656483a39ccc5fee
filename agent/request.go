package agent

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state"
)

// learnSecrets adds the secrets of a pair's pillar to the redactor. Hooks run before this process decrypts the pillar,
// and an engine that is a program decrypts it in its own process; both may print secrets. A pillar that does not
// compile fails the run where it is needed; the values that were decrypted until then are added.
func (r *run) learnSecrets(ctx context.Context, pair ledger.Pair) {
	if slices.ContainsFunc(r.decrypted, pair.Same) {
		return
	}
	r.decrypted = append(r.decrypted, pair)
	service, base := r.PairDirs(pair)
	request, _, err := r.Agent.EngineRequest(ctx, r.identity, service, base)
	if err != nil {
		return // the converge returns the same error
	}
	s := state.SessionFor(request)
	defer s.Close()
	_, _ = s.Pillar(ctx) // as above
}

// request returns the request to converge a pair. Its host records what converging replaces.
func (r *run) request(ctx context.Context, pair ledger.Pair) (state.Request, error) {
	request, err := r.readOnlyRequest(ctx, pair)
	if err != nil || r.test {
		return request, err
	}
	if request.Host, err = r.undo.Recording(pair); err != nil {
		return request, err
	}
	request.Host.Units = cmp.Or(r.StateUnits, request.Host.Units)
	if r.beforeLinks {
		request.Host.Units, err = r.serving.UnitsBeforeLinks(pair, request.Host.Units)
	}
	return request, err
}

// readOnlyRequest returns the request to converge a pair. A pair that links name is converged through the links, so
// that paths in SLS files, which people write as /srv/service/next, resolve. A dry run of another pair uses the release
// directories.
func (r *run) readOnlyRequest(ctx context.Context, pair ledger.Pair) (state.Request, error) {
	service, base := r.PairDirs(pair)
	if !r.test || r.linking.Linked(pair) {
		service, base = r.LinkedDirs(pair)
	}
	request, warnings, err := r.Agent.EngineRequest(ctx, r.identity, service, base)
	reasons := warnings
	if r.ledger.Good == nil { // its states may install python3
		reasons = failure.ExceptAbsentPython(reasons)
	}
	if unknown := failure.OfGrains(reasons); err == nil && unknown != nil {
		return request, unknown
	}
	for _, w := range warnings {
		r.record.Note("grains: %v", failure.Unexecuted(r.Layout, w))
	}
	if err != nil {
		return request, err
	}
	// base alone renders with the pillar of the deployed releases, as it did before
	if r.WithoutPillar && r.ledger.Good != nil {
		service, _ := r.PairDirs(*r.ledger.Good) // links of it may be lost
		request.PillarRoots = layout.PillarRoots(service, base)
	}
	request.Templates, err = r.Templates(base, service)
	request.Test = r.test
	request.Log = r.log
	if r.test && !r.linking.Linked(pair) {
		request.Host = request.Host.WithLinks(r.plannedLinks(pair))
	}
	return request, err
}

// log notes warnings and errors of templates in the report. Messages of lower levels are for developers and left out.
func (r *run) log(level, message string) {
	if level == "warning" || level == "error" || level == "critical" {
		r.record.Note("%s", message)
	}
}

// plannedLinks maps the links through which states of a deploy read a pair's releases to the releases' directories:
// while states run, next of each project and current of base lead to them, and current of the service to the release
// before.
func (a *Agent) plannedLinks(pair ledger.Pair) map[string]string {
	links := map[string]string{}
	for _, release := range pair.Releases() {
		p := a.LayoutOf(release.Project)
		dirs, names := []string{p.Dir}, []string{"next"}
		switch {
		case pair.Base != nil && release.Project == pair.Base.Project:
			dirs, names = append(dirs, a.Layout.BaseLink()), append(names, "current")
		case a.Alone == "":
			dirs = append(dirs, a.Layout.ServiceLink())
		}
		for _, dir := range dirs {
			for _, name := range names {
				links[a.Layout.Inside(filepath.Join(dir, name))] = a.Layout.Inside(p.Release(release.Dir()))
			}
		}
	}
	return links
}

// engine returns the engine that converges the host.
func (r *run) engine() (state.Engine, error) {
	if r.Engine != nil {
		return r.Engine, nil
	}
	engine, err := state.ByName(r.Config.Engine, r.Config.EngineCommand)
	return engine, exit.WithCode(exit.Usage, err)
}
