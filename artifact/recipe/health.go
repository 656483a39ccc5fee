package recipe

import (
	"cmp"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Health is the definition of a healthy release. The host's configuration applies in place of zero values.
type Health struct {
	Grace    time.Duration `json:"grace,omitempty"`    // before the first attempt
	Deadline time.Duration `json:"deadline,omitempty"` // until all probes must have passed, including the grace period
	Interval time.Duration `json:"interval,omitempty"` // between two attempts of a probe
	Timeout  time.Duration `json:"timeout,omitempty"`  // of one attempt
	Retries  int           `json:"retries,omitempty"`  // attempts after the first; 0 for as many as fit
	Probes   []Probe       `json:"probes,omitempty"`
}

// healthKeys returns the known keys of the section, and probeKeys those of a probe.
func healthKeys() []string {
	return []string{"grace", "deadline", "interval", "timeout", "retries", "probes"}
}

// health parses a mapping, or a list of probes.
func (p *parser) health(n *yaml.Node) Health {
	var h Health
	if n.Kind == yaml.SequenceNode {
		h.Probes = p.probes(n)
		return h
	}
	if n.Kind != yaml.MappingNode {
		p.problems.Add(p.pos(n),
			"health: a list of probes was expected").
			WithHint(diag.Recipe, "write `health: [{http: \"http://127.0.0.1:8080/\"}]`")
		return h
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		switch key.Value {
		case "grace":
			h.Grace = p.duration(key.Value, v)
		case "deadline":
			h.Deadline = p.duration(key.Value, v)
		case "interval":
			h.Interval = p.duration(key.Value, v)
		case "timeout":
			h.Timeout = p.duration(key.Value, v)
		case "retries":
			h.Retries = p.number(key.Value, v)
		case "probes":
			h.Probes = p.probes(v)
		default:
			p.unknown(key, healthKeys())
		}
	}
	if deadline := cmp.Or(h.Deadline, defaultDeadline); h.Grace >= deadline && !p.lenient {
		p.problems.Add(p.pos(n), "health: the grace of %s is not shorter than the deadline, which is %s and includes it",
			Short(h.Grace), Short(deadline)).WithHint(diag.Recipe, "give `deadline:` more time than the grace")
	}
	return h
}

// defaultDeadline is the health.deadline of a host that does not set one.
const defaultDeadline = 2 * time.Minute

// span returns the range of a key of the section health. A host refuses only negative values, so that it can use
// releases that were built by another version.
func (p *parser) span(key string) Span {
	if p.lenient {
		return AnyNumber()
	}
	return HealthSpan(key).OrZero()
}

func (p *parser) duration(key string, n *yaml.Node) time.Duration {
	d, err := p.span(key).Duration(n.Value)
	if err != nil {
		p.problems.Add(p.pos(n), "%s is %q, and a duration %s was expected", key, n.Value,
			HealthSpan(key).OrZero().OfDurations()).
			WithHint(diag.Recipe, "write it as 90s or 10m")
	}
	return d
}

func (p *parser) number(key string, n *yaml.Node) int {
	i, err := p.span(key).Number(n.Value)
	if err != nil {
		p.problems.Add(p.pos(n), "%s is %q, and a number %s was expected", key, n.Value, HealthSpan(key).OfNumbers())
	}
	return int(i)
}
