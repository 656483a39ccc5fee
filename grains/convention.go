package grains

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// DefaultConvention is the template of hostnames unless the configuration sets another.
const DefaultConvention = "{service}-{instance}-{region}-{node}"

// Introduction is the command in hints with which a person sets the identity of a host.
const Introduction = "corpus-agent deploy SERVICE INSTANCE"

// maxHostname limits how much of a name is examined; a DNS name is not longer.
const maxHostname = 253

// A part is one component of a hostname.
type part struct {
	name    string
	pattern string
	rule    string // rule of the pattern, for people
	example string
}

// Only a service may contain dashes, so that a hostname can be split from its end in only one way. Instance and region
// start with a letter and a region ends in a digit: in ip-10-0-0-12, a name that a cloud chooses, 10 is not an instance
// and 0 is not a region.
var parts = []part{
	{"service", `[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?`, "a service holds letters, digits and inner dashes", "myapp"},
	{"instance", `[A-Za-z][A-Za-z0-9]*`, "an instance starts with a letter", "testing"},
	{"region", `[A-Za-z][A-Za-z0-9]*[0-9]`, "a region starts with a letter and ends in a digit", "useast1"},
	{"node", `[A-Za-z0-9]+`, "a node holds letters and digits", "898900"},
}

// Convention is a template or a regular expression of hostnames. The zero Convention is the default. A Convention is
// made by NewConvention and never changes.
type Convention struct {
	form, example           string         // as in the configuration; a regular expression has no example
	groupForm, groupExample string         // the same for auto scaling groups
	host, group             *regexp.Regexp // patterns of short hostnames and of names of groups
	loose                   *regexp.Regexp // hostnames with the right number of parts; nil for a regular expression
}

var standard = sync.OnceValue(func() Convention { return mustTemplate(DefaultConvention) })

func mustTemplate(form string) Convention {
	c, err := fromTemplate(form)
	if err != nil {
		panic(err)
	}
	return c
}

// NewConvention parses a convention: a template such as {service}-{instance}-{region}-{node}, or a regular expression
// with named groups of these names, (?P<service>...) or (?<service>...). Service and instance are mandatory. The
// expression has to match the whole short hostname. An empty form is the default convention.
func NewConvention(form string) (Convention, error) {
	from := fromTemplate
	switch {
	case form == "":
		form = DefaultConvention
	case strings.Contains(form, "(?"):
		from = fromRegexp
	}
	c, err := from(form)
	if err != nil {
		return Convention{}, fmt.Errorf("hostname convention %q: %w", form, err)
	}
	return c, nil
}

func (c Convention) orStandard() Convention {
	if c.host == nil {
		return standard()
	}
	return c
}

func fromRegexp(form string) (Convention, error) {
	re, err := regexp.Compile(`^(?:` + form + `)$`)
	if err != nil {
		return Convention{}, diag.Identity.Hint(err, "the syntax is RE2's: https://golang.org/s/re2syntax")
	}
	var names []string
	for _, name := range re.SubexpNames() {
		if name != "" {
			names = append(names, name)
		}
	}
	if err := checkParts(names); err != nil {
		return Convention{}, err
	}
	return Convention{
		form: form, host: re,
		// A regular expression cannot be used without its node, so groups follow the default.
		groupForm: standard().groupForm, groupExample: standard().groupExample, group: standard().group,
	}, nil
}

// checkParts reports an error unless a convention uses the names that it needs, and no others.
func checkParts(names []string) error {
	for i, name := range names {
		if !slices.Contains(partNames(), name) {
			return diag.Identity.Hint(fmt.Errorf("there is no part called %q", name), "%s", unknownPartHint(name))
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("%s is named twice", name)
		}
	}
	for _, name := range []string{"service", "instance"} {
		if !slices.Contains(names, name) {
			return diag.Identity.Hint(fmt.Errorf("%s is missing", name),
				"a convention names at least service and instance, such as %s", DefaultConvention)
		}
	}
	return nil
}

func unknownPartHint(name string) string {
	if hint := diag.DidYouMean(name, partNames()); hint != "" {
		return hint
	}
	return "the parts are " + strings.Join(partNames(), ", ")
}

func partNames() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// MismatchError is the error for a name that does not follow the convention, so that it identifies no host.
type MismatchError struct {
	Kind    string // hostname or auto scaling group
	Name    string
	Form    string // the expected form
	Example string // a name of that form; may be empty
	Reason  string // the invalid part; empty if unknown
}

func (e *MismatchError) Error() string {
	s := fmt.Sprintf("%s %q does not follow %s", e.Kind, clip(e.Name), e.Form)
	if e.Example != "" {
		s += ", such as " + e.Example
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// clip keeps a name of any length readable in a message.
func clip(name string) string {
	if len(name) > 80 {
		return name[:80] + "..."
	}
	return name
}

// Parse returns the identity in a hostname, with or without a domain. If the hostname does not follow the convention,
// the error is a *MismatchError with a hint.
func Parse(hostname string, c Convention) (Identity, error) {
	c = c.orStandard()
	short, domain := splitHost(hostname)
	id, ok := read(c.host, short)
	if !ok || len(hostname) > maxHostname {
		return Identity{}, diag.Identity.Hint(
			&MismatchError{Kind: "hostname", Name: hostname, Form: c.form, Example: c.example, Reason: c.reason(short)},
			"set the hostname, or say who this host is: "+Introduction)
	}
	id.Domain = domain
	return id, nil
}

// ParseGroup returns service, instance and region in the name of an auto scaling group, which is a hostname of the
// convention without its node. If the name does not follow the convention, the error is a *MismatchError.
func ParseGroup(name string, c Convention) (Identity, error) {
	c = c.orStandard()
	id, ok := read(c.group, name)
	if !ok {
		return Identity{}, diag.Identity.Hint(
			&MismatchError{Kind: "auto scaling group", Name: name, Form: c.groupForm, Example: c.groupExample},
			"name the group so, set the hostname, or say who this host is: "+Introduction)
	}
	return id, nil
}

// reason returns a text with the part of a hostname that violates its rule, or "" if the parts cannot be distinguished.
func (c Convention) reason(short string) string {
	if c.loose == nil || len(short) > maxHostname {
		return ""
	}
	match := c.loose.FindStringSubmatch(short)
	for i, text := range match {
		at := slices.Index(partNames(), c.loose.SubexpNames()[i])
		if at >= 0 && !regexp.MustCompile(`^(?:`+parts[at].pattern+`)$`).MatchString(text) {
			return fmt.Sprintf("%s, and %q does not", parts[at].rule, text)
		}
	}
	return ""
}

func read(re *regexp.Regexp, name string) (Identity, bool) {
	match := re.FindStringSubmatch(name)
	if match == nil {
		return Identity{}, false
	}
	var id Identity
	for i, group := range re.SubexpNames() {
		field := id.part(group)
		if field == nil {
			continue
		}
		if *field = match[i]; *field != "" && !isName(*field) {
			return Identity{}, false
		}
	}
	return id, id.Service != "" && id.Instance != ""
}

func (i *Identity) part(name string) *string {
	switch name {
	case "service":
		return &i.Service
	case "instance":
		return &i.Instance
	case "region":
		return &i.Region
	case "node":
		return &i.Node
	}
	return nil
}
