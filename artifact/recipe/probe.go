package recipe

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The kinds of probes.
const (
	ProbeHTTP   = "http"
	ProbeTCP    = "tcp"
	ProbeUnit   = "unit"
	ProbeScript = "script"
)

// Probe is a check that a healthy release passes.
type Probe struct {
	Kind   string // one of the kinds above
	Target string // URL, host:port, systemd unit, or executable of the release

	Status   [2]int // of http: lowest and highest accepted status
	Contains string // of http: text that the first 64 KiB of the body must contain
	Args     []string

	// Project is the project whose release names the probe, set by the agent; "" for a probe of the host.
	Project string
}

func (p Probe) String() string { return p.Kind + " " + p.Target }

func probeKeys() []string {
	return []string{ProbeHTTP, ProbeTCP, ProbeUnit, ProbeScript, "status", "contains", "args"}
}

// ParseProbes parses a list of probes in another file than corpus.yaml.
func ParseProbes(n *yaml.Node, file string) ([]Probe, diag.List) {
	p := parser{file: file}
	return p.probes(n), p.problems
}

func (p *parser) probes(n *yaml.Node) []Probe {
	var list []Probe
	if n.Kind != yaml.SequenceNode {
		p.problems.Add(p.pos(n), "a list of probes was expected").WithHint(diag.Recipe, "write `- tcp: 127.0.0.1:8080`")
		return nil
	}
	for _, item := range n.Content {
		list = append(list, p.probe(item))
	}
	return list
}

func (p *parser) probe(n *yaml.Node) Probe {
	probe := Probe{Status: [2]int{200, 399}}
	if n.Kind != yaml.MappingNode {
		p.problems.Add(p.pos(n),
			"a probe was expected").
			WithHint(diag.Recipe, "write `- tcp: 127.0.0.1:8080`; the kinds are http, tcp, unit and script")
		return probe
	}
	kind := kindOf(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		p.fitsProbe(key, kind)
		switch key.Value {
		case ProbeHTTP, ProbeTCP, ProbeUnit, ProbeScript:
			if probe.Kind != "" {
				p.problems.Add(p.pos(key), "one probe is both %s and %s",
					probe.Kind, key.Value).WithHint(diag.Recipe, "make two list items of them")
			}
			probe.Kind, probe.Target = key.Value, v.Value
			p.target(v, probe)
			p.place(v, probe)
		case "status":
			probe.Status = p.status(v)
		case "contains":
			probe.Contains = v.Value
		case "args":
			probe.Args = p.texts(v)
		default:
			p.unknown(key, probeKeys())
		}
	}
	if probe.Kind == "" {
		p.problems.Add(p.pos(n), "this probe asks nothing").
			WithHint(diag.Recipe, "give it one of http, tcp, unit and script")
	}
	return probe
}

// kindOf returns the kind of a probe; "" if it has none.
func kindOf(n *yaml.Node) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch key := n.Content[i].Value; key {
		case ProbeHTTP, ProbeTCP, ProbeUnit, ProbeScript:
			return key
		}
	}
	return ""
}

// fitsProbe reports a key that only probes of another kind have. A host ignores it.
func (p *parser) fitsProbe(key *yaml.Node, kind string) {
	of := ""
	switch key.Value {
	case "status", "contains":
		of = ProbeHTTP
	case "args":
		of = ProbeScript
	}
	if of != "" && kind != "" && kind != of && !p.lenient {
		p.problems.Add(p.pos(key), "%s has no effect on a probe of the kind %s", key.Value, kind).
			WithHint(diag.Recipe, "take it out; "+key.Value+" is for probes of the kind "+of)
	}
}

// port reports a number that is not a port. A host accepts it, and the probe fails.
func (p *parser) port(n *yaml.Node, port string) {
	number, err := strconv.Atoi(port)
	if err == nil && (number < 1 || number > 65535) && !p.lenient {
		p.problems.Add(p.pos(n), "%s is not a port", port).WithHint(diag.Recipe, "write a number from 1 to 65535")
	}
}

// target checks the target of a probe.
func (p *parser) target(n *yaml.Node, probe Probe) {
	switch probe.Kind {
	case ProbeHTTP:
		if u, err := url.Parse(probe.Target); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			p.problems.Add(p.pos(n), "%q is not a URL to probe", probe.Target).
				WithHint(diag.Recipe, "write http://127.0.0.1:8080/path")
		} else {
			p.port(n, u.Port())
		}
	case ProbeTCP:
		if _, port, err := net.SplitHostPort(probe.Target); err != nil || port == "" {
			p.problems.Add(p.pos(n), "%q is not an address to probe", probe.Target).
				WithHint(diag.Recipe, "write 127.0.0.1:8080")
		} else {
			p.port(n, port)
		}
	case ProbeUnit:
		if probe.Target == "" || strings.HasPrefix(probe.Target, "-") {
			p.problems.Add(p.pos(n), "%q is not a systemd unit", probe.Target).WithHint(diag.Recipe, "write myapp.service")
		}
	default:
		if probe.Target == "" || slices.Contains(strings.Split(probe.Target, "/"), "..") {
			p.problems.Add(p.pos(n), "%q is not an executable of the release",
				probe.Target).WithHint(diag.Recipe, "write it relative to the top of the release, or as an absolute path")
		}
	}
}

// place records where the file names a script or a unit.
func (p *parser) place(n *yaml.Node, probe Probe) {
	name := probe.Target
	switch {
	case p.places == nil:
		return
	case probe.Kind == ProbeScript:
		name = path.Clean(name)
	case probe.Kind != ProbeUnit:
		return
	}
	if _, known := p.places[name]; !known {
		p.places[name] = p.pos(n)
	}
}

// status parses 200 or 200-299.
func (p *parser) status(n *yaml.Node) [2]int {
	low, high, isRange := strings.Cut(n.Value, "-")
	if !isRange {
		high = low
	}
	from, err := strconv.Atoi(strings.TrimSpace(low))
	to, err2 := strconv.Atoi(strings.TrimSpace(high))
	if err != nil || err2 != nil || from < 100 || to > 599 || from > to {
		p.problems.Add(p.pos(n), "%q is not an HTTP status", n.Value).WithHint(diag.Recipe, "write 200, or 200-299")
	}
	return [2]int{from, to}
}

func (p *parser) texts(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		p.problems.Add(p.pos(n), "a list was expected").WithHint(diag.Recipe, "write [one, two]")
		return nil
	}
	var list []string
	for _, item := range n.Content {
		list = append(list, item.Value)
	}
	return list
}

func (p *parser) unknown(key *yaml.Node, known []string) {
	if p.lenient {
		return
	}
	if key.Kind != yaml.ScalarNode {
		p.problems.Add(p.pos(key), "a key was expected, and this is a mapping or a list").
			WithHint(diag.Recipe, "this file is not rendered, so `{{ ... }}` has no meaning in it; quote a text that begins "+
				"with a brace")
		return
	}
	hint := diag.DidYouMean(key.Value, known)
	if hint == "" {
		hint = fmt.Sprintf("known keys are %v", known)
	}
	p.problems.Add(p.pos(key), "unknown key %q", key.Value).WithHint(diag.Recipe, hint)
}
