package fault

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// origin returns the path on the host of the file that declares what failed; "" if no file does, as for a hook.
func (r *Run) origin(pair ledger.Pair, cause error) string {
	var states *state.Failure
	var list diag.List
	var one *diag.Diagnostic
	var broken *self.Broken
	var units *service.Failed
	var sick *health.Unhealthy
	switch {
	case errors.As(cause, &units):
		return r.recipeOf(pair, units.Project())
	case errors.As(cause, &sick):
		return r.recipeOf(pair, sick.Project())
	case errors.As(cause, &broken):
		return r.changedSelf(pair)
	case errors.As(cause, &states):
		return r.declaredIn(pair, states)
	case errors.As(cause, &list) && len(list) > 0:
		return list[0].Pos.File
	case errors.As(cause, &one):
		return one.Pos.File
	}
	return ""
}

// recipeOf returns the path of corpus.yaml, which declares units and probes, in a project's release of a pair; "" for a
// project that is not in the pair, and for a probe of the host.
func (r *Run) recipeOf(pair ledger.Pair, project string) string {
	service, base := r.Host.PairDirs(pair)
	switch {
	case pair.Base != nil && project == pair.Base.Project:
		return filepath.Join(base, recipe.Name)
	case project == pair.Service.Project:
		return filepath.Join(service, recipe.Name)
	}
	return ""
}

// declaredIn returns the file that declares the first state that failed. For a template of a release this is its
// source. Other engines report the name of the SLS file alone.
func (r *Run) declaredIn(pair ledger.Pair, failed *state.Failure) string {
	step := failed.First.Step
	source, _ := step.Chunk.Value("source").(string)
	if step.SLS() == recipe.Name && filepath.IsAbs(source) {
		return source
	}
	if file := step.Pos.File; filepath.IsAbs(file) {
		return file
	}
	if filepath.IsAbs(source) {
		return source
	}
	return r.findSLS(pair, step.SLS())
}

// findSLS returns the path of an SLS file in the releases of a pair, service first; "" if none has it. It returns the
// path of a file that cannot be read, too.
func (r *Run) findSLS(pair ledger.Pair, name string) string {
	if name == "" {
		return ""
	}
	path := strings.ReplaceAll(name, ".", "/")
	for _, dir := range layout.StateRoots(r.Host.PairDirs(pair)) {
		for _, file := range []string{filepath.Join(dir, path+".sls"), filepath.Join(dir, path, "init.sls")} {
			if found, err := walk.Exists(r.Host.Layout.Path(file)); found || err != nil && !errors.Is(err, syscall.ENOTDIR) {
				return file
			}
		}
	}
	return ""
}

// changedSelf returns the file that declares the state that changed the agent; "" if no state did.
func (r *Run) changedSelf(pair ledger.Pair) string {
	files := r.SelfTest.Changed()
	for _, step := range slices.Backward(r.Report.Steps) {
		if step.Changes.Len() == 0 {
			continue
		}
		about := slices.Contains(files, r.Host.Layout.Path(step.Name)) || strings.Contains(step.Name, self.Name)
		for _, name := range step.Changes.Names() {
			about = about || strings.HasPrefix(name, self.Name)
		}
		if file := r.findSLS(pair, step.SLS); about && file != "" {
			return file
		}
	}
	return ""
}
