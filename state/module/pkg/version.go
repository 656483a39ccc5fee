package pkg

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// condition is one requirement for a version: an operator and a version, which may be a glob for ==.
type condition struct {
	operator string
	version  string
	glob     bool
}

// demand holds all conditions for a version and the function that compares versions.
type demand struct {
	conditions  []condition
	compare     func(a, b string) int
	ignoreEpoch *bool
}

// newDemand parses conditions such as ">=1.2,<2", "1.2*" or "1.2".
func newDemand(text string, ignoreEpoch *bool, h *host.Host) (demand, error) {
	d := demand{compare: h.Packages.Compare, ignoreEpoch: ignoreEpoch}
	syntax := regexp.MustCompile(`^(==|!=|>=|<=|>>|<<|<>|=|>|<)?\s*([^<>=!\s]+)$`)
	for part := range strings.SplitSeq(text, ",") {
		m := syntax.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return d, fmt.Errorf("%q is neither a version nor a condition on one, such as >=1.2", part)
		}
		c := condition{operator: m[1], version: m[2]}
		if c.operator == "" || c.operator == "=" {
			c.operator = "=="
		}
		c.glob = c.operator == "==" && strings.ContainsAny(c.version, "*?[")
		d.conditions = append(d.conditions, c)
	}
	return d, nil
}

// exact returns the version if the demand allows only that one.
func (d demand) exact() (string, bool) {
	if len(d.conditions) != 1 || d.conditions[0].operator != "==" || d.conditions[0].glob {
		return "", false
	}
	return d.conditions[0].version, true
}

// orNewer returns the demand; one for an exact version is replaced by one that also allows newer versions.
func (d demand) orNewer() demand {
	if len(d.conditions) == 1 && d.conditions[0].operator == "==" && !d.conditions[0].glob {
		d.conditions = []condition{{operator: ">=", version: d.conditions[0].version}}
	}
	return d
}

// allows reports whether a version meets all conditions.
func (d demand) allows(version string) bool {
	for _, c := range d.conditions {
		if !d.meets(version, c) {
			return false
		}
	}
	return true
}

func (d demand) allowsAny(versions []string) bool { return slices.ContainsFunc(versions, d.allows) }

func (d demand) meets(version string, c condition) bool {
	if c.glob {
		return matches(c.version, version)
	}
	wanted := c.version
	if d.withoutEpoch(c) {
		version, wanted = withoutEpoch(version), withoutEpoch(wanted)
	}
	order := d.compare(version, wanted)
	switch c.operator {
	case "==":
		return order == 0
	case "!=", "<>":
		return order != 0
	case "<", "<<":
		return order < 0
	case "<=":
		return order <= 0
	case ">", ">>":
		return order > 0
	}
	return order >= 0
}

// withoutEpoch reports whether to ignore epochs. Unless ignore_epoch is set, they are ignored if the condition
// is an equality and its version has no epoch.
func (d demand) withoutEpoch(c condition) bool {
	if d.ignoreEpoch != nil {
		return *d.ignoreEpoch
	}
	return !strings.ContainsAny(c.operator, "<>") && !strings.Contains(c.version, ":")
}

func withoutEpoch(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		return rest
	}
	return version
}

// matches reports whether a version matches a shell glob.
func matches(glob, version string) bool {
	glob = strings.NewReplacer(`\`, `\\`, "[!", "[^").Replace(glob)
	ok, err := path.Match(glob, version)
	return err == nil && ok
}

// choose returns the newest offered version that meets the demand. If none does, it returns a version that the
// demand names exactly, so that the package manager reports it as missing.
func (d demand) choose(offer host.Offer) (string, bool) {
	version, exact := d.exact()
	if exact && (slices.Contains(offer.Versions, version) || !slices.ContainsFunc(offer.Versions, d.allows)) {
		return version, true
	}
	if i := slices.IndexFunc(offer.Versions, d.allows); i >= 0 {
		return offer.Versions[i], true
	}
	return "", false
}
