package packages

import (
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestPackageManagerOf checks that the distribution decides which package manager a host has, and its programs whether
// it is installed.
func TestPackageManagerOf(t *testing.T) {
	const debian, fedora, suse, arch, alpine = "ID=debian\n", "ID=fedora\n",
		"ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", "ID=arch\n", "ID=alpine\n"
	for _, c := range []struct {
		name, release string
		programs      []string
		links         map[string]string
		want          string
	}{
		{"Debian", debian, []string{"/usr/bin/apt-get"}, nil, "apt"},
		{"Debian with other package managers", debian, []string{"/usr/bin/dnf", "/usr/bin/zypper", "/usr/bin/pacman",
			"/usr/bin/apt-get"}, nil, "apt"},
		{"an image without apt", debian, []string{dpkgStatus}, nil, "apt"},
		{"Fedora", fedora, []string{"/usr/bin/dnf"}, nil, "dnf"},
		{"Fedora with apt", fedora, []string{"/usr/bin/apt-get", "/usr/bin/dnf"}, nil, "dnf"},
		{"Fedora with dnf5", fedora, []string{"/usr/bin/dnf5"}, map[string]string{"/usr/bin/dnf": "dnf5"}, "dnf"},
		{"CentOS 7", "ID=\"centos\"\nID_LIKE=\"rhel fedora\"\n", []string{"/usr/bin/yum"}, nil, "yum"},
		{"RHEL 8", "ID=\"rhel\"\n", []string{"/usr/bin/dnf-3"}, map[string]string{"/usr/bin/dnf": "dnf-3",
			"/usr/bin/yum": "dnf-3"}, "dnf"},
		{"Amazon Linux 2", "ID=\"amzn\"\nID_LIKE=\"centos rhel fedora\"\n", []string{"/usr/bin/yum"}, nil, "yum"},
		{"Leap", suse, []string{"/usr/bin/zypper", "/usr/bin/dnf"}, nil, "zypper"},
		{"SLES", "ID=\"sles\"\nID_LIKE=\"suse\"\n", []string{"/usr/bin/zypper"}, nil, "zypper"},
		{"Arch", arch, []string{"/usr/bin/pacman", pacmanDB + "/x"}, nil, "pacman"},
		{"Manjaro", "ID=manjaro\nID_LIKE=arch\n", []string{"/usr/bin/pacman", pacmanDB + "/x"}, nil, "pacman"},
		{"the game pacman", "ID=unknown\n", []string{"/usr/bin/pacman"}, nil, ""},
		{"Alpine", alpine, []string{"/sbin/apk"}, nil, "apk"},
		{"an empty os-release", "", []string{"/sbin/apk"}, nil, "apk"},
		{"Gentoo", "ID=gentoo\n", []string{"/usr/bin/emerge"}, nil, ""},
	} {
		tree := map[string]string{"/etc/os-release": c.release}
		for _, program := range c.programs {
			tree[program] = ""
		}
		h := rootWith(t, tree)
		for link, target := range c.links {
			if err := h.Files.Symlink(target, link); err != nil {
				t.Fatal(err)
			}
		}
		p := &Packages{manager: packageManagerOf(h.Files, nil, nil, host.Options{})}
		if got := p.Family(); got != c.want {
			t.Errorf("%s: the package manager is %q, want %q", c.name, got, c.want)
		}
	}
}
