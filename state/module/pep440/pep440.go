// Package pep440 compares versions of Python distributions and parses requirements of pip. It is also used
// for versions of gems, which have a similar syntax.
package pep440

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// version is a parsed version of a Python distribution.
type version struct {
	epoch   int
	release []int
	phase   int // dev, then pre-releases, then the release itself, then post-releases
	pre     int
	post    int
	dev     int
	local   string
}

var versionForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d*))?` +
		`(?:-(\d+)|[-_.]?(?:post|rev|r)[-_.]?(\d*))?(?:[-_.]?(dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)
})

const (
	phaseDev = iota
	phaseAlpha
	phaseBeta
	phaseCandidate
	phaseFinal
)

// parseVersion parses a version according to PEP 440.
func parseVersion(text string) (v version, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	m := versionForm().FindStringSubmatch(text)
	if m == nil {
		return v, false
	}
	v.epoch, v.phase, v.post, v.dev, v.local = number(m[1]), phaseFinal, -1, -1, m[9]
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, number(part))
	}
	for len(v.release) > 1 && v.release[len(v.release)-1] == 0 {
		v.release = v.release[:len(v.release)-1]
	}
	if m[3] != "" {
		v.pre = number(m[4])
		v.phase = map[byte]int{'a': phaseAlpha, 'b': phaseBeta, 'c': phaseCandidate, 'r': phaseCandidate,
			'p': phaseCandidate}[m[3][0]]
	}
	before := text
	if i := strings.IndexByte(text, '+'); i >= 0 {
		before = text[:i]
	}
	if m[5] != "" || strings.Contains(before, "post") || strings.Contains(before, "rev") || m[6] != "" {
		v.post = number(m[5]) + number(m[6])
	}
	if m[7] != "" {
		if v.dev = number(m[8]); v.phase == phaseFinal && v.post < 0 {
			v.phase = phaseDev
		}
	}
	return v, true
}

// number parses digits. A number that is too large becomes the largest int.
func number(digits string) int {
	if digits == "" {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return math.MaxInt
	}
	return n
}

func (v version) compare(w version) int {
	dev := func(x version) int { // a development release precedes its release
		if x.dev < 0 {
			return math.MaxInt
		}
		return x.dev
	}
	return cmp.Or(cmp.Compare(v.epoch, w.epoch), slices.Compare(v.release, w.release), cmp.Compare(v.phase, w.phase),
		cmp.Compare(v.pre, w.pre), cmp.Compare(v.post, w.post), cmp.Compare(dev(v), dev(w)))
}

// Requirement is a requirement for one distribution.
type Requirement struct {
	Name  string   // normalized; "" if the text does not name the distribution
	specs []string // such as >=1.2; all must be met
	Text  string   // the original text
	Plain bool     // a name with specifiers, neither a URL nor a path
}

var (
	requirementForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*` +
			`(?:\[[^\]]*\])?\s*\(?([^;@()]*)\)?\s*(?:;.*)?$`)
	})
	atForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*@\s*\S+`)
	})
	eggForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[#&]egg=([A-Za-z0-9._-]+)`) })
	separators = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[-_.]+`) })
)

// ParseRequirement parses a requirement such as name[extra]>=1,<2, or a URL or path that may include the name.
func ParseRequirement(text string) Requirement {
	text = strings.TrimSpace(text)
	r := Requirement{Text: text}
	if m := eggForm().FindStringSubmatch(text); m != nil {
		r.Name = Normal(m[1])
		return r
	}
	if m := atForm().FindStringSubmatch(text); m != nil {
		r.Name = Normal(m[1])
		return r
	}
	m := requirementForm().FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "://") || strings.ContainsRune(text, '/') {
		return r
	}
	r.Name, r.Plain = Normal(m[1]), true
	for spec := range strings.SplitSeq(m[2], ",") {
		if spec = strings.TrimSpace(spec); spec != "" {
			r.specs = append(r.specs, spec)
		}
	}
	return r
}

// Normal returns the normalized name of a distribution.
func Normal(name string) string { return separators().ReplaceAllString(strings.ToLower(name), "-") }

// Exact returns the version of a requirement that allows only one, otherwise "".
func (r Requirement) Exact() string {
	if len(r.specs) == 1 && strings.HasPrefix(r.specs[0], "==") && !strings.HasSuffix(r.specs[0], "*") {
		return strings.TrimSpace(strings.TrimLeft(r.specs[0], "="))
	}
	return ""
}

// Met reports whether an installed version meets the requirement.
func (r Requirement) Met(installed string) bool {
	for _, spec := range r.specs {
		if !Holds(spec, installed) {
			return false
		}
	}
	return true
}

// Holds reports whether an installed version meets a specifier such as >=1.2.
func Holds(spec, installed string) bool {
	operator := spec[:len(spec)-len(strings.TrimLeft(spec, "<>=!~"))]
	text := strings.TrimSpace(spec[len(operator):])
	if operator == "===" {
		return installed == text
	}
	prefix, wild := strings.CutSuffix(text, ".*")
	have, okHave := parseVersion(installed)
	want, okWant := parseVersion(prefix)
	if !okHave || !okWant {
		return installed == text && (operator == "==" || operator == "")
	}
	c := have.compare(want)
	same := c == 0 && (want.local == "" || want.local == have.local)
	if wild {
		same = have.epoch == want.epoch && below(have, prefix)
	}
	switch operator {
	case "==", "":
		return same
	case "!=":
		return !same
	case ">=":
		return c >= 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case "<":
		return c < 0
	case "~=":
		i := strings.LastIndexByte(text, '.')
		return i > 0 && c >= 0 && below(have, text[:i])
	}
	return false
}

// below reports whether a version starts with the numbers of a prefix.
func below(v version, prefix string) bool {
	_, rest, ok := strings.Cut(prefix, "!")
	if !ok {
		rest = prefix
	}
	for i, part := range strings.Split(strings.TrimPrefix(rest, "v"), ".") {
		have := 0
		if i < len(v.release) {
			have = v.release[i]
		}
		if have != number(part) {
			return false
		}
	}
	return true
}

// Distribution is an installed distribution as printed by `pip list --format=json`.
type Distribution struct {
	Name, Version string
	Location      string `json:"editable_project_location"`
	Latest        string `json:"latest_version"`
}
