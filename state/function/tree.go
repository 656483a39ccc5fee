package function

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function/ospath"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/roots"
)

// StateTree returns the state tree, or an error if there is none.
func (f *Facts) StateTree() (*roots.Roots, error) {
	if f.States == nil {
		return nil, errors.New("there is no state tree")
	}
	return f.States, nil
}

// Locate returns the file that a URL names; ok is false if it does not exist. It does not download.
func (f *Facts) Locate(url, env string) (file string, ok bool, err error) {
	scheme, rest, hasScheme := strings.Cut(url, "://")
	switch {
	case !hasScheme && path.IsAbs(url):
		ok, err := f.treeFile(url)
		return url, ok, err
	case !hasScheme:
		return "", false, diag.Call.Hint(fmt.Errorf("%q is neither an absolute path nor a URL", url),
			"write salt://%s for a file of the state tree", url)
	case scheme == "file":
		ok, err := f.treeFile(rest)
		return rest, ok, err
	case scheme != "salt":
		return "", false, diag.Call.Hint(fmt.Errorf("%s would be downloaded, and templates do not download", url),
			"download it in a file.managed state, or read it with http.query")
	}
	return f.locateInTree(rest, env)
}

// locateInTree finds a file of the state tree by the rest of a URL after salt://, which may name the environment.
func (f *Facts) locateInTree(rest, env string) (file string, ok bool, err error) {
	tree, err := f.StateTree()
	if err != nil {
		return "", false, err
	}
	name, named, _ := strings.Cut(rest, "?saltenv=")
	if named != "" {
		env = named
	}
	return tree.Find(f.Environment(env), name)
}

// HostOf returns the host whose files contain the result of Locate for a URL, since state trees may be outside of the
// host's files.
func (f *Facts) HostOf(url string) *host.Host {
	if f.Trees != nil && strings.HasPrefix(url, "salt://") {
		return &host.Host{Files: f.Trees}
	}
	return f.Host
}

func (f *Facts) treeFile(file string) (bool, error) {
	info, err := f.Host.Files.Stat(file)
	ok, err := there(err)
	return ok && info.IsRegular(), err
}

// TreeText returns the content of the file that a URL names, or False if it does not exist.
func (f *Facts) TreeText(url, env string) (any, error) {
	return f.text(url, env, func(string, string) error { return nil })
}

// TrustedText is like TreeText for a file that root runs or renders. It refuses a file that an unprivileged user can
// change.
func (f *Facts) TrustedText(url, env string) (any, error) {
	if f.Trusted == nil {
		return f.TreeText(url, env)
	}
	return f.text(url, env, f.Trusted)
}

func (f *Facts) text(url, env string, check func(url, file string) error) (any, error) {
	file, ok, err := f.Locate(url, env)
	if err != nil || !ok {
		return false, err
	}
	if err := check(url, file); err != nil {
		return nil, err
	}
	return ReadText(f.HostOf(url), file)
}

// IsFile reports whether a path, with ~ expanded, leads to a regular file.
func (f *Facts) IsFile(p string) bool {
	info, err := f.Host.Following().Files.Stat(ospath.Expand(f.Host, p))
	return err == nil && info.IsRegular()
}
