package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// versionLock is an entry of the versionlock plugin.
type versionLock struct {
	line string // as it is in the file
	name string // of the package; may be a glob
}

type versionLocks []versionLock

// holds reports whether an entry matches the name of a package.
func (l versionLocks) holds(name string) bool {
	return slices.ContainsFunc(l, func(lock versionLock) bool {
		ok, err := path.Match(lock.name, name)
		return ok && err == nil
	})
}

// lockFile returns the file of the versionlock plugin.
func (d *dnf) lockFile() string {
	conf, file := "/etc/dnf/plugins/versionlock.conf", "/etc/dnf/plugins/versionlock.list"
	switch d.program {
	case "dnf5":
		return "/etc/dnf/versionlock.toml"
	case "yum":
		conf, file = "/etc/yum/pluginconf.d/versionlock.conf", "/etc/yum/pluginconf.d/versionlock.list"
	}
	data, _ := d.files.ReadFile(conf) // without a configuration, the default applies
	for line := range strings.SplitSeq(string(data), "\n") {
		if key, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "locklist" &&
			strings.HasPrefix(strings.TrimSpace(v), "/") {
			file = strings.TrimSpace(v)
		}
	}
	return file
}

func (d *dnf) versionLocks() (versionLocks, error) {
	data, err := d.files.ReadFile(d.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which packages are on hold: %w", err)
	}
	if d.program == "dnf5" {
		return parseLockTable(string(data)), nil
	}
	return parseVersionLocks(string(data)), nil
}

// parseVersionLocks parses lines such as foo-1:2.0-1.* (dnf) or 1:foo-2.0-1.* (yum). It skips lines that begin with !,
// which exclude a version and are not holds.
func parseVersionLocks(text string) versionLocks {
	dnf := regexp.MustCompile(`^(.+)-(?:\d+|\*):[^-]+-[^-]+$`)
	yum := regexp.MustCompile(`^(?:\d+|\*):(.+)-[^-]+-[^-]+$`)
	plain := regexp.MustCompile(`^(.+)-[^-]*\d[^-]*-[^-]+$`)
	var locks versionLocks
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		name := strings.TrimSuffix(line, "-*")
		for _, pattern := range []*regexp.Regexp{yum, dnf, plain} {
			if m := pattern.FindStringSubmatch(line); m != nil {
				name = m[1]
				break
			}
		}
		locks = append(locks, versionLock{line, name})
	}
	return locks
}

// parseLockTable parses the lock file of dnf5, in which each entry begins with [[packages]].
func parseLockTable(text string) versionLocks {
	var locks versionLocks
	name := regexp.MustCompile(`^\s*name\s*=\s*["']([^"']+)["']`)
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") {
			inside = line == "[[packages]]"
		}
		if m := name.FindStringSubmatch(line); m != nil && inside {
			locks = append(locks, versionLock{m[1], m[1]})
		}
	}
	return locks
}

// hold locks packages at their versions, or unlocks them, and verifies the result: the plugin does not report packages
// that it does not know.
func (d *dnf) hold(ctx context.Context, names []string, held bool) error {
	if len(names) == 0 {
		return nil
	}
	locks, err := d.versionLocks()
	if err != nil {
		return err
	}
	order := append([]string{"versionlock", "add"}, names...)
	if !held {
		order = []string{"versionlock", "delete"}
		for _, lock := range locks {
			if slices.ContainsFunc(names, func(name string) bool { return versionLocks{lock}.holds(name) }) {
				order = append(order, lock.line)
			}
		}
	}
	out, err := d.change(ctx, "putting packages on hold", dnfLocked, d.fromCache(append([]string{"-y"}, order...)...)...)
	if err != nil {
		return err
	}
	if out.Code != 0 {
		return orPassing(ctx, dnfLocked, out, whyFailed("putting packages on hold", out, dnfClues()))
	}
	return d.checkHeld(names, held)
}

func (d *dnf) checkHeld(names []string, held bool) error {
	locks, err := d.versionLocks()
	if err != nil {
		return err
	}
	for _, name := range names {
		if locks.holds(name) == held {
			continue
		}
		if held {
			return diag.Packages.Hint(fmt.Errorf("package %s could not be put on hold", name),
				"only a package that is installed, or in a repository, has a version to hold")
		}
		return diag.Packages.Hint(fmt.Errorf("package %s could not be taken off hold", name), "look for it in %s",
			d.lockFile())
	}
	return nil
}
