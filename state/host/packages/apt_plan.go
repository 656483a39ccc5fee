package packages

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// plan makes apt-get simulate a transaction. It refuses a change of a package on hold that the transaction does not
// name.
func (a *apt) plan(ctx context.Context, t host.Transaction) ([]host.PackageChange, error) {
	v, err := a.settled(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.checkNames(ctx, v, t); err != nil {
		return nil, err
	}
	held := a.heldTargets(t)
	argv := slices.Concat([]string{"apt-get", "--simulate"}, a.options(t), allowHeld(held), a.order(t))
	out, err := a.ask(ctx, argv...)
	if err != nil {
		return nil, err
	}
	if out.Code != 0 {
		return nil, a.failure(ctx, t.String(), out)
	}
	changes := parsePlan(out.Stdout, v)
	for _, c := range changes {
		if v.Held(c.Name) && !slices.Contains(held, c.Name) {
			return nil, errHeld(c.Name)
		}
	}
	return changes, nil
}

// checkNames returns an error for names that are not package names. If no package has such a name, apt interprets foo-
// as an order to remove foo, and foo.* as a pattern; so checkNames accepts these only if a package has that name.
func (a *apt) checkNames(ctx context.Context, v *host.Inventory, t host.Transaction) error {
	syntax := regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*(:[a-z0-9-]+)?$`)
	var unclear []string
	for _, w := range t.Packages {
		switch {
		case w.File != "":
		case !syntax.MatchString(w.Name):
			return diag.Argument.Hint(fmt.Errorf("%q is not a package name", w.Name),
				"package names have lower-case letters, digits and the signs + - . only")
		case strings.ContainsAny(w.Name, "+.") || strings.HasSuffix(w.Name, "-"):
			if v.Version(w.Name) == "" && v.Leftover(w.Name) == "" {
				unclear = append(unclear, w.Name)
			}
		}
	}
	if len(unclear) == 0 {
		return nil
	}
	offers, err := a.offers(ctx, unclear, "")
	if err != nil {
		return err
	}
	for _, name := range unclear {
		if _, ok := offers[name]; !ok {
			err := fmt.Errorf("%s: the repositories have no package %s", t, name)
			return diag.Packages.Hint(err, "%s", likeName(ctx, a, []string{"", name}, host.Output{}))
		}
	}
	return nil
}

// settled returns the installed packages after it has waited for other processes that change them. If dpkg still has
// updates that are not merged into its database, or packages that have to be installed again, a process was killed, or
// lost its power, while it changed packages. dpkg refuses other changes until that one is complete. A state that may
// change the host completes it; if that fails, the error is *Unfinished.
func (a *apt) settled(ctx context.Context) (*host.Inventory, error) {
	v, err := a.installed()
	if err != nil || whole(v) {
		return v, err
	}
	if err := a.waitForOthers(ctx); err != nil {
		return nil, err
	}
	if v, err = a.installed(); err != nil || whole(v) {
		return v, err
	}
	if !host.Acts(ctx) {
		return v, nil // a simulation needs no lock of dpkg
	}
	out, err := a.finish(ctx, "dpkg", "--force-confold", "--force-confdef", "--configure", "-a")
	if err == nil {
		v, err = a.installed()
	}
	if err == nil && len(v.Damaged()) > 0 {
		argv := slices.Concat([]string{"apt-get"}, a.options(host.Transaction{Reinstall: true}), []string{"install", "--"},
			v.Damaged())
		if out, err = a.finish(ctx, argv...); err == nil {
			v, err = a.installed()
		}
	}
	if err == nil && !whole(v) {
		err = &Unfinished{output: redact.URLs(complaints(out))}
	}
	return v, err
}

// whole reports whether dpkg accepts changes.
func whole(v *host.Inventory) bool { return !v.Interrupted && len(v.Damaged()) == 0 }

// finish runs a program that completes an interrupted change. A package that cannot be configured is no error here: it
// does not keep dpkg from other changes, and apt reports it where it matters.
func (a *apt) finish(ctx context.Context, argv ...string) (host.Output, error) {
	if a.scoped {
		argv = append(inScope("completing an interrupted change of packages"), argv...)
	}
	return a.insist(ctx, argv)
}

func errHeld(name string) error {
	return diag.Packages.Hint(fmt.Errorf("package %s would change, and it is on hold", name),
		"name it in the state, or take it off hold with pkg.unheld or `apt-mark unhold %s`", name)
}

// parsePlan reads lines such as
//
//	Inst foo [1.0] (1.1 Debian:12/stable [amd64])
//	Remv bar [2.0]
//	Purg baz
func parsePlan(text string, v *host.Inventory) []host.PackageChange {
	var changes []host.PackageChange
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		name := v.ListName(f[1])
		switch f[0] {
		case "Inst":
			changes = append(changes, host.PackageChange{Name: name, Old: v.Version(name), New: plannedVersion(f[2:])})
		case "Remv":
			changes = append(changes, host.PackageChange{Name: name, Old: v.Version(name)})
		case "Purg":
			if old := v.Version(name); old != "" {
				changes = append(changes, host.PackageChange{Name: name, Old: old})
			} else if old := v.Leftover(name); old != "" {
				changes = append(changes, host.PackageChange{Name: name, Old: old, Purged: true})
			}
		}
	}
	structsort.Func(changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(changes)
}

// plannedVersion returns the version at the start of the parentheses with version and origin.
func plannedVersion(words []string) string {
	for _, word := range words {
		if version, ok := strings.CutPrefix(word, "("); ok {
			return strings.TrimSuffix(version, ")")
		}
	}
	return ""
}
