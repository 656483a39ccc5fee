package grains

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// A distro is the description of a distribution by its files. Salt determines these facts in steps that grew over the
// years, with exceptions for files that once were wrong. Formulas compare the results, so the same steps are followed
// here. Only the family of a distribution that Salt does not know is better here: it is the family of the distribution
// from which it is derived according to os-release.
type distro struct {
	os, family, fullName string
	release, codename    string
	lsb                  map[string]string // the lsb_distrib_ grains
}

func (c *collector) distribution() {
	d := c.system.distro()
	c.set("os", d.os)
	c.set("os_family", d.family)
	c.set("osfullname", d.fullName)
	c.set("oscodename", d.codename)
	c.set("osrelease", d.release)
	for _, name := range []string{"lsb_distrib_id", "lsb_distrib_release", "lsb_distrib_codename",
		"lsb_distrib_description"} {
		if text, ok := d.lsb[name]; ok {
			c.set(name, text)
		}
	}
	if d.release != "" {
		c.release(d)
	}
	c.set("osarch", c.osArch(d.family))
	c.selinux()
	c.systemd()
	c.set("transactional", c.system.program("transactional-update"))
}

// distro combines the release files.
func (t tree) distro() distro {
	release := t.osRelease()
	if release == nil {
		release = parseOSRelease("")
	}
	d := distro{
		os:       osGrain(release["NAME"], release["ID"]),
		fullName: strings.TrimSpace(release["NAME"]),
		lsb:      t.lsbRelease(),
	}
	switch {
	case strings.HasPrefix(strings.ToLower(d.lsb["lsb_distrib_description"]), "antergos"):
		d.fullName = "Antergos Linux" // its lsb-release has the name Arch
	case d.lsb["lsb_distrib_id"] == "":
		d.fromOSRelease(release)
	}
	d.family = osFamily(d.os, release["ID_LIKE"])
	d.setRelease(t, release)
	d.setCodename(t, release)
	return d
}

// fromOSRelease sets the facts of a missing lsb-release from os-release, and handles the two kinds of SUSE.
func (d *distro) fromOSRelease(release map[string]string) {
	d.lsb["lsb_distrib_id"] = d.fullName
	if version, ok := release["VERSION_ID"]; ok {
		d.lsb["lsb_distrib_release"] = version
	}
	d.lsb["lsb_distrib_codename"] = release["PRETTY_NAME"]
	if codename, ok := release["VERSION_CODENAME"]; ok {
		d.lsb["lsb_distrib_codename"] = codename
	}
	d.fromSUSE(release)
	if words := strings.Fields(release["PRETTY_NAME"]); release["ID"] == "mendel" && len(words) >= 3 {
		d.lsb["lsb_distrib_release"] = words[2]
	}
}

// fromSUSE sets the facts that are in other fields of os-release on distributions of SUSE.
func (d *distro) fromSUSE(release map[string]string) {
	vendor, version := cpe(release["CPE_NAME"])
	if vendor == "suse" || vendor == "opensuse" {
		d.os = "SUSE"
		switch {
		case release["NAME"] == "openSUSE Leap":
			d.fullName = "Leap"
		case release["VERSION"] == "Tumbleweed":
			d.fullName = "Tumbleweed"
		}
	}
	if vendor == "opensuse" && version != "" {
		d.lsb["lsb_distrib_release"] = version
	}
}

func (d *distro) setRelease(t tree, release map[string]string) {
	for _, without := range []string{"CentOS Linux 7", "CentOS Linux 8"} {
		if strings.Contains(d.lsb["lsb_distrib_codename"], without) {
			delete(d.lsb, "lsb_distrib_release") // it has no minor version
		}
	}
	if version, ok := d.lsb["lsb_distrib_release"]; ok {
		d.release = strings.TrimSpace(version)
		return
	}
	d.release = release["VERSION_ID"]
	if precise, _ := t.ownRelease(release["ID"]); strings.Count(precise, ".") > strings.Count(d.release, ".") ||
		d.release == "" {
		d.release = precise
	}
}

func (d *distro) setCodename(t tree, release map[string]string) {
	name := d.lsb["lsb_distrib_codename"]
	if slices.Contains([]string{"Rocky", "AlmaLinux", "AstraLinuxSE"}, d.os) {
		if m := inBrackets().FindStringSubmatch(name); m != nil {
			name = m[1]
			d.lsb["lsb_distrib_codename"] = name
		}
	}
	if d.codename = strings.TrimSpace(name); d.codename != "" && !strings.Contains(d.codename, "Red Hat") {
		return
	}
	if d.codename = versionCodename(release); d.codename == "" {
		_, d.codename = t.ownRelease(release["ID"])
	}
}

// release sets the facts that are derived from the version: its parts, the first of them, and the name with the
// version, which formulas look up in their tables.
func (c *collector) release(d distro) {
	var info value.Tuple
	for part := range strings.SplitSeq(d.release, ".") {
		if n, err := strconv.Atoi(part); err == nil && isDigits(part) {
			info = append(info, n)
		} else {
			info = append(info, part)
		}
	}
	c.set("osrelease_info", info)
	if major, ok := info[0].(int); ok {
		c.set("osmajorrelease", major)
	}
	name, version := d.fullName, value.Str(info[0])
	if d.os == "Debian" || d.os == "Raspbian" {
		name = d.os
	}
	if d.os == "Ubuntu" || d.os == "Pop" {
		version = d.release
	}
	c.set("osfinger", fmt.Sprintf("%s-%s", name, version))
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// debianArches maps the kernel's names of architectures to dpkg's.
func debianArches() map[string]string {
	return map[string]string{
		"x86_64": "amd64", "aarch64": "arm64", "i386": "i386", "i586": "i386", "i686": "i386",
		"armv6l": "armel", "armv7l": "armhf", "ppc64le": "ppc64el", "riscv64": "riscv64", "s390x": "s390x",
		"mips64": "mips64el", "loongarch64": "loong64",
	}
}

// osArch returns the architecture of packages. dpkg records it only after a foreign architecture was added; its own
// comes first.
func (c *collector) osArch(family string) string {
	machine := c.text("cpuarch")
	if family != "Debian" {
		return machine
	}
	native, _, _ := strings.Cut(c.system.read("var/lib/dpkg/arch"), "\n")
	if native != "" {
		return native
	}
	if arch, ok := debianArches()[machine]; ok {
		return arch
	}
	return machine
}
