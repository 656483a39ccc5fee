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

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// zypper is the package manager of SUSE's family. It answers in XML.
type zypper struct{ client }

func (z *zypper) family() string { return "zypper" }

func (z *zypper) compare(a, b string) int { return compareRPM(a, b) }

func (z *zypper) describe(file io.Reader) (Package, error) { return describeRPM(file) }

// installed leaves out the keys that rpm keeps like packages.
func (z *zypper) installed() (*Inventory, error) {
	locks, err := z.locks()
	if err != nil {
		return nil, err
	}
	v, err := z.readRPM(func(name string) bool { return slices.Contains(locks, name) })
	if err != nil {
		return nil, err
	}
	for name := range v.byName {
		if strings.HasPrefix(name, "gpg-pubkey") {
			delete(v.byName, name)
		}
	}
	return v, nil
}

const zypperLocks = "/etc/zypp/locks"

// locks lists the packages that are locked by name in every version and repository, which is what a
// hold is. The entries of the file have empty lines between them.
func (z *zypper) locks() ([]string, error) {
	data, err := z.files.ReadFile(zypperLocks)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which packages are on hold: %w", err)
	}
	return parseZypperLocks(string(data)), nil
}

func parseZypperLocks(text string) []string {
	var names []string
	for entry := range strings.SplitSeq(text, "\n\n") {
		fields := map[string]string{}
		for line := range strings.SplitSeq(entry, "\n") {
			if key, v, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
				fields[strings.TrimSpace(key)] = strings.TrimSpace(v)
			}
		}
		kind := fields["type"]
		if name := fields["solvable_name"]; name != "" && (kind == "" || kind == "package") {
			names = append(names, name)
		}
	}
	return names
}

// quiet is the start of every command: nobody is asked, no index is fetched by the way.
func (z *zypper) quiet(words ...string) []string {
	return append([]string{"zypper", "--xmlout", "--non-interactive", "--no-refresh"}, words...)
}

// query runs a command that only reads. The codes from 100 to 103 and 106 report something beside.
func (z *zypper) query(ctx context.Context, what string, argv []string) (zypperAnswer, Output, error) {
	out, err := z.run(ctx, true, argv...)
	if err != nil {
		return zypperAnswer{}, out, err
	}
	if zypperFailed(out) && out.Code != zypperNothing {
		return zypperAnswer{}, out, z.failure(what, out)
	}
	answer, err := parseZypper(out.Stdout)
	return answer, out, err
}

// zypperNothing is the code for: nothing of that name was found.
const zypperNothing = 104

func zypperFailed(out Output) bool {
	return out.Code != 0 && !slices.Contains([]int{100, 101, 102, 103, 106}, out.Code)
}

func (z *zypper) offers(ctx context.Context, names []string, release string) (map[string]Offer, error) {
	argv := z.quiet("search", "--details", "--match-exact", "--type", "package")
	if release != "" {
		argv = append(argv, "--repo", release)
	}
	plain := make([]string, len(names))
	for i, name := range names {
		plain[i], _ = withoutRPMArch(name)
	}
	answer, _, err := z.query(ctx, "asking what the repositories have", append(append(argv, "--"), plain...))
	if err != nil {
		return nil, err
	}
	offers := map[string]Offer{}
	for _, name := range names {
		base, arch := withoutRPMArch(name)
		if o, ok := answer.offer(base, arch); ok {
			offers[name] = o
		}
	}
	return offers, z.virtual(ctx, names, offers)
}

// virtual adds the names that packages merely provide, with no versions.
func (z *zypper) virtual(ctx context.Context, names []string, offers map[string]Offer) error {
	for _, name := range names {
		if _, ok := offers[name]; ok {
			continue
		}
		answer, out, err := z.query(ctx, "asking what the repositories have", z.quiet("search", "--provides", "--match-exact", "--type", "package", "--", name))
		if err != nil {
			return err
		}
		if out.Code == 0 && len(answer.found()) > 0 {
			offers[name] = Offer{}
		}
	}
	return nil
}

func withoutRPMArch(name string) (base, arch string) {
	if base, arch, ok := cutLast(name, "."); ok && slices.Contains(rpmArchs(), arch) {
		return base, arch
	}
	return name, ""
}

