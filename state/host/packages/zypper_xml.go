package packages

import (
	"context"
	"encoding/xml"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
)

// zypperAnswer is the output of zypper with --xmlout.
type zypperAnswer struct {
	XMLName  xml.Name         `xml:"stream"`
	Messages []zypperMessage  `xml:"message"`
	Prompts  []zypperPrompt   `xml:"prompt"`
	Summary  *zypperSummary   `xml:"install-summary"`
	Result   []zypperSolvable `xml:"search-result>solvable-list>solvable"`
}

type zypperMessage struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

type zypperPrompt struct {
	Description string `xml:"description"`
}

type zypperSummary struct {
	Sections []zypperSection `xml:",any"`
}

// zypperSection lists packages with the same change: to-install, to-remove and so on.
type zypperSection struct {
	XMLName   xml.Name
	Solvables []zypperSolvable `xml:"solvable"`
}

type zypperSolvable struct {
	Status     string `xml:"status,attr"`
	Name       string `xml:"name,attr"`
	Kind       string `xml:"kind,attr"`
	Type       string `xml:"type,attr"`
	Edition    string `xml:"edition,attr"`
	Arch       string `xml:"arch,attr"`
	Repository string `xml:"repository,attr"`
}

// parseZypper parses the output of zypper. It ignores text before and after the XML.
func parseZypper(text string) (a zypperAnswer, err error) {
	start, end := strings.Index(text, "<stream>"), strings.LastIndex(text, "</stream>")
	if start < 0 || end < start {
		return a, notUnderstood("zypper", host.LastLine(text))
	}
	if err := xml.Unmarshal([]byte(text[start:end+len("</stream>")]), &a); err != nil {
		return a, notUnderstood("zypper", err.Error())
	}
	return a, nil
}

// found returns the packages that a search found in repositories, without those that are merely installed.
func (a zypperAnswer) found() []zypperSolvable {
	return structsort.Without(a.Result, func(s zypperSolvable) bool {
		return s.Repository == "(System Packages)" || s.Kind != "package"
	})
}

// offer returns the versions of a package in the repositories; an arch of "" is the host's own.
func (a zypperAnswer) offer(name, arch string) (o host.Offer, ok bool) {
	for _, s := range a.found() {
		fits := s.Arch == arch || arch == "" && (s.Arch == "noarch" || s.Arch == rpmNative(nil) ||
			is32(s.Arch) && is32(rpmNative(nil)))
		if s.Name == name && fits && s.Edition != "" && !slices.Contains(o.Versions, plainEVR(s.Edition)) {
			o.Versions = append(o.Versions, plainEVR(s.Edition))
		}
	}
	if len(o.Versions) == 0 {
		return o, false
	}
	return newestFirst(o, order.RPM), true
}

// changes returns the changes in the summary. If there is nothing to do, the summary is missing or has no packages.
func (a zypperAnswer) changes(v *host.Inventory) ([]host.PackageChange, error) {
	if a.Summary == nil {
		return nil, nil
	}
	var changes []host.PackageChange
	for _, section := range a.Summary.Sections {
		what := section.XMLName.Local
		if len(section.Solvables) > 0 && !strings.HasPrefix(what, "to-") && !slices.Contains(zypperRemarks(), what) {
			return nil, notUnderstood("zypper", "<"+what+">")
		}
		for _, s := range section.Solvables {
			if s.Type != "package" || !strings.HasPrefix(what, "to-") {
				continue
			}
			if s.Name == "" || s.Edition == "" {
				return nil, notUnderstood("zypper", "<"+what+"> of a package without a name or a version")
			}
			name := v.NameOf(host.Package{Name: s.Name, Arch: s.Arch})
			c := host.PackageChange{Name: name, Old: v.Version(name), New: plainEVR(s.Edition)}
			if what == "to-remove" {
				c.New = ""
			}
			changes = append(changes, c)
		}
	}
	structsort.Func(changes, func(a, b host.PackageChange) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(changes), nil
}

// zypperRemarks returns the names of the sections of a summary for packages that do not change.
func zypperRemarks() []string {
	return []string{"recommended", "suggested", "not-updated", "locked", "not-supported", "no-update", "unsupported",
		"need-reboot", "vendor-unsupported", "superseded", "update-blocked"}
}

// errors returns the error messages, and the problems for which zypper would have prompted.
func (a zypperAnswer) errors() []string {
	var said []string
	for _, m := range a.Messages {
		if m.Type == "error" {
			said = append(said, strings.TrimSpace(m.Text))
		}
	}
	for _, p := range a.Prompts {
		if text, _, _ := strings.Cut(strings.TrimSpace(p.Description), "\n Solution 1:"); strings.HasPrefix(text, "Problem") {
			said = append(said, text)
		}
	}
	return said
}

// zypperLockedCode is the exit code of zypper if another process holds its lock.
const zypperLockedCode = 7

func zypperLocked(out host.Output) bool {
	return out.Code == zypperLockedCode || strings.Contains(out.Stderr+out.Stdout, "System management is locked by")
}

// failure returns the error for a failed command, with the error messages of its XML output if there are any.
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
		{`System management is locked by ([^\n.]*)`, "$1 is changing packages",
			"wait until it ends, or see what it waits for; the next run tries again"},
		{`Root privileges are required`, "this user may not change packages", "run the agent as root"},
		{`No provider of '([^']*)' found|Package '([^']*)' not found|'([^']*)' not found in package names`,
			"the repositories have no package $1$2$3",
			"check the name and the version, or add the repository that has it in a pkgrepo.managed state"},
		{`(?s)Problem: (.*)`, "dependencies cannot be met: $1",
			"check that all repositories it needs are enabled, and that nothing it needs is on hold; `zypper locks` lists that"},
		{`Repository '([^']*)' (?:is invalid|not found)[^\n]*`, "$0",
			"check its URL, and that the host reaches it: network, name resolution and proxy"},
		{`(?:Signature verification failed|is not signed|unsigned file|unknown (?:GPG )?key)[^\n]*`, "$0",
			"give the repository its key (gpgkey, gpgautoimport), or set skip_verify if you trust the connection to it"},
		{`(?:Download \(curl\) error|File '[^']*' not found on medium|Could not retrieve|Timeout exceeded|Curl error)[^\n]*`,
			"$0", "check that the host reaches its package repositories: network, name resolution and proxy"},
		{`(?i)(?:not enough|insufficient) (?:disk )?space[^\n]*|needs \d+[^\n]* on the \S+ filesystem`, "$0",
			"make room there; `zypper clean` deletes downloaded packages"},
		{`There are no enabled repositories|No repositories defined`, "no repository is enabled",
			"add one in a pkgrepo.managed state"},
		{`(?m)^[^\n]*(?:scriptlet failed|Subprocess failed)[^\n]*`, "$0", "see /var/log/zypp/history"},
	}...)
}
