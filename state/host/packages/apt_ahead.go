package packages

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// aptAhead has a directory for each group of packages that are downloaded ahead. It is on the filesystem of apt's
// archives, but not inside the archives, since apt, and the cleanup on some hosts, delete files there.
const aptAhead = "/var/cache/apt/ahead"

// aptUser is the user as whom apt downloads, if the host has it and its settings name no other.
const aptUser = "_apt"

// aheadReserve is the number of bytes that downloading ahead leaves free on a disk, in addition to the space of the
// installed packages.
const aheadReserve = 256 << 20

func (a *apt) spare() (int64, error) {
	dir, err := a.files.Beneath(path.Dir(aptAhead))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	free, _, err := dir.Free()
	return free - aheadReserve, err
}

func groupDir(n int) string { return fmt.Sprintf("%s/%d", aptAhead, n) }

// download makes apt-get fetch packages, which needs no lock, with apt's own proxies, mirrors, checks and user. The
// directory belongs to that user during the download, and then to root.
func (a *apt) download(ctx context.Context, n int, changes []host.PackageChange) error {
	dir, owner := groupDir(n), "0"
	if data, err := a.files.ReadFile("/etc/passwd"); err == nil && strings.Contains("\n"+string(data), "\n"+aptUser+":") {
		owner = aptUser
	}
	fetch := []string{"env", "--chdir=" + dir, "apt-get", "-q", "-o", "Acquire::Retries=0", "download", "--"}
	for _, c := range changes {
		fetch = append(fetch, c.Name+"="+c.New)
	}
	for _, argv := range [][]string{
		{"rm", "-rf", "--one-file-system", "--", dir},
		{"install", "-d", "-m", "0755", "--", aptAhead},
		{"install", "-d", "-m", "0700", "-o", owner, "--", dir},
		fetch,
		{"chown", "--no-dereference", "0:0", "--", dir},
	} {
		if err := a.must(ctx, argv); err != nil {
			return err
		}
	}
	return nil
}

// must runs a command of the download, and returns an error if it fails. The command is quiet, since it changes no file
// that a step has read.
func (a *apt) must(ctx context.Context, argv []string) error {
	out, err := a.run(ctx, true, argv...)
	if err == nil && out.Code != 0 {
		err = host.Complaint(out)
	}
	return err
}

