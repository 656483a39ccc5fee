package grains

import (
	"regexp"
	"strings"
	"sync"
)

// osRelease parses os-release as defined by freedesktop.org, or returns nil if the tree has none.
func (t tree) osRelease() map[string]string {
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		if text := t.read(name); text != "" {
			return parseOSRelease(text)
		}
	}
	return nil
}

func parseOSRelease(text string) map[string]string {
	release := map[string]string{"NAME": "Linux", "ID": "linux", "PRETTY_NAME": "Linux"}
	for key, val := range pairs(text, "=") {
		if key != "" && key[0] != '#' {
			release[key] = unquote(val)
		}
	}
	return release
}

var escaped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\\\\([$\"'\\\\`])") })

// unquote removes shell quoting: quotes around the whole, and backslashes before special characters.
func unquote(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		s = s[1 : n-1]
	}
	return escaped().ReplaceAllString(s, "$1")
}

// lsbValue matches the part of a value in /etc/lsb-release that Salt uses.
var lsbValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^['"]?([\w\s.\-]+)`) })

// lsbRelease returns Salt's grains for /etc/lsb-release.
func (t tree) lsbRelease() map[string]string {
	lsb := map[string]string{}
	for key, val := range pairs(t.read("etc/lsb-release"), "=") {
		switch key {
		case "DISTRIB_ID", "DISTRIB_RELEASE", "DISTRIB_CODENAME", "DISTRIB_DESCRIPTION":
			if m := lsbValue().FindStringSubmatch(val); m != nil {
				lsb["lsb_"+strings.ToLower(key)] = strings.TrimSpace(m[1])
			}
		}
	}
	return lsb
}

// ownRelease matches the only line of a file such as /etc/redhat-release.
var ownRelease = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:release |System )?(\d[\d.+\-a-z]*)(?: +\(([^)]*)\))?`)
})

// ownRelease returns version and code name in the distribution's own file. It is more precise than os-release, where
// the version is 7 if /etc/centos-release has 7.9.2009.
func (t tree) ownRelease(id string) (version, codename string) {
	for _, name := range []string{id, "redhat", "SuSE"} {
		line, _, _ := strings.Cut(t.read("etc/"+name+"-release"), "\n")
		if m := ownRelease().FindStringSubmatch(line); m != nil {
			return m[1], m[2]
		}
	}
	return "", ""
}

var (
	codenameInVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\((\D+)\)|,\s+(\D+)`) })
	inBrackets        = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\(([^)]*)\)`) })
)

// versionCodename returns the code name in an os-release, if necessary from VERSION.
func versionCodename(release map[string]string) string {
	for _, key := range []string{"VERSION_CODENAME", "UBUNTU_CODENAME"} {
		if name, ok := release[key]; ok {
			return name
		}
	}
	if m := codenameInVersion().FindStringSubmatch(release["VERSION"]); m != nil {
		return m[1] + m[2]
	}
	return ""
}

// cpe returns vendor and version in a CPE name, such as cpe:/o:opensuse:leap:15.5.
func cpe(name string) (vendor, version string) {
	f := strings.Split(name, ":")
	switch {
	case len(f) < 5 || f[0] != "cpe":
		return "", ""
	case strings.HasPrefix(f[1], "/"):
		return f[2], f[4]
	case f[1] == "2.3" && len(f) >= 6:
		return f[3], strings.TrimPrefix(f[5], "*")
	}
	return "", ""
}
