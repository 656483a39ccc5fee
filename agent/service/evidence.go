package service

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host/processes"
)

// The tests by which a unit counts as running a release.
const (
	ByProgram   = "its program"
	ByDirectory = "its working directory"
	ByArguments = "its arguments"
	ByStart     = "it started after the release"
	ByReload    = "it was reloaded after the release"
	ByRunning   = "it runs; which release cannot be seen here"
)

// trees holds the directories of a project's releases by their real paths.
type trees struct {
	dir   string            // of the project
	names map[string]string // real directory -> name of the release
}

// treesOf finds the releases of a project, including failed ones that were set aside. The release of a working tree is
// elsewhere.
func treesOf(p Project) trees {
	t := trees{dir: p.Dir, names: map[string]string{}}
	if real, err := filepath.EvalSymlinks(p.Dir); err == nil {
		t.dir = real
	}
	releases, _ := os.ReadDir(filepath.Join(t.dir, "releases"))
	for _, r := range releases {
		if real, err := filepath.EvalSymlinks(filepath.Join(t.dir, "releases", r.Name())); err == nil {
			t.names[real] = r.Name()
		}
	}
	return t
}

// release returns the name of the release that a path is in; "" if there is none. The kernel still reports the path of
// a release that was removed or set aside.
func (t trees) release(file string) string {
	file = strings.TrimSuffix(file, " (deleted)")
	for dir, name := range t.names {
		if below(file, dir) {
			return name
		}
	}
	if rest, ok := strings.CutPrefix(file, t.dir+"/releases/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	if rest, ok := strings.CutPrefix(file, t.dir+"/archives/"); ok {
		parts := strings.SplitN(rest, "/", 3)
		return filepath.Join(append([]string{"archives"}, parts[:min(2, len(parts))]...)...)
	}
	return ""
}

func below(file, dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") }

// evidence returns the release that a process runs from, and the test that shows it; "" if none does.
func (t trees) evidence(p processes.Process) (release, test string) {
	if release = t.release(p.Program); release != "" {
		return release, ByProgram
	}
	if release = t.release(p.Directory); release != "" {
		return release, ByDirectory
	}
	for _, arg := range p.Arguments {
		if release = t.release(arg); release != "" {
			return release, ByArguments
		}
	}
	return "", ""
}

// leads reports whether a setting of a unit leads through one of the links: it contains the link's path, or is a path
// that passes through the link by way of other links.
func leads(setting string, links []string) bool {
	for _, link := range links {
		for rest := setting; ; {
			_, after, found := strings.Cut(rest, link)
			if !found {
				break
			}
			if after == "" || strings.ContainsRune("/ \t\n\"';:&|)", rune(after[0])) {
				return true
			}
			rest = after
		}
	}
	file := strings.TrimLeft(setting, "-!+@:")
	return filepath.IsAbs(file) && !strings.ContainsAny(file, " \n") && passes(filepath.Clean(file), links, maxLinks) &&
		safely(file)
}

// maxLinks is the maximum number of links in a path, as in the kernel.
const maxLinks = 40

// passes follows the links in a path, and reports whether one of them is among links.
func passes(file string, links []string, left int) bool {
	for at := 1; at <= len(file); at++ {
		if at < len(file) && file[at] != '/' {
			continue
		}
		target, err := os.Readlink(file[:at])
		if err != nil || !rootsLink(file[:at]) {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(file[:at]), target)
		}
		next := filepath.Join(target, file[at:])
		for _, link := range links {
			if below(file, link) || below(next, link) {
				return true
			}
		}
		return left > 0 && passes(next, links, left-1)
	}
	return false
}
