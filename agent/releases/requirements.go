package releases

import (
	"errors"
	"fmt"
	"io/fs"
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

// CheckRequirements returns an error if the host lacks what the releases of a pair require. It is called before any
// link moves. The release is not quarantined, since the host may meet the requirements later.
func (r *Run) CheckRequirements(pair ledger.Pair) error {
	here := needs.Host{Arch: runtime.GOARCH, Root: os.DirFS(r.Host.Layout.Path("/"))}
	var errs []error
	for _, release := range pair.Releases() {
		says, err := needs.Read(walk.Files(r.Host.LayoutOf(release.Project).Release(release.Dir())))
		if err != nil {
			errs = append(errs, exit.WithCode(exit.Refused, fmt.Errorf("reading what %s needs: %w", release, err)))
			continue
		}
		missing, err := says.Needs.Missing(here)
		if err != nil {
			errs = append(errs, fmt.Errorf("looking for what %s needs: %w", release, err))
		}
		if len(missing) > 0 {
			errs = append(errs, exit.WithCode(exit.Refused, diag.Needs.Hint(
				fmt.Errorf("%s does not run on this host: %s", release, strings.Join(missing, "; ")),
				"install what is missing, or build the release for this system (build.base in corpus.yaml)")))
		}
	}
	return errors.Join(errs...)
}

// fresh returns the releases of a pair that are not deployed.
func (r *Run) fresh(pair ledger.Pair) (releases []artifact.Release) {
	runs := r.Ledger.Runs()
	for _, release := range pair.Releases() {
		if runs == nil || !runs.Has(release) {
			releases = append(releases, release)
		}
	}
	return releases
}

// NoteUnread notes files of new releases that no run reads, although their place suggests it. `corpus build` refuses
// such files, so that this concerns releases that another program built.
func (r *Run) NoteUnread(pair ledger.Pair) {
	for _, release := range r.fresh(pair) {
		tree := walk.Files(r.Host.LayoutOf(release.Project).Release(release.Dir()))
		says, err := recipe.Load(tree)
		if err != nil {
			continue // the run fails later, where it needs the recipe
		}
		var problems diag.List
		if errors.As(says.Unread(tree), &problems) {
			for _, p := range problems {
				r.Record.Note("%s: %s; %s", release, p.Error(), p.Hint)
			}
		}
		if base := pair.Base; (base == nil || !base.Is(release)) && statesOfBase(tree) {
			r.Record.Note("%s: states/top.sls is read in a base release alone; move states to salt/config/states", release)
		}
	}
}

// statesOfBase reports whether a tree has its states where a base release has them, and none where a service has them.
func statesOfBase(tree fs.FS) bool {
	_, base := fs.Stat(tree, "states/top.sls")
	_, service := fs.Stat(tree, "salt/config/states")
	return base == nil && errors.Is(service, fs.ErrNotExist)
}

// NoteInterpreters notes interpreters that scripts of new releases name and that the host does not have. It refuses no
// release for them, since a state may install them, and some scripts are never run.
func (r *Run) NoteInterpreters(pair ledger.Pair) {
	if r.Host.Layout.Relocated() && !r.Host.Chroot {
		return // no script is run below another root
	}
	for _, release := range r.fresh(pair) {
		tree := walk.Files(r.Host.LayoutOf(release.Project).Release(release.Dir()))
		says, err := needs.Read(tree)
		named := says.Needs.Interpreters
		if err == nil && named == nil { // its build did not record them
			named, err = needs.Scripts(tree, "/srv")
		}
		absent, unread := needs.Absent(named, needs.Host{Root: os.DirFS(r.Host.Layout.Path("/"))})
		if err = errors.Join(err, unread); err != nil {
			r.Record.Note("which interpreters %s needs is unknown: %v", release, err)
		} else if len(absent) > 0 {
			r.Record.Note("scripts of %s name programs that are not on this host: %s", release, strings.Join(absent, ", "))
		}
	}
}
