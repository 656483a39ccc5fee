package packaging

import (
	"io/fs"
	"path"
	"slices"
)

// Unneeded returns the files and directories of a tree that a forge or a build uses and hosts do not, such as
// workflows, a report of `corpus check` and packages of programs, unless one of the patterns leaves them out.
func Unneeded(tree fs.FS, leaveOut []string) (names []string, err error) {
	for _, pattern := range []string{".github", ".gitlab", ".gitlab-ci.yml", ".circleci", ".forgejo", "root.json",
		"*.sarif", "*.deb", "*.rpm", "*/*.deb", "*/*.rpm"} {
		found, err := fs.Glob(tree, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !leaves(leaveOut, name) && !leaves(leaveOut, path.Dir(name)) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
