//go:build peers

package cmd_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// change is a change of a tree.
type change struct {
	name string
	edit func(tree string) error // makes the next version from the previous one
}

// series is a first version of a tree and several next ones, each made from a copy of it.
type series struct {
	name    string
	plant   func(tree string) error
	changes []change
	debs    []string // packages of Debian from which it is made
}

// absent returns the reason why a series cannot be made here, or "".
func (g series) absent() string {
	for _, name := range g.debs {
		if len(versions(name)) == 0 {
			return "apt-get update has not been run, or Debian has no " + name
		}
	}
	return ""
}

// allSeries returns the trees for measuring deltas. Packages of Debian are used in both versions that the archive
// has after a security update.
func allSeries(t *testing.T) []series {
	system := []string{"git", "vim-runtime", "postgresql-15", "perl-base", "openssl", "libssl3", "libpython3.11-stdlib",
		"bind9-libs"}
	python := []string{"python3-django", "python3-sqlalchemy", "python3-requests", "python3-urllib3",
		"python3-cryptography", "python3-aiohttp", "python3-jinja2", "python3-botocore"}
	debs := t.TempDir()
	many := series{name: "30,000 files", plant: func(tree string) error { return writeFiles(tree, 30_000, 20, 0, 0.02) },
		changes: []change{
			{"1 % of the files changed at random", func(tree string) error { return touchFiles(tree, 300) }},
			{"two bytes of one file", func(tree string) error { return touchFiles(tree, 1) }},
		}}
	packages := series{name: "Debian packages", debs: system,
		plant: func(tree string) error { return unpackDebs(debs, tree, "", system...) }, changes: []change{
			upgrade(debs, "", "openssl", "libssl3"), upgrade(debs, "", "libpython3.11-stdlib"), upgrade(debs, "", "bind9-libs"),
		}}
	virtualenv := series{name: "Python virtualenv", debs: python, plant: func(tree string) error {
		if out, err := exec.Command("python3", "-m", "venv", "--copies", tree).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return unpackDebs(debs, tree, sitePackages, python...)
	}, changes: []change{upgrade(debs, sitePackages, "python3-django"),
		upgrade(debs, sitePackages, "python3-cryptography"), upgrade(debs, sitePackages, "python3-aiohttp")}}
	return []series{packages, virtualenv, many}
}

// sitePackages is the directory of modules, both in a virtualenv and in Debian's /usr.
const sitePackages = "lib/python3/dist-packages"

// versions returns the versions of a package in the archive, the oldest first.
func versions(name string) []string {
	out, err := exec.Command("apt-cache", "madison", name).Output()
	if err != nil {
		return nil
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		if fields := strings.Split(line, "|"); len(fields) == 3 {
			all = append(all, strings.TrimSpace(fields[1]))
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		if exec.Command("dpkg", "--compare-versions", a, "lt", b).Run() == nil {
			return -1
		}
		return 1
	})
	return slices.Compact(all)
}

// upgrade returns a change from the previous to the newest version of packages.
func upgrade(debs, below string, names ...string) change {
	return change{strings.Join(names, " and ") + " bumped", func(tree string) error {
		for _, name := range names {
			all := versions(name)
			if len(all) < 2 {
				return fmt.Errorf("%w: Debian has one version of %s", errAbsent, name)
			}
			if err := removeDeb(debs, tree, below, name, all[len(all)-2]); err != nil {
				return err
			}
			if err := unpackDeb(debs, tree, below, name, all[len(all)-1]); err != nil {
				return err
			}
		}
		return nil
	}}
}

var errAbsent = fmt.Errorf("not measured")

func unpackDebs(debs, tree, below string, names ...string) error {
	for _, name := range names {
		all := versions(name)
		if err := unpackDeb(debs, tree, below, name, all[max(0, len(all)-2)]); err != nil {
			return err
		}
	}
	return nil
}

// opened returns the unpacked tree of a package, or the part of it below a directory, compiled like in the python
// builder.
func opened(debs, below, name, version string) (string, error) {
	dir := filepath.Join(debs, name+"_"+strings.ReplaceAll(version, ":", "%"))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	script := `cd "$0" && apt-get download -q "$1=$2" >/dev/null && dpkg-deb -x "$1"_*.deb "$3.new" && rm "$1"_*.deb && ` +
		// A release must not contain absolute links.
		`find "$3.new" -lname '/*' -delete && ` +
		`if [ -n "$4" ]; then mv "$3.new/usr/$4" "$3" && python3 -m compileall -q --invalidation-mode unchecked-hash -s ` +
		`"$3" -p / "$3"; else mv "$3.new" "$3"; fi`
	if out, err := exec.Command("sh", "-c", script, debs, name, version, dir, below).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, version, err, out)
	}
	return dir, nil
}

func unpackDeb(debs, tree, below, name, version string) error {
	dir, err := opened(debs, below, name, version)
	if err != nil {
		return err
	}
	return shell(`mkdir -p "$0/$2" && cp -a "$1/." "$0/$2"`, tree, dir, below)
}

func removeDeb(debs, tree, below, name, version string) error {
	dir, err := opened(debs, below, name, version)
	if err != nil {
		return err
	}
	return shell(`cd "$1" && find . ! -type d -print0 | (cd "$0/$2" && xargs -0 rm -f)`, tree, dir, below)
}

func shell(script string, args ...string) error {
	if out, err := exec.Command("sh", append([]string{"-c", script}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, out)
	}
	return nil
}

// touchFiles changes two bytes in the middle of random files.
func touchFiles(tree string, count int) error {
	var files []string
	err := filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	random := rand.New(rand.NewPCG(2, 2))
	for range count {
		if err != nil {
			break
		}
		name := files[random.IntN(len(files))]
		var data []byte
		if data, err = os.ReadFile(name); err == nil {
			data[len(data)/2] ^= 1
			data[len(data)/2+1] ^= 1
			err = os.WriteFile(name, data, 0o644)
		}
	}
	return err
}
