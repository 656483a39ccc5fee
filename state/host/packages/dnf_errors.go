package packages

import (
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// dnfLocked reports whether the output says that another process holds the lock.
func dnfLocked(out host.Output) bool {
	text := out.Stdout + out.Stderr
	messages := []string{"Failed to obtain the transaction lock", "Another app is currently holding the yum lock",
		"Failed to obtain rpm transaction lock", "can't create transaction lock", "Waiting for process with pid",
		"Failed to lock"}
	return slices.ContainsFunc(messages, func(message string) bool { return strings.Contains(text, message) })
}

const dnfRoom = "make room there; `dnf clean packages` deletes downloaded packages"

// dnfClues returns the known messages of dnf and yum. The first that matches the output is used.
func dnfClues() []clue {
	const names = "check the name and the version, or add the repository that has it in a pkgrepo.managed state"
	return append(rpmClues(), []clue{
		{`(?:Failed to obtain|create|currently holding)[^\n]*(?:transaction|yum) lock[^\n]*`,
			"another process is changing packages", "wait until it ends, or see what it waits for; the next run tries again"},
		{`Cache-only enabled but no cache for '([^']*)'|Cache-only.*enabled`, "the index of repository $1 was never fetched",
			"leave out `refresh: False`, or run `dnf makecache` on the host"},
		{`run under the root user|need to be root|requires superuser privileges|must be run with superuser`,
			"this user may not change packages", "run the agent as root"},
		{`No such command: "?versionlock|Unknown argument "versionlock"`, "the versionlock plugin is not installed",
			"install python3-dnf-plugin-versionlock, or yum-plugin-versionlock for yum, in a pkg.installed state that this " +
				"one requires"},
		{`filtered out by exclude filtering for argument: (\S+)`,
			"package $1 is excluded by a hold, or by an exclude in the configuration",
			"take it off hold with pkg.unheld, or look for exclude in /etc/dnf/dnf.conf"},
		{`Unable to find a match: ([^\n]+)`, "the repositories have no package $1", names},
		{`No match for argument: (\S+)`, "the repositories have no package $1", names},
		{`No [Pp]ackage ([^\s(][^\n]*?) available`, "the repositories have no package $1", names},
		{`(?s)Error: *\n? *Problem(?: \d+)?: (.*?)(?:\n\(|\nYou can|\z)`, "dependencies cannot be met: $1",
			"check that all repositories it needs are enabled, and that nothing it needs is on hold"},
		{`(?s)Error: (Package: .*?)\n *You could try`, "dependencies cannot be met: $1",
			"check that all repositories it needs are enabled, and that nothing it needs is on hold"},
		{`At least (\S+) more space needed on the (\S+) filesystem`, "there is too little space: $1 more are needed on $2",
			dnfRoom},
		{`needs (\d+[^\n]*) on the (\S+) filesystem`, "there is too little space: it needs $1 on $2", dnfRoom},
		{`file (\S+) (?:from install of|conflicts between)[^\n]*`, "$0",
			"remove one of the two packages, or choose another version of one"},
		{
			`(?:Package \S+ is not signed|GPG check FAILED|Public key for \S+ is not installed|GPG key retrieval failed|` +
				`repomd.xml GPG signature verification error)[^\n]*`, "$0",
			"give the repository its key (gpgkey), or set skip_verify if you trust the connection to it"},
		{`Failed to (?:download metadata for repo|synchronize cache for repo) '([^']*)'(?:: )?([^\n]*)`,
			"the index of repository $1 cannot be fetched: $2",
			"check that the host reaches its package repositories: network, name resolution and proxy"},
		{
			`(?:Cannot download|Error downloading packages|All mirrors were tried|No more mirrors to try|Could not retrieve ` +
				`mirrorlist|Failure: repodata)[^\n]*`, "$0", "check that the host reaches its package repositories: network, " +
				"name resolution and proxy"},
		{`There are no enabled repositories|There are no enabled repos`, "no repository is enabled",
			"add one in a pkgrepo.managed state"},
		{`(?m)^.*(?:protected packages|would result in removing)[^\n]*`, "$0",
			"these packages are protected; `protected_packages` in dnf.conf names them"},
		{`(?m)^[^\n]*scriptlet failed[^\n]*`, "$0", "see /var/log/dnf.rpm.log"},
	}...)
}
