package packages

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
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// zypper is the package manager of SUSE's family. Its output is XML.
type zypper struct{ client }

func (z *zypper) family() string { return "zypper" }

func (z *zypper) compare(a, b string) int { return order.RPM(a, b) }

func (z *zypper) describe(file io.Reader) (host.Package, error) { return describeRPM(file) }

func (z *zypper) installed() (*host.Inventory, error) {
	locks, err := z.locks()
	if err != nil {
		return nil, err
	}
	return z.readRPM(func(name string) bool { return slices.Contains(locks, name) })
}

const zypperLocks = "/etc/zypp/locks"

// locks returns the names of the locked packages. A hold is a lock of a package by its name.
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

// quiet returns a command line of zypper with options that prevent questions and the refresh of indexes.
func (z *zypper) quiet(words ...string) []string {
	return append([]string{"zypper", "--xmlout", "--non-interactive", "--no-refresh"}, words...)
}

// query runs a command that only reads. The exit codes 100 to 103 and 106 do not mean that the command failed.
func (z *zypper) query(ctx context.Context, what string, argv []string) (zypperAnswer, host.Output, error) {
	out, err := z.insist(ctx, true, zypperLocked, argv...)
	if err != nil {
		return zypperAnswer{}, out, err
	}
	if zypperFailed(out) && out.Code != zypperNothing {
		return zypperAnswer{}, out, z.failure(ctx, what, out)
	}
	answer, err := parseZypper(out.Stdout)
	return answer, out, err
}

// zypperNothing is the exit code if no package has the name.
const zypperNothing = 104

func zypperFailed(out host.Output) bool {
	return out.Code != 0 && !slices.Contains([]int{100, 101, 102, 103, 106}, out.Code)
}

func (z *zypper) offers(ctx context.Context, names []string, release string) (map[string]host.Offer, error) {
	argv := z.quiet("search", "--details", "--match-exact", "--type", "package")
	if release != "" {
		argv = append(argv, "--repo", release)
	}
	plain := make([]string, len(names))
	for i, name := range names {
		plain[i], _ = withoutRPMArch(name)
	}
	answer, _, err := z.query(ctx, "querying the repositories", append(append(argv, "--"), plain...))
	if err != nil {
		return nil, err
	}
	offers := map[string]host.Offer{}
	for _, name := range names {
		base, arch := withoutRPMArch(name)
		if o, ok := answer.offer(base, arch); ok {
			offers[name] = o
		}
	}
	return offers, z.virtual(ctx, names, offers)
}

// virtual adds offers without versions for names that packages merely provide.
func (z *zypper) virtual(ctx context.Context, names []string, offers map[string]host.Offer) error {
	for _, name := range names {
		if _, ok := offers[name]; ok {
			continue
		}
		answer, out, err := z.query(ctx, "querying the repositories",
			z.quiet("search", "--provides", "--match-exact", "--type", "package", "--", name))
		if err != nil {
			return err
		}
		if out.Code == 0 && len(answer.found()) > 0 {
			offers[name] = host.Offer{}
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
	answer, _, err := z.query(ctx, "listing the packages of the repositories", z.quiet("search", "--type", "package"))
	var names []string
	for _, s := range answer.found() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

const zypperCache = "/var/cache/zypp"

func (z *zypper) cached() ([]host.Package, error) {
	var packages []host.Package
	for _, dir := range z.rpmDirs(zypperCache+"/packages", 4) {
		names, _ := z.files.ReadDir(dir) // its error was checked above
		for _, name := range names {
			if !strings.HasSuffix(name, ".rpm") {
				continue
			}
			if p, err := z.describeFile(dir + "/" + name); err == nil { // an incomplete file was not downloaded
				packages = append(packages, p)
			}
		}
	}
	return packages, nil
}

// rpmDirs returns a directory and the directories below it, at most depth levels down.
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

// refresh fetches the indexes. A repository that does not answer is returned as a warning; the others are used.
func (z *zypper) refresh(ctx context.Context) ([]string, error) {
	argv := []string{"zypper", "--non-interactive", "refresh", "--force"}
	out, err := z.change(ctx, "refreshing the package indexes", zypperLocked, argv...)
	if err != nil {
		return nil, err
	}
	const someSkipped = 106
	if out.Code != 0 && out.Code != someSkipped && !strings.Contains(out.Stdout+out.Stderr,
		"Some of the repositories have not been refreshed") {
		return nil, z.failure(ctx, "refreshing the package indexes", out)
	}
	var warnings []string
	for line := range strings.SplitSeq(out.Stdout+"\n"+out.Stderr, "\n") {
		if strings.HasPrefix(line, "Skipping repository") || strings.HasPrefix(line, "Repository '") &&
			strings.Contains(line, "invalid") {
			warnings = append(warnings, redact.URLs(line))
		}
	}
	return warnings, nil
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
		return z.failure(ctx, "putting packages on hold", out)
	}
	locks, err := z.locks()
	for _, name := range names {
		if err == nil && slices.Contains(locks, name) != held {
			err = diag.Packages.Hint(fmt.Errorf("the hold of package %s did not change", name), "look at its entry in %s",
				zypperLocks)
		}
	}
	return err
}
