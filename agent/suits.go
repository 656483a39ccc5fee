package agent

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/needs"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// suits compares what the releases of a pair need with what this host has, before any link moves. A
// release that could not start is refused, and not quarantined: the host may get what it lacks.
func (r *run) suits(pair ledger.Pair) error {
	here := needs.Host{Arch: runtime.GOARCH, Root: os.DirFS(r.Layout.Path("/"))}
	var errs []error
	for _, release := range pair.Releases() {
		says, err := needs.Read(walk.Files(r.LayoutOf(release.Project).Release(release.Dir())))
		if err != nil {
			errs = append(errs, exit.WithCode(exit.Refused, fmt.Errorf("reading what %s needs: %w", release, err)))
			continue
		}
		missing, err := says.Needs.Missing(here)
		if err != nil {
			errs = append(errs, fmt.Errorf("looking for what %s needs: %w", release, err))
		}
		if len(missing) > 0 {
			errs = append(errs, exit.WithCode(exit.Refused, diag.WithHint(
				fmt.Errorf("%s does not run on this host: %s", release, strings.Join(missing, "; ")),
				"install what is missing, or build the release for this system (build.base in corpus.yaml)")))
		}
	}
	return errors.Join(errs...)
}

// noteUnread names files of releases that are new to the host which no run will read, though their place says otherwise.
// A build refuses them; this is for releases that another program made.
func (r *run) noteUnread(pair ledger.Pair) {
	for _, release := range pair.Releases() {
		if runs := r.ledger.Runs(); runs != nil && runs.Has(release) {
			continue
		}
		tree := walk.Files(r.LayoutOf(release.Project).Release(release.Dir()))
		says, err := recipe.Load(tree)
		if err != nil {
			continue // which fails the run where it is needed
		}
		var problems diag.List
		if errors.As(says.Unread(tree), &problems) {
			for _, p := range problems {
				r.record.Note("%s: %s; %s", release, p.Error(), p.Hint)
			}
		}
	}
}
