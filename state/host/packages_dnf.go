package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// dnf is the package manager of Red Hat's family: dnf, its successor dnf5, or yum before them. They
// take the same orders, but for a few.
type dnf struct {
	client
	program string // dnf5, dnf or yum
}

func (d *dnf) family() string {
	if d.program == "yum" {
		return "yum"
	}
	return "dnf"
}

func (d *dnf) compare(a, b string) int { return compareRPM(a, b) }

func (d *dnf) describe(file io.Reader) (Package, error) { return describeRPM(file) }

func (d *dnf) installed() (*Inventory, error) {
	locks, err := d.versionLocks()
	if err != nil {
		return nil, err
	}
	return d.readRPM(locks.holds)
}

// fromCache is the start of a command that only reads what the last refresh brought.
func (d *dnf) fromCache(words ...string) []string {
	return append([]string{d.program, "-C"}, words...)
}

// withoutLocks are the options that show what would be there but for holds.
func (d *dnf) withoutLocks(locks versionLocks) []string {
	if len(locks) == 0 || d.program == "dnf5" {
		return nil
	}
	return []string{"--disableplugin=versionlock"}
}

// fromRepository are the options that take packages from one repository alone.
func fromRepository(name string) []string {
	if name == "" {
		return nil
	}
	return []string{"--disablerepo=*", "--enablerepo=" + name}
}

func (d *dnf) offers(ctx context.Context, names []string, release string) (map[string]Offer, error) {
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
	offers := map[string]Offer{}
	out, err := d.run(ctx, true, append(argv, names...)...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, whyFailed("asking what the repositories have", out, dnfClues())
	}
	found, err := parseOffers(d.program, out.Stdout)
	if err != nil {
		return nil, err
	}
	d.collect(offers, names, found)
	return offers, d.virtual(ctx, argv, names, offers)
}

// virtual adds the names that packages merely provide, with no versions.
func (d *dnf) virtual(ctx context.Context, argv, names []string, offers map[string]Offer) error {
	for _, name := range names {
		if _, ok := offers[name]; ok || strings.HasPrefix(name, "-") {
			continue
		}
		out, err := d.run(ctx, true, append(slices.Clone(argv), "--whatprovides", name)...)
		if err != nil {
			return err
		}
		if found, err := parseOffers(d.program, out.Stdout); err == nil && out.Code == 0 && len(found) > 0 {
			offers[name] = Offer{}
		}
	}
	return nil
}

// collect sorts what was found under the names that were asked for, the newest first.
func (d *dnf) collect(offers map[string]Offer, names []string, found []Package) {
	v := newInventory(rpmNative(nil), rpmNames(), nil)
	for _, p := range found {
		for _, name := range []string{v.listName(p), p.Name, p.Name + "." + p.Arch} {
			o, seen := offers[name]
			if !slices.Contains(names, name) || seen && slices.Contains(o.Versions, p.Version) {
				continue
			}
			if name == p.Name && v.listName(p) != p.Name {
				continue // a foreign architecture does not answer to the plain name
			}
			o.Versions = append(o.Versions, p.Version)
			offers[name] = newestFirst(o, compareRPM)
		}
	}
}

// newestFirst puts versions in order; the newest is the candidate.
func newestFirst(o Offer, compare func(a, b string) int) Offer {
	slices.SortStableFunc(o.Versions, func(a, b string) int { return compare(b, a) })
	o.Candidate = o.Versions[0]
	return o
}

// parseOffers reads lines of name, version and architecture with tabs between them.
func parseOffers(program, text string) ([]Package, error) {
	var found []Package
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || f[0] == "" || f[1] == "" {
			return nil, notUnderstood(program, line)
		}
		found = append(found, Package{Name: f[0], Version: plainEVR(f[1]), Arch: f[2]})
	}
	return found, nil
}

