package agent

import (
	"context"
	"errors"

	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// prune removes what is kept no longer.
func (r *run) prune(ctx context.Context) error {
	errs := []error{r.Journal().Prune(r.Config.KeepReleases + r.Config.KeepFailed)}
	names := []string{artifact.Base, r.identity.Service}
	if r.Alone != "" {
		names = []string{r.Alone} // what base needs stands in the host's own ledger
	}
	for _, name := range names {
		project := r.LayoutOf(name)
		errs = append(errs,
			fetch.PruneReleases(ctx, project, r.Config.KeepReleases, func(dir string) bool { return r.used(project, dir) }),
			fetch.PruneArchives(ctx, project, r.Config.KeepFailed, r.Config.KeepArchives),
			fetch.PruneLists(r.Layout, project))
	}
	return errors.Join(errs...)
}