// adopt moves the files of packages into apt's archives, where apt-get uses them. The directory belongs to root by
// then. adopt leaves out names in it that are not regular files of root.
func (a *apt) adopt(ctx context.Context, n int, changes []host.PackageChange) error {
	dir := groupDir(n)
	names, err := a.files.ReadDir(dir)
	if err != nil {
		return err
	}
	var paths []string
	for _, name := range names {
		info, err := a.files.Lstat(dir + "/" + name)
		if err == nil && info.IsRegular() && info.UID == 0 && info.Links == 1 &&
			slices.ContainsFunc(changes, func(c host.PackageChange) bool { return isFileOf(name, c) }) {
			paths = append(paths, dir+"/"+name)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return a.must(ctx, append([]string{"mv", "-f", "-t", aptArchives, "--"}, paths...))
}

// isFileOf reports whether a file has the name that apt gives the new version of a package:
// name_version_architecture.deb with signs of the version escaped as in URLs.
func isFileOf(file string, c host.PackageChange) bool {
	base, ok := strings.CutSuffix(file, ".deb")
	parts := strings.Split(base, "_")
	if !ok || len(parts) != 3 {
		return false
	}
	name, arch, _ := strings.Cut(c.Name, ":")
	version, err := url.PathUnescape(parts[1])
	return err == nil && parts[0] == name && version == c.New && (arch == "" || arch == parts[2])
}

func (a *apt) discard(ctx context.Context) error {
	return a.must(ctx, []string{"rm", "-rf", "--one-file-system", "--", aptAhead})
}

// needs reads the dependencies, conflicts and sizes of packages from the repositories' indexes.
func (a *apt) needs(ctx context.Context, t host.Transaction, changes []host.PackageChange) (map[string][]string, int64,
	error) {
	v, err := a.installed()
	if err != nil {
		return nil, 0, err
	}
	argv := []string{"apt-cache", "-q", "show", "--"}
	for _, c := range changes {
		if c.New != "" {
			argv = append(argv, c.Name+"="+c.New)
		}
	}
	out, err := a.ask(ctx, argv...)
	if err == nil && out.Code != 0 {
		err = a.failure(ctx, "querying the dependencies of packages", out)
	}
	if err != nil {
		return nil, 0, err
	}
	r := relations{v: v, changes: map[string]host.PackageChange{}, causes: map[string][]string{},
		providers: map[string][]string{}, recommends: t.Recommends == nil || *t.Recommends}
	for _, c := range changes {
		bare, _, _ := strings.Cut(c.Name, ":")
		r.changes[bare] = c
	}
	return r.among(out.Stdout), sizesOf(out.Stdout), nil
}

// sizesOf adds up the sizes in stanzas of packages: of the download, in bytes, and of the installed files, in KiB.
func sizesOf(text string) (bytes int64) {
	for line := range strings.Lines(text) {
		field, v, _ := strings.Cut(line, ":")
		if unit := map[string]int64{"Size": 1, "Installed-Size": 1 << 10}[field]; unit > 0 {
			n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64) // 0 for a line that is not a number: the reserve covers it
			bytes += n * unit
		}
	}
	return bytes
}

// relations finds out which changes of a plan cause others.
type relations struct {
	v          *host.Inventory
	changes    map[string]host.PackageChange // by bare names
	causes     map[string][]string           // names in the dependencies of each package
	providers  map[string][]string           // packages of the plan that provide a virtual package
	recommends bool                          // recommended packages are installed
}

// among returns, for each package in the stanzas of text, the changes of others that it causes.
func (r *relations) among(text string) map[string][]string {
	needs := map[string][]string{}
	for stanza := range strings.SplitSeq(text, "\n\n") {
		name := ""
		for line := range strings.Lines(stanza) {
			switch field, v, _ := strings.Cut(line, ":"); field {
			case "Package":
				name = r.changes[strings.TrimSpace(v)].Name
			case "Provides":
				for _, other := range dependencyNames(v) {
					r.providers[other] = append(r.providers[other], name)
				}
			case "Depends", "Pre-Depends":
				r.causes[name] = append(r.causes[name], dependencyNames(v)...)
			case "Recommends":
				if r.recommends {
					r.causes[name] = append(r.causes[name], dependencyNames(v)...)
				}
			case "Conflicts", "Breaks":
				needs[name] = append(needs[name], r.displaced(dependencyNames(v))...)
			}
		}
	}
	for other, names := range r.providers {
		needs[virtual+other] = names
	}
	for name, others := range r.causes {
		for _, other := range others {
			if c, ok := r.changes[other]; ok {
				needs[name] = append(needs[name], c.Name)
			}
			needs[name] = append(needs[name], r.providers[other]...)
		}
	}
	return needs
}

// displaced returns the installed packages among the changes that have or provide one of the names.
func (r *relations) displaced(names []string) (displaced []string) {
	for _, name := range names {
		for _, other := range append([]string{name}, r.v.Providers(name)...) {
			bare, _, _ := strings.Cut(other, ":")
			if c := r.changes[bare]; c.Old != "" {
				displaced = append(displaced, c.Name)
			}
		}
	}
	return displaced
}

// dependencyNames returns the names in a field such as "a (>= 1), b | c:any".
func dependencyNames(field string) []string {
	var names []string
	for part := range strings.FieldsFuncSeq(field, func(r rune) bool { return r == ',' || r == '|' }) {
		word, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		word, _, _ = strings.Cut(word, ":")
		word, _, _ = strings.Cut(word, "(")
		if word != "" {
			names = append(names, word)
		}
	}
	return names
}
