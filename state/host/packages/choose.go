package packages

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// packageManagerOf returns the package manager of the host's family if it is installed, since hosts may also have those
// of other families. Otherwise it returns any known one that is installed, or nil if there is none.
func packageManagerOf(files host.Files, commands host.Commands, env *host.Environment, o host.Options) packageManager {
	c := client{
		env: env, files: files, commands: commands,
		lockWait: cmp.Or(o.LockWait, defaultLockWait), scoped: !o.Relocated() && host.BootedWithSystemd(files),
	}
	families := []string{"apt", "zypper", "dnf", "pacman", "apk"}
	if own := packageFamily(files); own != "" {
		families = slices.Insert(families, 0, own)
	}
	for _, family := range families {
		if manager := c.manager(family); manager != nil {
			return manager
		}
	}
	return nil
}

// manager returns the package manager of a family, or nil if it is not installed.
func (c client) manager(family string) packageManager {
	switch {
	case family == "apt" && (c.hasProgram("apt-get") || c.has(dpkgStatus)):
		return &apt{c}
	case family == "zypper" && c.hasProgram("zypper"):
		return &zypper{c}
	case family == "pacman" && c.hasProgram("pacman") && c.has(pacmanDB):
		return &pacman{c}
	case family == "apk" && c.hasProgram("apk"):
		return &apk{c}
	case family == "dnf":
		if program := c.dnfProgram(); program != "" {
			return &dnf{c, program}
		}
	}
	return nil
}

// dnfProgram returns the installed generation of dnf: dnf5, dnf or yum, or "" if there is none. The programs dnf and
// yum may be links to a later generation.
func (c client) dnfProgram() string {
	for _, dir := range []string{"/usr/bin/", "/bin/"} {
		for _, name := range []string{"dnf", "yum"} {
			target, err := c.files.Readlink(dir + name)
			switch {
			case err == nil && path.Base(target) == "dnf5":
				return "dnf5"
			case err == nil && strings.HasPrefix(path.Base(target), "dnf"), c.has(dir+name) && name == "dnf":
				return "dnf"
			case c.has(dir + name):
				return name
			}
		}
	}
	if c.hasProgram("dnf5") {
		return "dnf5"
	}
	return ""
}

func (c client) has(file string) bool {
	_, err := c.files.Stat(file)
	return err == nil
}

func (c client) hasProgram(name string) bool {
	return slices.ContainsFunc([]string{"/usr/bin/", "/usr/sbin/", "/sbin/", "/bin/"}, func(dir string) bool {
		return c.has(dir + name)
	})
}

// packageFamily returns the package manager of the family that os-release names.
func packageFamily(files host.Files) string {
	for _, file := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		data, err := files.ReadFile(file)
		if err != nil {
			continue
		}
		release := map[string]string{}
		for line := range strings.SplitSeq(string(data), "\n") {
			key, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			release[key] = strings.Trim(v, `"'`)
		}
		for id := range strings.FieldsSeq(release["ID"] + " " + release["ID_LIKE"]) {
			if family := familyOfID(id); family != "" {
				return family
			}
		}
		return ""
	}
	return ""
}

func familyOfID(id string) string {
	switch id {
	case "debian", "ubuntu":
		return "apt"
	case "rhel", "fedora", "centos", "amzn", "ol", "rocky", "almalinux":
		return "dnf"
	case "suse", "opensuse", "sles", "sled":
		return "zypper"
	case "arch", "manjaro":
		return "pacman"
	case "alpine", "postmarketos":
		return "apk"
	}
	return ""
}

// holdsPackages reports whether a file belongs to a package database or to the configuration of repositories.
func holdsPackages(file string) bool {
	return slices.ContainsFunc([]string{
		"/var/lib/dpkg/", "/etc/apt/", "/var/lib/rpm/", "/usr/lib/sysimage/rpm/", "/etc/yum", "/etc/dnf/", "/etc/zypp/",
		"/var/lib/pacman/", "/etc/pacman", "/lib/apk/db/", "/usr/lib/apk/db/", "/etc/apk/",
	}, func(prefix string) bool { return strings.HasPrefix(file, prefix) })
}
