package fleet

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// WriteMetrics writes the numbers of a view as OpenMetrics text, which the textfile collector of Prometheus's node
// exporter reads as well.
func (v *View) WriteMetrics(w io.Writer) error {
	m := metrics{w: w}
	m.family("corpus_fleet_look_timestamp_seconds", "When the fleet was looked at.")
	m.sample("corpus_fleet_look_timestamp_seconds", int(v.At.Unix()))
	for _, column := range []struct {
		name, help string
		count      func(Row) int
	}{
		{"hosts", "Hosts that have the version.", func(r Row) int { return r.Hosts }},
		{"healthy_hosts", "Hosts that have the version and whose newest run ended well.",
			func(r Row) int { return r.Healthy }},
		{"failed_hosts", "Hosts on which the version failed.", func(r Row) int { return r.Failed }},
		{"rolled_back_hosts", "Hosts that rolled back the version.", func(r Row) int { return r.RolledBack }},
		{"quarantined_hosts", "Hosts that keep the version in quarantine.", func(r Row) int { return r.Quarantined }},
		{"held_hosts", "Hosts that have the version and are held.", func(r Row) int { return r.Held }},
		{"drifted_hosts", "Hosts that have the version and were corrected by their newest run.",
			func(r Row) int { return r.Drifted }},
		{"behind_hosts", "Hosts that have the version while the channel names another one.",
			func(r Row) int { return r.Behind }},
		{"silent_hosts", "Hosts that have the version and do not report.", func(r Row) int { return r.Silent }},
	} {
		name := "corpus_fleet_" + column.name
		m.family(name, column.help)
		for _, r := range v.Rows {
			m.sample(name, column.count(r), "project", r.Project, "channel", r.Channel, "version", r.Version, "digest", r.Digest,
				"named", strconv.FormatBool(r.Named))
		}
	}
	m.family("corpus_fleet_needs_a_person_hosts", "Hosts that need a person, by why.")
	m.attention("corpus_fleet_needs_a_person_hosts", v, func(a Attention) int { return len(a.Hosts) })
	m.family("corpus_fleet_needs_a_person", "What needs a person, by why: 1 for each rollout that is halted.")
	m.attention("corpus_fleet_needs_a_person", v, func(Attention) int { return 1 })
	m.line("# EOF")
	return m.err
}

// attention writes a sample for each kind of attention.
func (m *metrics) attention(name string, v *View, count func(Attention) int) {
	for _, what := range ranks() {
		n := 0
		for _, a := range v.Attention {
			if a.What == what {
				n += count(a)
			}
		}
		m.sample(name, n, "why", what)
	}
}

// metrics writes lines until one fails.
type metrics struct {
	w   io.Writer
	err error
}

func (m *metrics) line(text string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, text+"\n", args...)
	}
}

func (m *metrics) family(name, help string) {
	m.line("# HELP %s %s\n# TYPE %s gauge", name, help, name)
}

// sample writes a value with labels, given as pairs of a name and a value. Values of labels may be texts of hosts.
func (m *metrics) sample(name string, value int, labels ...string) {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var list []string
	for i := 0; i+1 < len(labels); i += 2 {
		list = append(list, labels[i]+`="`+escape.Replace(trust.Printable(labels[i+1]))+`"`)
	}
	text := ""
	if len(list) > 0 {
		text = "{" + strings.Join(list, ",") + "}"
	}
	m.line("%s%s %d", name, text, value)
}
