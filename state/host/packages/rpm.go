package packages

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
)

// rpmFormat is the format of the fields that readRPM needs, separated by tabs.
const rpmFormat = `%{NAME}\t%{EPOCH}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\n`

// readRPM returns the package database of rpm. It runs rpm, since the format of the database differs between versions.
// held reports whether a package is on hold.
func (c *client) readRPM(held func(name string) bool) (*host.Inventory, error) {
	out, err := c.ask("rpm", "-qa", "--queryformat", rpmFormat)
	if err != nil {
		return nil, fmt.Errorf("reading the package database: %w", err)
	}
	if out.Code != 0 {
		return nil, whyFailed("reading the package database", out, rpmClues())
	}
	packages, err := parseRPM(out.Stdout)
	if err != nil {
		return nil, err
	}
	// rpm stores keys in the form of packages.
	packages = structsort.Without(packages, func(p host.Package) bool { return p.Name == "gpg-pubkey" })
	for i, p := range packages {
		packages[i].Held = held(p.Name)
	}
	v := host.InventoryOf(rpmNative(packages), rpmNames(), packages)
	v.Provider = func(virtual string) []string { return c.rpmProviders(v, virtual) }
	return v, nil
}

func rpmNames() host.ArchNames {
	return host.ArchNames{Join: ".", Any: []string{"noarch"}, Same: func(native, arch string) bool {
		return is32(native) && is32(arch)
	}}
}

// is32 reports whether arch is a name of the 32-bit x86 architecture.
func is32(arch string) bool {
	return slices.Contains([]string{"i386", "i486", "i586", "i686", "athlon", "geode"}, arch)
}

func rpmClues() []clue {
	return []clue{
		{
			`(?i)database disk image is malformed|DB_RUNRECOVERY|Thread died in Berkeley DB|rpmdb open failed|cannot open ` +
				`Packages`,
			"the database of rpm is damaged or locked", "run `rpm --rebuilddb` on the host and read its output"},
	}
}

// parseRPM parses lines of rpmFormat. It returns the packages sorted by name and then by version.
func parseRPM(text string) ([]host.Package, error) {
	var packages []host.Package
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 5 || f[0] == "" || f[2] == "" {
			return nil, notUnderstood("rpm", line)
		}
		packages = append(packages, host.Package{Name: f[0], Version: evr(f[1], f[2], f[3]), Arch: f[4],
			State: host.InstalledPackage})
	}
	structsort.Func(packages, func(a, b host.Package) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return order.RPM(a.Version, b.Version)
	})
	return packages, nil
}

// evr returns a version as users write it: without an epoch of "(none)" or 0.
func evr(epoch, version, release string) string {
	if release != "" {
		version += "-" + release
	}
	if epoch == "" || epoch == "0" || epoch == "(none)" {
		return version
	}
	return epoch + ":" + version
}

// plainEVR returns a version without an epoch of 0.
func plainEVR(v string) string { return strings.TrimPrefix(v, "0:") }

// rpmNative returns the architecture of the package rpm or, if it is not in packages, that of the agent.
func rpmNative(packages []host.Package) string {
	if i := slices.IndexFunc(packages, func(p host.Package) bool { return p.Name == "rpm" }); i >= 0 {
		return packages[i].Arch
	}
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	case "386":
		return "i686"
	}
	return runtime.GOARCH
}

// rpmProviders returns the installed packages that provide a name, which may also be a file.
func (c *client) rpmProviders(v *host.Inventory, virtual string) []string {
	if strings.HasPrefix(virtual, "-") {
		return nil
	}
	out, err := c.ask("rpm", "-q", "--whatprovides", "--queryformat", rpmFormat, virtual)
	if err != nil || out.Code != 0 {
		return nil // rpm fails if there are none
	}
	packages, err := parseRPM(out.Stdout)
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range packages {
		names = append(names, v.NameOf(p))
	}
	return names
}

// refuseHeld returns an error if a transaction would change a package on hold that it does not name.
func refuseHeld(v *host.Inventory, changes []host.PackageChange, named []string, unhold string) error {
	for _, c := range changes {
		if v.Held(c.Name) && !slices.Contains(named, c.Name) {
			return diag.Packages.Hint(fmt.Errorf("package %s would change, and it is on hold", c.Name),
				"name it in the state, or take it off hold with pkg.unheld or `%s %s`", unhold, c.Name)
		}
	}
	return nil
}

// heldOf returns the packages on hold that a transaction names, if it installs packages.
func heldOf(v *host.Inventory, t host.Transaction) []string {
	var held []string
	for _, w := range t.Packages {
		if t.Action == host.InstallPackages && v.Held(w.Name) {
			held = append(held, w.Name)
		}
	}
	return held
}

// aroundHold performs a transaction that changes packages on hold. It removes the holds, and restores them even if the
// transaction fails.
func aroundHold(ctx context.Context, held []string, hold func(context.Context, []string, bool) error,
	do func() error) error {
	if len(held) == 0 {
		return do()
	}
	if err := hold(ctx, held, false); err != nil {
		return err
	}
	failure := do()
	return errors.Join(failure, hold(context.WithoutCancel(ctx), held, true))
}

const lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// checkPackageNames returns an error for names and versions that a package manager would not interpret as such. Names
// may have letters, digits and the characters in signs.
func checkPackageNames(t host.Transaction, signs string) error {
	bad := func(r rune) bool { return !strings.ContainsRune(lettersAndDigits+signs, r) }
	for _, w := range t.Packages {
		if w.File == "" && (w.Name == "" || strings.ContainsFunc(w.Name, bad) || strings.ContainsAny(w.Name[:1], "-+.~!@:")) {
			return diag.Argument.Hint(fmt.Errorf("%q is not a package name", w.Name),
				"package names here have letters, digits and the signs %s", signs)
		}
		if strings.ContainsAny(w.Version, " \t\n<>=!*?[]/") || strings.HasPrefix(w.Version, "-") {
			return diag.Argument.Hint(fmt.Errorf("%q is not a version of a package", w.Version),
				"give a version that the repositories have")
		}
	}
	return nil
}
