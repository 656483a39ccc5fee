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
)

// pacman is the package manager of Arch Linux and its derivatives. A repository has one version of a package.
type pacman struct{ client }

func (p *pacman) family() string { return "pacman" }

func (p *pacman) compare(a, b string) int { return order.Pacman(a, b) }

func (p *pacman) describe(file io.Reader) (host.Package, error) { return describePkginfo(file) }

// installed reads the database, a directory for each package.
func (p *pacman) installed() (*host.Inventory, error) {
	ignored, err := p.ignored()
	if err != nil {
		return nil, err
	}
	dirs, err := p.files.ReadDir(pacmanDB + "/local")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the package database: %w", err)
	}
	packages := make([]host.Package, 0, len(dirs))
	for _, dir := range dirs {
		if dir == "ALPM_DB_VERSION" {
			continue
		}
		one, err := p.readLocal(pacmanDB + "/local/" + dir + "/desc")
		if err != nil {
			return nil, err
		}
		one.Held = ignored.holds(one.Name)
		packages = append(packages, one)
	}
	return host.InventoryOf("", host.ArchNames{}, packages), nil
}

func (p *pacman) readLocal(file string) (host.Package, error) {
	data, err := p.files.ReadFile(file)
	if err != nil {
		err = fmt.Errorf("reading the package database: %w", err)
		return host.Package{},
			diag.Packages.Hint(err, "a change of packages was interrupted; run `pacman -Dk` on the host and read its output")
	}
	one := parseLocal(string(data))
	if one.Name == "" || one.Version == "" {
		return one, diag.Packages.Hint(fmt.Errorf("the package database is damaged: %s has no name or no version", file),
			"run `pacman -Dk` on the host and read its output")
	}
	return one, nil
}

// parseLocal parses the description of a package. It has blocks of a heading between percent signs, values, and an
// empty line.
func parseLocal(text string) host.Package {
	one := host.Package{State: host.InstalledPackage}
	heading := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			heading = ""
		case heading == "":
			heading = line
		case heading == "%NAME%":
			one.Name = line
		case heading == "%VERSION%":
			one.Version = line
		case heading == "%PROVIDES%":
			one.Provides = append(one.Provides, line)
		}
	}
	return one
}

// query runs pacman to read something.
func (p *pacman) query(ctx context.Context, what string, args ...string) (string, error) {
	out, err := p.insist(ctx, true, pacmanLocked, append([]string{"pacman"}, args...)...)
	if err != nil {
		return "", err
	}
	// pacman exits with 0 after an error about a damaged index.
	if out.Code != 0 || strings.HasPrefix(out.Stderr, "error:") {
		return "", orPassing(ctx, pacmanLocked, out, whyFailed(what, out, pacmanClues()))
	}
	return out.Stdout, nil
}

// list returns the packages of the repositories, in their order.
func (p *pacman) list(ctx context.Context, release string) ([]host.Package, error) {
	args := []string{"-Sl"}
	if release != "" {
		args = append(args, "--", release)
	}
	text, err := p.query(ctx, "querying the repositories", args...)
	if err != nil {
		return nil, err
	}
	return parsePacmanList(text)
}

// parsePacmanList reads lines such as: core bash 5.2-1 [installed].
func parsePacmanList(text string) ([]host.Package, error) {
	var found []host.Package
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 3 {
			return nil, notUnderstood("pacman", line)
		}
		found = append(found, host.Package{Name: f[1], Version: f[2]})
	}
	return found, nil
}

func (p *pacman) offers(ctx context.Context, names []string, release string) (map[string]host.Offer, error) {
	found, err := p.list(ctx, release)
	if err != nil {
		return nil, err
	}
	offers := map[string]host.Offer{}
	for _, one := range found {
		if !slices.Contains(names, one.Name) {
			continue
		}
		o := offers[one.Name]
		first := o.Candidate // the candidate is the version in the first repository that has the package
		o.Versions = append(o.Versions, one.Version)
		o = newestFirst(o, order.Pacman)
		if first != "" {
			o.Candidate = first
		}
		offers[one.Name] = o
	}
	for _, name := range names {
		if _, ok := offers[name]; ok || strings.HasPrefix(name, "-") {
			continue
		}
		if out, err := p.insist(ctx, true, pacmanLocked, "pacman", "-Sp", "--noconfirm", "--print-format", "%n %v", "--",
			name); err == nil && out.Code == 0 {
			offers[name] = host.Offer{} // other packages provide it
		}
	}
	return offers, nil
}

func (p *pacman) names(ctx context.Context) ([]string, error) {
	found, err := p.list(ctx, "")
	names := make([]string, len(found))
	for i, one := range found {
		names[i] = one.Name
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// cached returns the packages in pacman's cache, by the names of the files: name-version-release-arch.pkg.tar.zst.
func (p *pacman) cached() ([]host.Package, error) {
	names, err := p.files.ReadDir(pacmanCache)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing downloaded packages: %w", err)
	}
	var packages []host.Package
	for _, name := range names {
		base, kind, ok := strings.Cut(name, ".pkg.tar")
		parts := strings.Split(base, "-")
		if n := len(parts); ok && n > 3 && !strings.HasSuffix(kind, ".sig") && !strings.HasSuffix(kind, ".part") {
			packages = append(packages, host.Package{Name: strings.Join(parts[:n-3], "-"),
				Version: parts[n-3] + "-" + parts[n-2], Arch: parts[n-1]})
		}
	}
	return packages, nil
}

func (p *pacman) refreshedAt() time.Time { return p.newest(pacmanDB + "/sync") }

func (p *pacman) repositoriesAt() time.Time { return p.newest(pacmanConf, "/etc/pacman.d") }

func (p *pacman) refresh(ctx context.Context) ([]string, error) {
	out, err := p.change(ctx, "refreshing the package indexes", pacmanLocked, "pacman", "-Sy", "--noconfirm",
		"--noprogressbar")
	if err == nil && out.Code != 0 {
		err = orPassing(ctx, pacmanLocked, out, whyFailed("refreshing the package indexes", out, pacmanClues()))
	}
	return nil, err
}
