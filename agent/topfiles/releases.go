package topfiles

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// ownTop reports whether the service of a pair has a top file.
func (r *Run) ownTop(pair ledger.Pair) bool {
	return r.hasState(pair, func(name string) bool { return name == "top.sls" })
}

// declaresStates reports whether the service of a pair has SLS files.
func (r *Run) declaresStates(pair ledger.Pair) bool {
	return r.hasState(pair, func(name string) bool { return name != "top.sls" && path.Ext(name) == ".sls" })
}

// hasState reports whether a file below the state roots of a pair's service has a name, relative to its root.
func (r *Run) hasState(pair ledger.Pair, is func(name string) bool) (found bool) {
	service, _ := r.Host.PairDirs(pair)
	for _, root := range layout.StateRoots(service, "") {
		_ = fs.WalkDir(walk.Files(r.Host.Layout.Path(root)), ".", func(name string, _ fs.DirEntry, err error) error {
			if err == nil && is(name) {
				found = true
				return fs.SkipAll
			}
			return nil // there is no note about files that cannot be read
		})
	}
	return found
}

// notSigned describes a top file of a pair that is not as it was signed; "" if there is none.
func (r *Run) notSigned(pair ledger.Pair) (string, error) {
	for _, release := range pair.Releases() {
		list, err := r.Host.Held().List(release)
		if err != nil {
			return "", err
		}
		if list == nil {
			return fmt.Sprintf("%s is not signed", release), nil
		}
		tree := walk.Files(r.Host.LayoutOf(release.Project).Release(release.Dir()))
		for _, top := range []string{"salt/config/states/top.sls", "states/top.sls"} {
			regular := func(e manifest.Entry) bool { return e.Name == top && e.Kind.Regular() }
			if slices.ContainsFunc(list.Entries, regular) && !list.Holds(tree, top) {
				return fmt.Sprintf("%s of %s is not as it was signed", top, release), nil
			}
		}
	}
	return "", nil
}