func (d *dnf) names(ctx context.Context) ([]string, error) {
	if d.program == "yum" {
		return d.namesOfYum(ctx)
	}
	out, err := d.run(ctx, true, d.fromCache("-q", "repoquery", "--available", "--queryformat", `%{name}\n`)...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, whyFailed("listing what the repositories have", out, dnfClues())
	}
	names := strings.Fields(out.Stdout)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// caches are where package files and indexes are kept.
func (d *dnf) cache() string {
	return map[string]string{"dnf5": "/var/cache/libdnf5", "dnf": "/var/cache/dnf", "yum": "/var/cache/yum"}[d.program]
}

// cached reads the package files that were kept: name-version-release.arch.rpm does not tell an epoch.
func (d *dnf) cached() ([]Package, error) {
	var packages []Package
	for _, pattern := range d.cacheDirs(d.cache(), 3) {
		names, err := d.files.ReadDir(pattern)
		if err != nil {
			continue // a directory of something else
		}
		for _, name := range names {
			if !strings.HasSuffix(name, ".rpm") {
				continue
			}
			p, err := d.describeFile(pattern + "/" + name)
			if err == nil { // what is cut off was not downloaded
				packages = append(packages, p)
			}
		}
	}
	return packages, nil
}

// cacheDirs lists the directories called packages, at most depth levels down.
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

func (c *client) describeFile(path string) (Package, error) {
	f, err := c.files.Open(path)
	if err != nil {
		return Package{}, err
	}
	defer f.Close()
	return describeRPM(f)
}

func (d *dnf) refreshedAt() time.Time { return d.newest(d.cache()) }

func (d *dnf) repositoriesAt() time.Time {
	return d.newest("/etc/yum.repos.d", "/etc/yum.conf", "/etc/dnf/dnf.conf")
}

func (d *dnf) refresh(ctx context.Context) ([]string, error) {
	argv := []string{d.program, "-y", "--setopt=exit_on_lock=True", "makecache", "--refresh"}
	if d.program == "yum" {
		argv = []string{d.program, "-y", "--setopt=exit_on_lock=1", "makecache", "fast"}
		if out, err := d.run(ctx, false, d.program, "clean", "expire-cache"); err != nil || out.Code != 0 {
			return nil, errors.Join(err, complaint(out))
		}
	}
	out, err := d.change(ctx, "refreshing the package indexes", dnfLocked, argv...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, whyFailed("refreshing the package indexes", out, dnfClues())
	}
	var warnings []string
	for line := range strings.SplitSeq(out.Stderr, "\n") {
		if text, ok := strings.CutPrefix(line, "Error: "); ok {
			warnings = append(warnings, WithoutPasswords(text))
		}
	}
	return warnings, nil
}

// options say how to do a transaction.
func (d *dnf) options(t Transaction) []string {
	argv := fromRepository(t.Release)
	for _, option := range []struct {
		on   bool
		name string
	}{
		{t.Unverified, "--nogpgcheck"}, {t.DownloadOnly, "--downloadonly"},
		{t.Recommends != nil && *t.Recommends, "--setopt=install_weak_deps=True"},
		{t.Recommends != nil && !*t.Recommends, "--setopt=install_weak_deps=False"},
		{d.program == "dnf5" && t.Action == InstallPackages, "--allow-downgrade"},
	} {
		if option.on {
			argv = append(argv, option.name)
		}
	}
	return argv
}

// orders are the commands of a transaction: what is there already is upgraded, downgraded or
// installed anew by a command of its own.
func (d *dnf) orders(v *Inventory, t Transaction) [][]string {
	switch t.Action {
	case RemovePackages, PurgePackages:
		return [][]string{append([]string{"remove"}, plainNames(t)...)}
	case UpgradePackages, FullUpgradePackages:
		return [][]string{{"upgrade"}}
	}
	byVerb := map[string][]string{}
	for _, w := range t.Packages {
		verb := d.verb(v, t, w)
		byVerb[verb] = append(byVerb[verb], rpmSpec(w))
	}
	var orders [][]string
	for _, verb := range []string{"install", "upgrade", "downgrade", "reinstall"} {
		if specs := byVerb[verb]; len(specs) > 0 {
			orders = append(orders, append([]string{verb}, specs...))
		}
	}
	return orders
}

func (d *dnf) verb(v *Inventory, t Transaction, w Wanted) string {
	there := v.Versions(w.Name)
	switch {
	case len(there) == 0 || len(there) > 1: // several beside each other, as kernels are
		return "install"
	case t.Reinstall && (w.Version == "" || compareRPM(there[0], w.Version) == 0):
		return "reinstall"
	case w.File == "" && w.Version == "":
		return "upgrade"
	case d.program == "yum" && w.Version != "" && compareRPM(there[0], w.Version) > 0:
		return "downgrade"
	}
	return "install"
}

func plainNames(t Transaction) []string {
	names := make([]string, len(t.Packages))
	for i, w := range t.Packages {
		names[i] = w.Name
	}
	return names
}

// rpmSpec is a package on the command line: a file, a name, or a name with a version, behind which
// the architecture belongs.
func rpmSpec(w Wanted) string {
	switch {
	case w.File != "":
		return w.File
	case w.Version == "":
		return w.Name
	}
	name, arch := w.Name, ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && slices.Contains(rpmArchs(), name[i+1:]) {
		name, arch = name[:i], name[i:]
	}
	return name + "-" + w.Version + arch
}

func rpmArchs() []string {
	return []string{"x86_64", "i386", "i486", "i586", "i686", "noarch", "aarch64", "armv7hl", "ppc64le", "s390x", "riscv64"}
}

func (d *dnf) perform(ctx context.Context, t Transaction) error {
	v, err := d.installed()
	if err != nil {
		return err
	}
	if err := d.waitForRPM(ctx); err != nil {
		return err
	}
	return aroundHold(ctx, heldOf(v, t), d.hold, func() error {
		for _, order := range d.orders(v, t) {
			argv := slices.Concat([]string{d.program, "-y", "--setopt=exit_on_lock=True"}, d.options(t), order)
			out, err := d.change(ctx, t.String(), dnfLocked, argv...)
			if err != nil {
				return err
			}
			if out.Code != 0 {
				return whyFailed(t.String(), out, dnfClues())
			}
		}
		return nil
	})
}

// plan lets dnf play a transaction through.
func (d *dnf) plan(ctx context.Context, t Transaction) ([]PackageChange, error) {
	v, err := d.installed()
	if err != nil {
		return nil, err
	}
	if err := checkPackageNames(t, "+._-"); err != nil {
		return nil, err
	}
	locks, err := d.versionLocks()
	if err != nil {
		return nil, err
	}
	held := heldOf(v, t)
	if len(held) == 0 {
		locks = nil
	}
	var changes []PackageChange
	for _, order := range d.orders(v, t) {
		argv := slices.Concat(d.fromCache("--assumeno"), d.withoutLocks(locks), d.options(t), order)
		more, err := d.foresee(ctx, v, t, argv)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	slices.SortFunc(changes, func(a, b PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(changes), refuseHeld(v, changes, held, d.program+" versionlock delete")
}

// foresee reads what a command would do. It ends as one that failed, because nobody said yes.
func (d *dnf) foresee(ctx context.Context, v *Inventory, t Transaction, argv []string) ([]PackageChange, error) {
	out, err := d.run(ctx, true, argv...)
	if err != nil {
		return nil, err
	}
	said := out.Stdout + out.Stderr
	refused := strings.Contains(said, "Operation aborted") || strings.Contains(said, "Exiting on user command")
	if out.Code != 0 && !refused {
		return nil, whyFailed(t.String(), out, dnfClues())
	}
	changes, err := parseDnfPlan(d.program, out.Stdout, v)
	if err == nil && refused && len(changes) == 0 && !t.DownloadOnly {
		return nil, fmt.Errorf("%s: %w", t, notUnderstood(d.program, lastLine(out.Stdout)))
	}
	return changes, err
}
