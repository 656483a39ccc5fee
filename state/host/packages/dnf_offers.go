package packages

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
)

// fromCache returns the start of a command that only reads the indexes of the last refresh.
func (d *dnf) fromCache(words ...string) []string {
	return append([]string{d.program, "-C"}, words...)
}

// withoutLocks returns the options with which dnf ignores holds.
func (d *dnf) withoutLocks(locks versionLocks) []string {
	if len(locks) == 0 || d.program == "dnf5" {
		return nil
	}
	return []string{"--disableplugin=versionlock"}
}

// fromRepository returns the options to use only the named repository, or nil if name is "".
func fromRepository(name string) []string {
	if name == "" {
		return nil
	}
	return []string{"--disablerepo=*", "--enablerepo=" + name}
}

func (d *dnf) offers(ctx context.Context, names []string, release string) (map[string]host.Offer, error) {
	locks, err := d.versionLocks()
	if err != nil {
		return nil, err
	}
	options := slices.Concat(d.withoutLocks(locks), fromRepository(release))
	if d.program == "yum" {
		return d.offersOfYum(ctx, names, options)
	}
	format := `%{name}\t%{evr}\t%{arch}` + "\\n"
	argv := slices.Concat(d.fromCache("-q"), options, []string{"repoquery", "--available", "--queryformat", format})
	if d.program == "dnf" {
		argv = append(argv, "--showduplicates")
	}
	offers := map[string]host.Offer{}
	out, err := d.insist(ctx, true, dnfLocked, append(argv, names...)...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, orPassing(ctx, dnfLocked, out, whyFailed("querying the repositories", out, dnfClues()))
	}
	found, err := parseOffers(d.program, out.Stdout)
	if err != nil {
		return nil, err
	}
	d.collect(offers, names, found)
	return offers, d.virtual(ctx, argv, names, offers)
}

// virtual adds offers without versions for names that packages merely provide.
func (d *dnf) virtual(ctx context.Context, argv, names []string, offers map[string]host.Offer) error {
	for _, name := range names {
		if _, ok := offers[name]; ok || strings.HasPrefix(name, "-") {
			continue
		}
		out, err := d.insist(ctx, true, dnfLocked, append(slices.Clone(argv), "--whatprovides", name)...)
		if err != nil {
			return err
		}
		if found, err := parseOffers(d.program, out.Stdout); err == nil && out.Code == 0 && len(found) > 0 {
			offers[name] = host.Offer{}
		}
	}
	return nil
}

// collect adds the packages that were found to the offers of the given names, the newest version first.
func (d *dnf) collect(offers map[string]host.Offer, names []string, found []host.Package) {
	v := host.InventoryOf(rpmNative(nil), rpmNames(), nil)
	for _, p := range found {
		for _, name := range []string{v.NameOf(p), p.Name, p.Name + "." + p.Arch} {
			o, seen := offers[name]
			if !slices.Contains(names, name) || seen && slices.Contains(o.Versions, p.Version) {
				continue
			}
			if name == p.Name && v.NameOf(p) != p.Name {
				continue // the plain name does not refer to a package of a foreign architecture
			}
			o.Versions = append(o.Versions, p.Version)
			offers[name] = newestFirst(o, order.RPM)
		}
	}
}

// newestFirst returns o with its versions sorted, newest first, and with the newest as the candidate.
func newestFirst(o host.Offer, compare func(a, b string) int) host.Offer {
	structsort.Func(o.Versions, func(a, b string) int { return compare(b, a) })
	o.Candidate = o.Versions[0]
	return o
}

// parseOffers reads lines of name, version and architecture with tabs between them.
func parseOffers(program, text string) ([]host.Package, error) {
	var found []host.Package
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || f[0] == "" || f[1] == "" {
			return nil, notUnderstood(program, line)
		}
		found = append(found, host.Package{Name: f[0], Version: plainEVR(f[1]), Arch: f[2]})
	}
	return found, nil
}

func (d *dnf) names(ctx context.Context) ([]string, error) {
	if d.program == "yum" {
		return d.namesOfYum(ctx)
	}
	out, err := d.insist(ctx, true, dnfLocked, d.fromCache("-q", "repoquery", "--available", "--queryformat",
		`%{name}\n`)...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, orPassing(ctx, dnfLocked, out, whyFailed("listing the packages of the repositories", out, dnfClues()))
	}
	names := strings.Fields(out.Stdout)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// cache returns the directory of package files and indexes.
func (d *dnf) cache() string {
	return map[string]string{"dnf5": "/var/cache/libdnf5", "dnf": "/var/cache/dnf", "yum": "/var/cache/yum"}[d.program]
}

// cached reads the headers of cached package files, since their names, name-version-release.arch.rpm, have no epoch.
func (d *dnf) cached() ([]host.Package, error) {
	var packages []host.Package
	for _, pattern := range d.cacheDirs(d.cache(), 3) {
		names, err := d.files.ReadDir(pattern)
		if err != nil {
			continue // another kind of directory
		}
		for _, name := range names {
			if !strings.HasSuffix(name, ".rpm") {
				continue
			}
			p, err := d.describeFile(pattern + "/" + name)
			if err == nil { // an incomplete file was not downloaded
				packages = append(packages, p)
			}
		}
	}
	return packages, nil
}

// cacheDirs returns the directories named packages below dir, at most depth levels down.
func (d *dnf) cacheDirs(dir string, depth int) []string {
	names, err := d.files.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || depth < 0 {
		return nil
	}
	var found []string
	for _, name := range names {
		path := dir + "/" + name
		if info, err := d.files.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		if name == "packages" {
			found = append(found, path)
		} else {
			found = append(found, d.cacheDirs(path, depth-1)...)
		}
	}
	return found
}

func (c *client) describeFile(path string) (host.Package, error) {
	f, err := c.files.Open(path)
	if err != nil {
		return host.Package{}, err
	}
	defer f.Close()
	return describeRPM(f)
}
