package packages

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// failure returns the error for a failed apt command, with a cause and a hint that it derives from the output.
func (a *apt) failure(ctx context.Context, what string, out host.Output) error {
	out = withoutRemarks(out)
	text := out.Stderr + "\n" + out.Stdout
	if strings.Contains(text, "dpkg was interrupted") {
		return fmt.Errorf("%s: %w", what, &Unfinished{})
	}
	if err := faultOfHost(what, "apt", out, aptRoom); err != nil {
		return orPassing(ctx, aptLocked, out, err)
	}
	for _, k := range knownFailures() {
		if m := k.pattern.FindStringSubmatch(text); m != nil {
			err := fmt.Errorf("%s: %s", what, redact.URLs(k.cause(ctx, a, m, out)))
			return orPassing(ctx, aptLocked, out, orFull(out, diag.Packages.Hint(err, "%s", k.hint(ctx, a, m, out))))
		}
	}
	return orPassing(ctx, aptLocked, out, fmt.Errorf("%s: %s", what, redact.URLs(complaints(out))))
}

const aptRoom = "make room there; `apt-get clean` deletes downloaded packages"

// knownFailure is a failure for which the agent has a better explanation than apt.
type knownFailure struct {
	pattern *regexp.Regexp
	cause   wording
	hint    wording
}

// wording returns a cause or a hint; m has the submatches of the pattern.
type wording func(ctx context.Context, a *apt, m []string, out host.Output) string

func say(format string, groups ...int) wording {
	return func(_ context.Context, _ *apt, m []string, _ host.Output) string {
		args := make([]any, len(groups))
		for i, g := range groups {
			args[i] = m[g]
		}
		return fmt.Sprintf(format, args...)
	}
}

// knownFailures returns the known failures. The first that matches the output is used.
func knownFailures() []knownFailure {
	return []knownFailure{
		{regexp.MustCompile(`Could not open lock file|are you root\?`),
			say("this user may not change packages"), say("run the agent as root")},
		{regexp.MustCompile(`(?:Could not get|Unable to acquire the dpkg frontend) lock[^\n]*`),
			lockCause, say("wait until it ends, or see what it waits for; the next run tries again")},
		{regexp.MustCompile(`E: Unable to locate package (\S+)`),
			say("the repositories have no package %s", 1), likeName},
		{regexp.MustCompile(`E: Version '([^']*)' for '([^']*)' was not found`),
			say("the repositories have no version %s of package %s", 1, 2), otherVersions},
		{regexp.MustCompile(`E: Package '([^']*)' has no installation candidate`),
			say("package %s cannot be installed: the repositories name it but do not have it", 1), providers},
		{regexp.MustCompile(`Unmet dependencies. Try '[^']*--fix-broken`),
			say("packages on the host lack their dependencies"), say("run `apt-get --fix-broken install` on the host")},
		{regexp.MustCompile(`(?s)The following packages have unmet dependencies:\n(.*?)\n(?:E:|\S|$)`),
			unmet, holds},
		{regexp.MustCompile(`E: Held packages were changed`),
			say("it would change packages that are on hold"), holds},
		{regexp.MustCompile(`don't have enough free space in ([^\s.]*)`),
			say("there is too little space in %s", 1), say(aptRoom)},
		{regexp.MustCompile(`(?m)^(?:E|W): (Failed to fetch .*)$`),
			say("%s", 1), say("check that the host reaches its package repositories: network, name resolution and proxy")},
		{regexp.MustCompile(`unauthenticated packages|packages cannot be authenticated|is not signed|NO_PUBKEY`),
			complaintsAs,
			say("give the repository its key (signed-by, key_url), or set skip_verify if you trust the connection to it")},
		{regexp.MustCompile(`Sub-process \S+ (?:returned an error code|exited unexpectedly|received)`),
			scripts, say("see /var/log/apt/term.log; once that is corrected, `dpkg --configure -a` finishes the interrupted " +
				"installation")},
	}
}

// aptLocked reports whether apt ended because another process has one of its locks.
func aptLocked(out host.Output) bool {
	return out.Code != 0 &&
		regexp.MustCompile(
			`(?:Could not get|Unable to acquire the dpkg frontend|Unable to lock) (?:lock|directory|the)`).MatchString(
			out.Stderr+out.Stdout) ||
		out.Code != 0 && strings.Contains(out.Stderr, "Unable to acquire the dpkg frontend lock")
}

func lockCause(_ context.Context, _ *apt, m []string, _ host.Output) string {
	if holder := regexp.MustCompile(`held by process (\d+(?: \([^)]*\))?)`).FindStringSubmatch(m[0]); holder != nil {
		return "process " + holder[1] + " is changing packages"
	}
	return "another process is changing packages"
}