func (z *zypper) names(ctx context.Context) ([]string, error) {
	answer, _, err := z.query(ctx, "listing what the repositories have", z.quiet("search", "--type", "package"))
	var names []string
	for _, s := range answer.found() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

const zypperCache = "/var/cache/zypp"

func (z *zypper) cached() ([]Package, error) {
	var packages []Package
	for _, dir := range z.rpmDirs(zypperCache+"/packages", 4) {
		names, _ := z.files.ReadDir(dir) // it was read a moment ago
		for _, name := range names {
			if !strings.HasSuffix(name, ".rpm") {
				continue
			}
			if p, err := z.describeFile(dir + "/" + name); err == nil { // what is cut off was not downloaded
				packages = append(packages, p)
			}
		}
	}
	return packages, nil
}

// rpmDirs lists a directory and those below it, at most depth levels down.
func (c *client) rpmDirs(dir string, depth int) []string {
	names, err := c.files.ReadDir(dir)
	if err != nil || depth < 0 {
		return nil
	}
	found := []string{dir}
	for _, name := range names {
		if info, err := c.files.Lstat(dir + "/" + name); err == nil && info.IsDir() {
			found = append(found, c.rpmDirs(dir+"/"+name, depth-1)...)
		}
	}
	return found
}

func (z *zypper) refreshedAt() time.Time { return z.newest(zypperCache + "/raw") }

func (z *zypper) repositoriesAt() time.Time {
	return z.newest("/etc/zypp/repos.d", "/etc/zypp/zypp.conf")
}

// refresh gets the indexes. A repository that does not answer is told of; the others are in use.
func (z *zypper) refresh(ctx context.Context) ([]string, error) {
	argv := []string{"zypper", "--non-interactive", "refresh", "--force"}
	out, err := z.change(ctx, "refreshing the package indexes", zypperLocked, argv...)
	if err != nil {
		return nil, err
	}
	const someSkipped = 106
	if out.Code != 0 && out.Code != someSkipped && !strings.Contains(out.Stdout+out.Stderr, "Some of the repositories have not been refreshed") {
		return nil, z.failure("refreshing the package indexes", out)
	}
	var warnings []string
	for line := range strings.SplitSeq(out.Stdout+"\n"+out.Stderr, "\n") {
		if strings.HasPrefix(line, "Skipping repository") || strings.HasPrefix(line, "Repository '") && strings.Contains(line, "invalid") {
			warnings = append(warnings, WithoutPasswords(line))
		}
	}
	return warnings, nil
}

// order is the command of a transaction.
func (z *zypper) order(v *Inventory, t Transaction, test bool) []string {
	var argv []string
	switch t.Action {
	case RemovePackages, PurgePackages:
		argv = []string{"remove"}
	case UpgradePackages:
		argv = []string{"update", "--auto-agree-with-licenses"}
	case FullUpgradePackages:
		argv = []string{"dist-upgrade", "--auto-agree-with-licenses"}
	default:
		argv = append([]string{"install", "--auto-agree-with-licenses"}, z.options(v, t)...)
	}
	if test {
		argv = append(argv, "--dry-run")
	} else if t.DownloadOnly {
		argv = append(argv, "--download-only")
	}
	return append(append(argv, "--"), z.targets(t)...)
}

func (z *zypper) options(v *Inventory, t Transaction) []string {
	older := slices.ContainsFunc(t.Packages, func(w Wanted) bool {
		there := v.Versions(w.Name)
		return w.File != "" || len(there) == 1 && w.Version != "" && compareRPM(there[0], w.Version) > 0
	})
	var argv []string
	for _, option := range []struct {
		on   bool
		name string
	}{
		{older, "--oldpackage"}, {t.Reinstall, "--force"},
		{t.Recommends != nil && *t.Recommends, "--recommends"},
		{t.Recommends != nil && !*t.Recommends, "--no-recommends"},
		{t.Release != "", "--from=" + t.Release},
		{t.Unverified, "--allow-unsigned-rpm"},
	} {
		if option.on {
			argv = append(argv, option.name)
		}
	}
	return argv
}

func (z *zypper) targets(t Transaction) []string {
	var targets []string
	for _, w := range t.Packages {
		switch {
		case w.File != "":
			targets = append(targets, w.File)
		case w.Version != "":
			targets = append(targets, w.Name+"="+w.Version)
		default:
			targets = append(targets, w.Name)
		}
	}
	return targets
}

// unverified is the option before the command that does without signatures.
func unverified(argv []string, t Transaction) []string {
	if !t.Unverified {
		return argv
	}
	return slices.Insert(slices.Clone(argv), 1, "--no-gpg-checks")
}

// plan lets zypper play a transaction through. What is on hold and asked for by name could only be
// foreseen without the hold, so that is told instead of tried.
func (z *zypper) plan(ctx context.Context, t Transaction) ([]PackageChange, error) {
	v, err := z.installed()
	if err != nil {
		return nil, err
	}
	if err := checkPackageNames(t, "+._-:"); err != nil {
		return nil, err
	}
	if held := heldOf(v, t); len(held) > 0 {
		return z.planHeld(ctx, v, t, held)
	}
	return z.foresee(ctx, v, t)
}

// planHeld foresees what becomes of packages on hold themselves, from what the repositories have, and
// of the others by playing it through.
func (z *zypper) planHeld(ctx context.Context, v *Inventory, t Transaction, held []string) ([]PackageChange, error) {
	others := t
	others.Packages = slices.DeleteFunc(slices.Clone(t.Packages), func(w Wanted) bool { return slices.Contains(held, w.Name) })
	var changes []PackageChange
	if len(others.Packages) > 0 {
		var err error
		if changes, err = z.foresee(ctx, v, others); err != nil {
			return nil, err
		}
	}
	offers, err := z.offers(ctx, held, t.Release)
	if err != nil {
		return nil, err
	}
	for _, w := range t.Packages {
		if !slices.Contains(held, w.Name) {
			continue
		}
		version := w.Version
		if w.File != "" {
			p, err := z.describeFile(w.File)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", w.File, err)
			}
			version = p.Version
		} else if version == "" {
			version = offers[w.Name].Candidate
		}
		changes = append(changes, PackageChange{Name: w.Name, Old: v.Version(w.Name), New: version})
	}
	slices.SortFunc(changes, func(a, b PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return changes, nil
}

func (z *zypper) foresee(ctx context.Context, v *Inventory, t Transaction) ([]PackageChange, error) {
	out, err := z.run(ctx, true, unverified(z.quiet(z.order(v, t, true)...), t)...)
	if err != nil {
		return nil, err
	}
	answer, parseErr := parseZypper(out.Stdout)
	if zypperFailed(out) && (t.Action != RemovePackages && t.Action != PurgePackages || out.Code != zypperNothing) {
		return nil, z.failure(t.String(), out)
	}
	if parseErr != nil {
		return nil, parseErr
	}
	return answer.changes(v)
}

func (z *zypper) perform(ctx context.Context, t Transaction) error {
	v, err := z.installed()
	if err != nil {
		return err
	}
	if err := z.waitForRPM(ctx); err != nil {
		return err
	}
	return aroundHold(ctx, heldOf(v, t), z.hold, func() error {
		out, err := z.change(ctx, t.String(), zypperLocked, unverified(z.quiet(z.order(v, t, false)...), t)...)
		if err == nil && zypperFailed(out) {
			err = z.failure(t.String(), out)
		}
		return err
	})
}

func (z *zypper) hold(ctx context.Context, names []string, held bool) error {
	if len(names) == 0 {
		return nil
	}
	verb := map[bool]string{true: "addlock", false: "removelock"}[held]
	out, err := z.change(ctx, "putting packages on hold", zypperLocked, append(z.quiet(verb, "--"), names...)...)
	if err != nil {
		return err
	}
	if zypperFailed(out) {
		return z.failure("putting packages on hold", out)
	}
	locks, err := z.locks()
	for _, name := range names {
		if err == nil && slices.Contains(locks, name) != held {
			err = diag.WithHint(fmt.Errorf("the hold of package %s did not change", name), "look at its entry in %s", zypperLocks)
		}
	}
	return err
}
