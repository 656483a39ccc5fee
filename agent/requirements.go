package agent

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
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

// newReleases are the releases of a pair that are not deployed yet.
func (r *run) newReleases(pair ledger.Pair) (releases []artifact.Release) {
	runs := r.ledger.Runs()
	for _, release := range pair.Releases() {
		if runs == nil || !runs.Has(release) {
			releases = append(releases, release)
		}
	}
	return releases
}

// noteUnread names files of releases that are new to the host which no run will read, though their place says
// otherwise. A build refuses them; this is for releases that another program made.
func (r *run) noteUnread(pair ledger.Pair) {
	for _, release := range r.newReleases(pair) {
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

// noteInterpreters names programs that scripts of releases new to the host start and that the host does not have. No
// release is refused for them: a state may install them, and not every script is run.
func (r *run) noteInterpreters(pair ledger.Pair) {
	if r.Layout.Relocated() && !r.Chroot {
		return // no script is run there
	}
	for _, release := range r.newReleases(pair) {
		tree := walk.Files(r.LayoutOf(release.Project).Release(release.Dir()))
		says, err := needs.Read(tree)
		named := says.Needs.Interpreters
		if err == nil && named == nil { // which its build did not record
			named, err = needs.Scripts(tree, "/srv")
		}
		absent, unread := needs.Absent(named, needs.Host{Root: os.DirFS(r.Layout.Path("/"))})
		if err = errors.Join(err, unread); err != nil {
			r.record.Note("which interpreters %s needs is unknown: %v", release, err)
		} else if len(absent) > 0 {
			r.record.Note("scripts of %s name programs that are not on this host: %s", release, strings.Join(absent, ", "))
		}
	}
}
