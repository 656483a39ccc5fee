package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// intact checks that every file which the lists of a pair's releases name, and which a run reads or starts, exists. A file
// that has gone from a release is damage and never a reason to do less.
func (r *run) intact(pair ledger.Pair) error {
	for _, release := range pair.Releases() {
		list, err := r.list(release)
		if err != nil {
			return err
		}
		if list == nil {
			continue // a working tree, a release that an agent without lists unpacked, or a damaged list
		}
		if err := r.allThere(release, list); err != nil {
			return err
		}
	}
	return nil
}

// list is what was unpacked of a release, or nil where no list was kept, or it is not one any more: `verify` reports that.
func (a *Agent) list(release artifact.Release) (*manifest.Manifest, error) {
	data, err := os.ReadFile(a.Layout.Tree(release.Project, release.Dir()))
	if found, err := walk.Found(err); err != nil || !found {
		return nil, err
	}
	list, err := manifest.Decode(data)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // content that was damaged says nothing of the release
	}
	return list, nil
}

// allThere looks at each file that a run reads.
func (r *run) allThere(release artifact.Release, list *manifest.Manifest) error {
	dir := r.project(release.Project).Release(release.Dir())
	var gone []string
	for _, e := range list.Entries {
		if !runs(e.Name) {
			continue
		}
		_, err := os.Lstat(filepath.Join(dir, e.Name))
		found, err := walk.Found(err)
		if errors.Is(err, unix.ENOTDIR) { // a file is where a directory was
			return exit.WithCode(exit.Refused, diag.WithHint(fmt.Errorf("%s: %w, and the list of %s names it", release, err, release), damaged))
		}
		if err != nil {
			return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("%s: %w", release, err), "look at it with ls -l; dmesg tells of a failing disk"))
		}
		if !found {
			gone = append(gone, filepath.Join(dir, e.Name))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	more := ""
	if len(gone) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(gone)-1)
	}
	return exit.WithCode(exit.Refused, diag.WithHint(fmt.Errorf("%s does not exist%s, and the list of %s names it", gone[0], more, release),
		damaged))
}

// damaged is the hint for a release that is not as it was unpacked.
const damaged = "find out what removed it (`corpus-agent verify` lists all that differs); to have the release as it was, remove its directory and run `corpus-agent deploy`"

// runs reports whether a run reads or starts a file of a release.
func runs(name string) bool {
	return name == recipe.Name || slices.ContainsFunc([]string{"salt", "states", "pillar", "grains", "hooks", ".salt"}, func(dir string) bool {
		return name == dir || strings.HasPrefix(name, dir+"/")
	})
}

// emptied judges a converge by how many states it had. One that has none, on a host that had some, fails unless the top files
// that say so are as they were signed.
func (r *run) emptied(ctx context.Context, pair ledger.Pair, outcome state.Outcome) error {
	had, has := r.ledger.States, len(outcome.Results)
	if outcome.Output != "" { // another program's states are not counted
		return nil
	}
	if has == 0 && had > 0 {
		why, err := r.notSigned(pair)
		if err != nil {
			return err
		}
		if why != "" {
			return exit.WithCode(exit.Failed, diag.WithHint(fmt.Errorf("no state is meant for this host, which had %d in the last converge: %s", had, why),
				"look at the top file; a host that is to have no states takes a signed release that says so, or a state that does nothing, such as test.nop"))
		}
		r.record.Note("no state is meant for this host any more, as its releases were signed; it had %d in the last converge", had)
	}
	if r.test || had == has || ctx.Err() != nil {
		return nil
	}
	r.ledger.States = has
	return r.save()
}

// notSigned says why the top files of a pair are not as they were signed, or "".
func (r *run) notSigned(pair ledger.Pair) (string, error) {
	for _, release := range pair.Releases() {
		list, err := r.list(release)
		if err != nil {
			return "", err
		}
		if list == nil {
			return fmt.Sprintf("%s is not signed", release), nil
		}
		tree := os.DirFS(r.project(release.Project).Release(release.Dir()))
		for _, top := range []string{"salt/config/states/top.sls", "states/top.sls"} {
			regular := func(e manifest.Entry) bool { return e.Name == top && e.Kind.Regular() }
			if slices.ContainsFunc(list.Entries, regular) && !list.Holds(tree, top) {
				return fmt.Sprintf("%s of %s is not as it was signed", top, release), nil
			}
		}
	}
	return "", nil
}
