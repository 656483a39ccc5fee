package packages

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// orders returns the commands of a transaction.
func (a *apk) orders(v *host.Inventory, t host.Transaction) [][]string {
	switch t.Action {
	case host.RemovePackages:
		return [][]string{append([]string{"del", "--"}, plainNames(t)...)}
	case host.PurgePackages:
		return [][]string{append([]string{"del", "--purge", "--"}, plainNames(t)...)}
	case host.UpgradePackages:
		return [][]string{{"upgrade"}}
	case host.FullUpgradePackages:
		return [][]string{{"upgrade", "--available"}}
	}
	var add, again []string
	var upgrade []string
	for _, w := range t.Packages {
		there := v.Version(w.Name)
		switch {
		case t.Reinstall && there != "" && w.File == "" && (w.Version == "" || w.Version == there):
			again = append(again, w.Name)
			continue
		case there != "" && w.Version == "" && w.File == "":
			upgrade = []string{"--upgrade"}
		}
		add = append(add, apkTarget(t, w))
	}
	var orders [][]string
	if len(add) > 0 {
		orders = append(orders, slices.Concat([]string{"add"}, apkTrust(t), upgrade, []string{"--"}, add))
	}
	if len(again) > 0 {
		orders = append(orders, slices.Concat([]string{"fix", "--reinstall"}, apkTrust(t), []string{"--"}, again))
	}
	return orders
}

func apkTrust(t host.Transaction) []string {
	if t.Unverified {
		return []string{"--allow-untrusted"}
	}
	return nil
}

func apkTarget(t host.Transaction, w host.Wanted) string {
	target := w.Name
	switch {
	case w.File != "":
		return w.File
	case t.Release != "":
		target += "@" + t.Release
	}
	if w.Version != "" {
		target += "=" + w.Version
	}
	return target
}

// plan makes apk simulate a transaction.
func (a *apk) plan(ctx context.Context, t host.Transaction) ([]host.PackageChange, error) {
	v, err := a.installed()
	if err != nil {
		return nil, err
	}
	if err := checkPackageNames(t, "+._-"); err != nil {
		return nil, err
	}
	if t.DownloadOnly {
		return nil, nil
	}
	var changes []host.PackageChange
	for _, order := range a.orders(v, t) {
		text, err := a.query(ctx, t.String(), slices.Insert(slices.Clone(order), 1, "--simulate")...)
		if err != nil {
			return nil, err
		}
		if strings.Contains(text, "are not removed due to") {
			return nil, whyFailed(t.String(), host.Output{Stdout: text, Code: 1}, apkClues())
		}
		more, err := parseAPKPlan(text, v)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	structsort.Func(changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(changes), refuseHeld(v, changes, plainNames(t), "apk add")
}

// parseAPKPlan reads lines such as: (1/2) Upgrading foo (1.0-r0 -> 1.1-r0).
func parseAPKPlan(text string, v *host.Inventory) ([]host.PackageChange, error) {
	step := regexp.MustCompile(
		`^\(\s*\d+/\d+\) (Installing|Upgrading|Downgrading|Replacing|Reinstalling|Purging) (\S+) \((\S+)(?: -> (\S+))?\)$`)
	var changes []host.PackageChange
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "(") {
			continue // a remark
		}
		m := step.FindStringSubmatch(line)
		if m == nil {
			return nil, notUnderstood("apk", line)
		}
		name, _, _ := strings.Cut(m[2], "@")
		c := host.PackageChange{Name: name, Old: v.Version(name), New: m[3]}
		if m[4] != "" {
			c.New = m[4]
		}
		if m[1] == "Purging" {
			c.New = ""
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func (a *apk) perform(ctx context.Context, t host.Transaction) error {
	v, err := a.installed()
	if err != nil {
		return err
	}
	if t.DownloadOnly {
		return a.order(ctx, t, append([]string{"cache", "download", "--"}, plainNames(t)...))
	}
	return aroundHold(ctx, heldOf(v, t), a.hold, func() error {
		for _, order := range a.orders(v, t) {
			if err := a.order(ctx, t, order); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *apk) order(ctx context.Context, t host.Transaction, order []string) error {
	out, err := a.change(ctx, t.String(), apkLocked, append([]string{"apk", "--no-progress"}, order...)...)
	if err == nil && out.Code != 0 {
		err = orPassing(ctx, apkLocked, out, whyFailed(t.String(), out, apkClues()))
	}
	return err
}

func apkLocked(out host.Output) bool { return strings.Contains(out.Stderr, "Unable to lock database") }

func apkClues() []clue {
	return []clue{
		{`Unable to lock database: (?:Permission denied|Read-only)|Unable to open log: Permission denied`,
			"this user may not change packages", "run the agent as root"},
		{`Unable to lock database`, "the database is locked: another process is changing packages",
			"wait until it ends, or see what it waits for; the next run tries again"},
		{`(?s)are not removed due to:\n(.*?)\n\n`, "other packages need them: $1", "remove those as well"},
		{`(\S+) \(no such package\):\n\s+required by: world`, "the repositories have no package $1",
			"check the name and the version, or add the repository that has it in a pkgrepo.managed state"},
		{`(\S+) \(virtual\):(?s:.*?)provided by: ([^\n]+)`, "$1 is a virtual package, which other packages provide",
			"name one of the packages that provide it: $2"},
		{`(?s)(?:unable to select packages|unsatisfiable constraints)[^\n]*\n(.*)`, "dependencies cannot be met: $1",
			"check that all repositories it needs are there, and that nothing it needs is on hold in " + apkWorld},
		{`non-repository package to system, but it would be lost`,
			"this host runs from memory, and a package from a file would be gone after the next boot",
			"set up a cache for packages with setup-apkcache"},
		{`(?m)^ERROR: [^\n]*UNTRUSTED[^\n]*`, "$0",
			"put the key of the repository into /etc/apk/keys, or set skip_verify if you trust the connection to it"},
		{`(?m)^ERROR: [^\n]*(?:network|timed out|temporary error|DNS|Host|not found|fetching)[^\n]*`, "$0",
			"check that the host reaches its package repositories: network, name resolution and proxy"},
		{`(?m)^ERROR: [^\n]*No space left[^\n]*`, "$0", "make room there; `apk cache clean` deletes downloaded packages"},
		{`(?m)^ERROR: [^\n]+`, "$0", "run the same command on the host to see more"},
	}
}
