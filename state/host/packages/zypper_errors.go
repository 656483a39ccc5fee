package packages

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// zypperLockedCode is how zypper ends where another process has its lock.
const zypperLockedCode = 7

func zypperLocked(out host.Output) bool {
	return out.Code == zypperLockedCode || strings.Contains(out.Stderr+out.Stdout, "System management is locked by")
}

// failure words why a command failed, from its XML where there is some.
func (z *zypper) failure(ctx context.Context, what string, out host.Output) error {
	if answer, err := parseZypper(out.Stdout); err == nil && len(answer.errors()) > 0 {
		out.Stderr, out.Stdout = strings.Join(answer.errors(), "\n")+"\n"+out.Stderr, ""
	}
	if zypperLocked(out) {
		if holder, ok := z.processOf("/run/zypp.pid"); ok {
			out.Stderr = "System management is locked by " + holder
		}
	}
	return orPassing(ctx, zypperLocked, out, whyFailed(what, out, zypperClues()))
}

func zypperClues() []clue {
	return append(rpmClues(), []clue{
		{`System management is locked by ([^\n.]*)`, "$1 changes packages just now",
			"let that end, or see what it waits for; the next run tries again"},
		{`Root privileges are required`, "this user may not change packages", "run the agent as root"},
		{`No provider of '([^']*)' found|Package '([^']*)' not found|'([^']*)' not found in package names`,
			"the repositories have no package $1$2$3",
			"check the name and the version, or add the repository that has it in a pkgrepo.managed state"},
		{`(?s)Problem: (.*)`, "dependencies cannot be met: $1",
			"check that all repositories it needs are enabled, and that nothing it needs is on hold; `zypper locks` lists that"},
		{`Repository '([^']*)' (?:is invalid|not found)[^\n]*`, "$0",
			"check its URL, and that the host reaches it: network, name resolution and proxy"},
		{`(?:Signature verification failed|is not signed|unsigned file|unknown (?:GPG )?key)[^\n]*`, "$0",
			"give the repository its key (gpgkey, gpgautoimport), or set skip_verify if you trust the way there"},
		{`(?:Download \(curl\) error|File '[^']*' not found on medium|Could not retrieve|Timeout exceeded|Curl error)[^\n]*`,
			"$0", "check that the host reaches its package repositories: network, name resolution and proxy"},
		{`(?i)no space left|(?:not enough|insufficient) (?:disk )?space[^\n]*`, "$0",
			"make room there; `zypper clean` deletes downloaded packages"},
		{`There are no enabled repositories|No repositories defined`, "no repository is enabled",
			"add one in a pkgrepo.managed state"},
		{`(?m)^[^\n]*(?:scriptlet failed|Subprocess failed)[^\n]*`, "$0", "see /var/log/zypp/history"},
	}...)
}
