package packages

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// order returns the command of a transaction.
func (p *pacman) order(t host.Transaction) []string {
	argv := []string{"--noconfirm", "--noprogressbar"}
	switch t.Action {
	case host.RemovePackages:
		return append(append([]string{"-R"}, argv...), append([]string{"--"}, plainNames(t)...)...)
	case host.PurgePackages:
		return append(append([]string{"-Rsc"}, argv...), append([]string{"--"}, plainNames(t)...)...)
	case host.UpgradePackages, host.FullUpgradePackages:
		return append([]string{"-Su"}, argv...)
	}
	verb := "-S"
	if slices.ContainsFunc(t.Packages, func(w host.Wanted) bool { return w.File != "" }) {
		verb = "-U"
	}
	if t.DownloadOnly {
		verb += "w"
	}
	if !t.Reinstall {
		argv = append(argv, "--needed")
	}
	return append(append([]string{verb}, argv...), append([]string{"--"}, pacmanTargets(t)...)...)
}

func pacmanTargets(t host.Transaction) []string {
	var targets []string
	for _, w := range t.Packages {
		target := w.Name
		if w.Version != "" {
			target += "=" + w.Version
		}
		if t.Release != "" {
			target = t.Release + "/" + target
		}
		if w.File != "" {
			target = w.File
		}
		targets = append(targets, target)
	}
	return targets
}

// plan returns the changes that pacman would make for a transaction. pacman prints them because of the option --print.
func (p *pacman) plan(ctx context.Context, t host.Transaction) ([]host.PackageChange, error) {
	v, err := p.installed()
	if err != nil {
		return nil, err
	}
	if err := checkPackageNames(t, "+._-@"); err != nil {
		return nil, err
	}
	argv := slices.Insert(p.order(t), 1, "--print", "--print-format", pacmanStep+"%n %v")
	text, err := p.query(ctx, t.String(), argv...)
	if err != nil {
		return nil, err
	}
	goes := t.Action == host.RemovePackages || t.Action == host.PurgePackages
	changes, err := parsePacmanPlan(text, v, goes)
	if err != nil {
		return nil, err
	}
	return changes, refuseHeld(v, changes, plainNames(t), "pacman -S")
}

// pacmanStep marks the changes in the output of pacman.
const pacmanStep = "step: "

// parsePacmanPlan reads lines of pacmanStep, name and version.
func parsePacmanPlan(text string, v *host.Inventory, goes bool) ([]host.PackageChange, error) {
	var changes []host.PackageChange
	for line := range strings.SplitSeq(text, "\n") {
		step, ok := strings.CutPrefix(line, pacmanStep)
		if !ok {
			continue // a question, or a remark
		}
		f := strings.Fields(step)
		if len(f) != 2 {
			return nil, notUnderstood("pacman", line)
		}
		c := host.PackageChange{Name: f[0], Old: v.Version(f[0]), New: f[1]}
		if goes {
			c.New = ""
		}
		changes = append(changes, c)
	}
	structsort.Func(changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(changes), nil
}

func (p *pacman) perform(ctx context.Context, t host.Transaction) error {
	out, err := p.change(ctx, t.String(), pacmanLocked, append([]string{"pacman"}, p.order(t)...)...)
	if err == nil && out.Code != 0 {
		err = orPassing(ctx, pacmanLocked, out, whyFailed(t.String(), out, pacmanClues()))
	}
	return err
}

func pacmanLocked(out host.Output) bool {
	return strings.Contains(out.Stderr, "unable to lock database")
}

func pacmanClues() []clue {
	return []clue{
		{`unable to lock database`, "the database is locked: another process is changing packages, or one was interrupted",
			"let that end; if no pacman runs, delete " + pacmanLock},
		{
			`(?m)^error: (?:could not parse package description|invalid name for database entry|could not open file|database ` +
				`\S+ is)[^\n]*`, "$0", "the index or the package database is damaged; `pacman -Syy` fetches the indexes again, " +
				"`pacman -Dk` checks the database"},
		{`you cannot perform this operation unless you are root`, "this user may not change packages",
			"run the agent as root"},
		{`target not found: (\S+)`, "the repositories have no package $1",
			"check the name and the version (a repository has one alone), or add the repository that has it in a " +
				"pkgrepo.managed state"},
		{`database file for '([^']*)' does not exist|database not found: (\S+)`,
			"the index of repository $1$2 was never fetched", "leave out `refresh: False`, or run `pacman -Sy` on the host"},
		{`(?s)could not satisfy dependencies\)\n(.*)`, "dependencies cannot be met: $1",
			"refresh the indexes; a host of this family is upgraded as a whole, with pkg.uptodate, and what is on hold may " +
				"stand in the way"},
		{`(?s)unresolvable package conflicts detected.*|conflicting files\)\n.*`, "$0",
			"remove one of the packages first, in a pkg.removed state"},
		{`(?m)^error: failed retrieving file '([^']*)\.sig'`, "there is no signature of $1",
			"have its repository sign it (repo-add --sign), or set SigLevel of the repository"},
		{`(?m)^error: (?:failed retrieving file|failed to synchronize|failed to update)[^\n]*`, "$0",
			"check that the host reaches its package repositories: network, name resolution and proxy"},
		{`(?m)^error: [^\n]*(?:signature|PGP|key)[^\n]*`, "$0",
			"run `pacman-key --populate` on the host, or set SigLevel of the repository"},
		{`(?m)^error: [^\n]*(?:space|mount point|mtab)[^\n]*`, "$0",
			"make room there; `pacman -Sc` deletes downloaded packages"},
	}
}
