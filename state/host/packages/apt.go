package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// apt is the package manager of Debian and its derivatives: dpkg and apt-get.
type apt struct{ client }

func (a *apt) family() string { return "apt" }

func (a *apt) compare(x, y string) int { return order.Debian(x, y) }

func (a *apt) describe(file io.Reader) (host.Package, error) { return describeDeb(file) }

func (a *apt) installed() (*host.Inventory, error) { return readDpkg(a.files) }

// run runs an apt command in an environment in which it asks no questions.
func (a *apt) run(ctx context.Context, quiet bool, argv ...string) (host.Output, error) {
	env := a.variables("DEBIAN_FRONTEND=noninteractive", "DEBIAN_PRIORITY=critical",
		"APT_LISTCHANGES_FRONTEND=none", "APT_LISTBUGS_FRONTEND=none", "UCF_FORCE_CONFFOLD=1")
	return a.runIn(ctx, env, quiet, argv)
}

// ask runs a command that only reads. If apt's cache files are missing or outdated, ask adds options that prevent apt
// from writing them.
func (a *apt) ask(ctx context.Context, argv ...string) (host.Output, error) {
	if !a.cacheIsCurrent() {
		argv = append([]string{argv[0], "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="}, argv[1:]...)
	}
	return a.run(ctx, true, argv...)
}

const (
	aptLists   = "/var/lib/apt/lists"
	aptCache   = "/var/cache/apt/pkgcache.bin"
	aptSources = "/etc/apt/sources.list"
)

func (a *apt) cacheIsCurrent() bool {
	built := a.modified(aptCache)
	for _, source := range []string{dpkgStatus, aptLists, "/etc/apt/preferences", "/etc/apt/preferences.d"} {
		if !a.modified(source).Before(built) {
			return false
		}
	}
	return a.repositoriesAt().Before(built)
}

// modified returns the time of the last change of a file or directory; the zero time if it does not exist.
func (a *apt) modified(path string) time.Time {
	info, err := a.files.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.Modified
}

// refreshedAt returns the time when the lists were fetched, or the zero time if there are none, as in many images.
func (a *apt) refreshedAt() time.Time {
	names, _ := a.files.ReadDir(aptLists) // without the directory there are none
	if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "_") }) {
		return time.Time{}
	}
	return a.modified(aptLists)
}

func (a *apt) repositoriesAt() time.Time {
	dir := aptSources + ".d"
	last := a.modified(aptSources)
	files, _ := a.files.ReadDir(dir) // without the directory there are none
	for _, path := range append(files, "") {
		if at := a.modified(dir + "/" + path); at.After(last) {
			last = at
		}
	}
	return last
}

func (a *apt) offers(ctx context.Context, names []string, release string) (map[string]host.Offer, error) {
	argv := []string{"apt-cache", "-q"}
	if release != "" {
		argv = append(argv, "-o", "APT::Default-Release="+release)
	}
	out, err := a.ask(ctx, slices.Concat(argv, []string{"policy", "--"}, names)...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, a.failure(ctx, "querying the repositories", out)
	}
	return parsePolicy(out.Stdout), nil
}

// parsePolicy parses the output of apt-cache policy. The lines of a package are indented below its name: its versions
// by five columns, and the repositories of a version by more. parsePolicy leaves out a version that is not installed
// and that only dpkg's status file has, since no repository offers it.
func parsePolicy(text string) map[string]host.Offer {
	offers := map[string]host.Offer{}
	name, version, there := "", "", false
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		o := offers[name]
		switch {
		case len(fields) == 0:
			continue
		case line[0] != ' ':
			name, version, o = strings.TrimSuffix(fields[0], ":"), "", host.Offer{}
		case fields[0] == "Candidate:" && len(fields) > 1 && fields[1] != "(none)":
			o.Candidate = fields[1]
		case len(line) > 5 && line[5] != ' ' && (line[:5] == "     " || line[:5] == " *** "):
			version, there = strings.Fields(line[5:])[0], line[:5] == " *** "
			if there {
				o.Versions = append(o.Versions, version)
			}
		case version != "" && !there && fields[len(fields)-1] != "/var/lib/dpkg/status":
			o.Versions, there = append(o.Versions, version), true
		}
		offers[name] = o
	}
	for name, o := range offers {
		if !slices.Contains(o.Versions, o.Candidate) {
			o.Candidate = ""
			offers[name] = o
		}
	}
	return offers
}

func (a *apt) names(ctx context.Context) ([]string, error) {
	out, err := a.ask(ctx, "apt-cache", "pkgnames")
	if err != nil {
		return nil, err
	}
	names := strings.Fields(out.Stdout)
	slices.Sort(names)
	return names, nil
}

const aptArchives = "/var/cache/apt/archives"

// cached returns the packages in apt's archives, by the names of the files: name_version_architecture.deb, with special
// characters escaped as in URLs.
func (a *apt) cached() ([]host.Package, error) {
	names, err := a.files.ReadDir(aptArchives)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing downloaded packages: %w", err)
	}
	var packages []host.Package
	for _, name := range names {
		base, ok := strings.CutSuffix(name, ".deb")
		parts := strings.Split(base, "_")
		if !ok || len(parts) != 3 {
			continue
		}
		version, err := url.PathUnescape(parts[1])
		if err == nil {
			packages = append(packages, host.Package{Name: parts[0], Version: version, Arch: parts[2]})
		}
	}
	return packages, nil
}

func (a *apt) refresh(ctx context.Context) ([]string, error) {
	if err := a.waitFor(ctx, aptLists+"/lock"); err != nil {
		return nil, err
	}
	out, err := a.insist(ctx, []string{"apt-get", "-q", "update"})
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, a.failure(ctx, "refreshing the package indexes", out)
	}
	var warnings []string
	for line := range strings.SplitSeq(out.Stderr, "\n") {
		// After a failed fetch, apt uses the old index.
		if text, ok := strings.CutPrefix(line, "W: "); ok && strings.HasPrefix(text, "Failed to fetch") {
			warnings = append(warnings, redact.URLs(text))
		}
	}
	return warnings, nil
}
