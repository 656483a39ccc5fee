package packages

import (
	"encoding/xml"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/packages/order"
	"slices"
	"strings"
)

// zypperAnswer is what zypper answers with --xmlout.
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

// zypperSection has packages to which the same happens: to-install, to-remove and so on.
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

// parseZypper reads an answer. What is printed before the XML begins, or after it, is no part of it.
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

// found lists what a search found in repositories, not what is merely on the host.
func (a zypperAnswer) found() []zypperSolvable {
	return structsort.Without(a.Result, func(s zypperSolvable) bool {
		return s.Repository == "(System Packages)" || s.Kind != "package"
	})
}

// offer is what the repositories have of a package; "" is the host's own architecture.
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

// changes reads what would be done. Nothing to do has no summary, or one without packages.
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

// zypperRemarks are the parts of a summary that say what does not happen.
func zypperRemarks() []string {
	return []string{"recommended", "suggested", "not-updated", "locked", "not-supported", "no-update", "unsupported",
		"need-reboot", "vendor-unsupported", "superseded", "update-blocked"}
}

// errors are what it says went wrong, and the problems it would have asked about.
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
