package grains

import (
	"regexp"
	"strings"
	"sync"
)

// osByName maps the first ten letters of a distribution's name, without "GNU/Linux" and spaces, to the os grain that
// formulas use. A name that is not in the map is its own os.
func osByName() map[string]string {
	return map[string]string{
		"alibabaclo": "Alinux", "almalinux": "AlmaLinux", "alt": "ALT", "amazonami": "Amazon",
		"antergos": "Antergos", "arch": "Arch", "archarm": "Arch ARM", "chapeau": "Chapeau",
		"cloudlinux": "CloudLinux", "cloudserve": "CloudLinux", "debian": "Debian", "enterprise": "OEL",
		"fedoraremi": "Fedora", "gentoobase": "Gentoo", "korora": "Korora", "linuxmint": "Mint",
		"manjaro": "Manjaro", "manjarolin": "Manjaro", "mendel": "Mendel", "neon": "KDE neon",
		"nilrt": "NILinuxRT", "oracleserv": "OEL", "pidora": "Fedora", "poky": "Poky", "pop": "Pop",
		"raspbian": "Raspbian", "redhatente": "RedHat", "rocky": "Rocky", "scientific": "ScientificLinux",
		"sles": "SUSE", "slesexpand": "RES", "synology": "Synology", "univention": "Univention", "void": "Void",
	}
}

// osByIDAndName has the systems that cannot be recognized by their name alone.
func osByIDAndName() map[[2]string]string {
	return map[[2]string]string{
		{"astra", "Astra Linux (Orel)"}:     "AstraLinuxCE",
		{"astra", "Astra Linux (Smolensk)"}: "AstraLinuxSE",
		{"pop", "Pop!_OS"}:                  "Pop",
	}
}

// families lists the os grains of each family. An os that is not in the map is its own family.
func families() map[string][]string {
	return map[string][]string{
		"Debian": {
			"AstraLinuxCE", "AstraLinuxSE", "Cumulus", "Deepin", "Devuan", "elementary", "elementary OS",
			"GCEL", "IDMS", "Kali", "KDE neon", "Linaro", "Mendel", "Mint", "neon", "OSMC", "Parrot OS",
			"Pop", "Raspbian", "Trisquel", "TurnKey", "Ubuntu", "Univention", "antiX",
		},
		"RedHat": {
			"AlmaLinux", "Alinux", "ALT", "Amazon", "CentOS", "CentOS Stream", "Chapeau", "CloudLinux",
			"FedBerry", "Fedora", "GoOSe", "Korora", "OEL", "OVS", "RES", "Rocky", "Sangoma", "Scientific",
			"ScientificLinux", "Virtuozzo", "VMware Photon OS", "XCP", "XCP-ng", "XenServer",
		},
		"Suse": {
			"openSUSE", "openSUSE Leap", "openSUSE Tumbleweed", "SLED", "SLES", "SLES_SAP", "SUSE",
			"SUSE  Enterprise Server", "SUSE Enterprise Server",
		},
		"Arch":      {"Antergos", "Arch ARM", "EndeavourOS", "Manjaro", "Manjaro ARM"},
		"Gentoo":    {"Funtoo"},
		"Bluewhite": {"Bluewhite64"},
		"Mandriva":  {"Mandrake"},
		"Slackware": {"Slamd64"},
		"VMware":    {"VMwareESX"},
	}
}

func familyOf() map[string]string {
	of := map[string]string{}
	for family, members := range families() {
		for _, os := range members {
			of[os] = family
		}
	}
	return of
}

// familyByID has the family of a distribution that is in no table above, by the ID of the distribution from which it is
// derived.
func familyByID() map[string]string {
	return map[string]string{
		"alpine": "Alpine", "arch": "Arch", "centos": "RedHat", "debian": "Debian", "fedora": "RedHat",
		"gentoo": "Gentoo", "opensuse": "Suse", "rhel": "RedHat", "suse": "Suse", "ubuntu": "Debian",
	}
}

var linuxInName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\W(?:gnu/)?linux`) })

// osGrain returns Salt's short name of a distribution.
func osGrain(name, id string) string {
	if os, ok := osByIDAndName()[[2]string{id, name}]; ok {
		return os
	}
	plain := strings.TrimSpace(linuxInName().ReplaceAllString(name, ""))
	short := strings.ToLower(strings.ReplaceAll(plain, " ", ""))
	if os, ok := osByName()[short[:min(10, len(short))]]; ok {
		return os
	}
	return plain
}

func osFamily(os, idLike string) string {
	if family, ok := familyOf()[os]; ok {
		return family
	}
	for id := range strings.FieldsSeq(idLike) {
		if family, ok := familyByID()[id]; ok {
			return family
		}
	}
	return os
}