func complaintsAs(_ context.Context, _ *apt, _ []string, out host.Output) string {
	return complaints(out)
}

// likeName returns a hint with a similar package name.
func likeName(ctx context.Context, a *apt, m []string, _ host.Output) string {
	fallback := "refresh the indexes, or add the repository that has it in a pkgrepo.managed state"
	names, err := a.names(ctx)
	if err != nil {
		return fallback
	}
	if meant := diag.DidYouMean(m[1], names); meant != "" {
		return meant
	}
	return fallback
}

func otherVersions(ctx context.Context, a *apt, m []string, _ host.Output) string {
	offers, err := a.offers(ctx, m[2:3], "")
	if err != nil || len(offers[m[2]].Versions) == 0 {
		return "refresh the indexes"
	}
	return "there are: " + strings.Join(offers[m[2]].Versions, ", ")
}

// providers lists the packages that provide a virtual package.
func providers(_ context.Context, _ *apt, _ []string, out host.Output) string {
	_, list, ok := strings.Cut(out.Stdout, "is a virtual package provided by:\n")
	if !ok {
		return "refresh the indexes, or add the repository that has it in a pkgrepo.managed state"
	}
	var names []string
	for line := range strings.SplitSeq(list, "\n") {
		if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(line, "  ") {
			names = append(names, f[0])
		} else {
			break
		}
	}
	return "name one of the packages that provide it: " + strings.Join(names, ", ")
}

// unmet returns the lines that name packages and their unmet dependencies.
func unmet(_ context.Context, _ *apt, m []string, _ host.Output) string {
	var lacks []string
	for line := range strings.SplitSeq(m[1], "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lacks = append(lacks, line)
		}
	}
	return "dependencies cannot be met: " + strings.Join(lacks, "; ")
}

func holds(_ context.Context, a *apt, _ []string, _ host.Output) string {
	if v, err := a.installed(); err == nil && len(v.Holds()) > 0 {
		return "these packages are on hold and may prevent it: " + strings.Join(v.Holds(), ", ")
	}
	return "check that all repositories it needs are there and of the same release"
}

// scripts returns dpkg's messages about the packages whose scripts or files failed, and what the scripts wrote.
func scripts(_ context.Context, _ *apt, _ []string, out host.Output) string { return scriptsIn(out) }

func scriptsIn(out host.Output) string {
	// dpkg writes carriage returns, as for a terminal.
	lines := strings.Split(strings.ReplaceAll(out.Stdout+"\n"+out.Stderr, "\r", ""), "\n")
	wrote := map[string][]string{} // by package
	var said []string
	name := ""
	for i, line := range lines {
		if m := handled().FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if line = strings.TrimSpace(line); line != "" && name != "" && !aboutAll().MatchString(line) {
			wrote[name] = append(wrote[name], line)
		}
		if text, ok := strings.CutPrefix(line, "dpkg: error processing "); ok && i+1 < len(lines) {
			said = append(said, strings.TrimSpace(text+" "+strings.TrimSpace(lines[i+1]))+lastWords(wrote, text))
		}
	}
	if len(said) == 0 {
		return complaints(out)
	}
	return strings.Join(slices.Compact(said), "; ")
}

// handled matches dpkg's line before it handles a package.
func handled() *regexp.Regexp {
	return regexp.MustCompile(`^(?:Removing|Purging configuration files for|Setting up|Unpacking) ([^\s:]+)(?::\S+)? \(`)
}

// aboutAll matches lines of dpkg and apt that no script wrote.
func aboutAll() *regexp.Regexp {
	return regexp.MustCompile(
		`^(?:dpkg: error|\(Reading database|Errors were encountered|E: |Processing triggers|Preparing)`)
}

// lastWords returns the last lines that the script of a package wrote. text is of dpkg's message about the package.
func lastWords(wrote map[string][]string, text string) string {
	const most = 4
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return ""
	}
	name, _, _ := strings.Cut(fields[1], ":")
	lines := wrote[name]
	if len(lines) == 0 {
		return ""
	}
	return ": " + strings.Join(lines[max(0, len(lines)-most):], " ")
}

// complaints returns the error lines of apt, or its last line, and for one that a signal ended the signal.
func complaints(out host.Output) string {
	if signal := signalOf(out); signal != "" {
		return "it was ended by " + signal
	}
	out = withoutRemarks(out)
	var said []string
	for line := range strings.SplitSeq(out.Stderr, "\n") {
		if text, ok := strings.CutPrefix(line, "E: "); ok {
			said = append(said, strings.TrimSpace(text))
		}
	}
	if len(said) > 0 {
		return strings.Join(said, "; ")
	}
	if last := host.LastLine(out.Stderr); last != "" {
		return last
	}
	return fmt.Sprintf("it ended with code %d", out.Code)
}
