package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// noHost returns the reason why a table of the fleet is empty.
func (o fleetOptions) noHost() string {
	text := "no host"
	if o.project != "" || o.channel != "" {
		text += " of these"
	}
	switch {
	case o.behind && o.silent > 0:
		return text + " is behind and has been silent for " + o.silent.String()
	case o.behind:
		return text + " is behind"
	case o.silent > 0:
		return text + " has been silent for " + o.silent.String()
	}
	return "no host has a record here; hosts write one with each report (reports.upload: true)"
}

func (p *program) showFleet(v *fleet.View, o fleetOptions) error {
	if p.json {
		return p.JSON(v)
	}
	if len(v.Hosts) == 0 && len(v.Ignored) == 0 {
		fmt.Fprintln(p.Out, o.noHost())
	}
	if err := p.printRows(v.Rows); err != nil {
		return err
	}
	return p.printAttention(v.Attention)
}

func (p *program) printRows(rows []fleet.Row) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CHANNEL\tVERSION\tHOSTS\tHEALTHY\tFAILED\tROLLED BACK\tQUARANTINED\tHELD\tDRIFTED\tBEHIND\tSILENT")
	before := ""
	for _, r := range rows {
		name, version := r.Ref.String(), r.Version
		if name == before {
			name = ""
		}
		before = r.Ref.String()
		if version == "" {
			version = "none"
		}
		if r.Named {
			version += " *"
		}
		if r.Also != "" {
			version += " (same bytes as " + trust.Printable(r.Also) + ")"
		}
		fmt.Fprintf(w, "%s\t%s", name, version)
		for _, n := range []int{r.Hosts, r.Healthy, r.Failed, r.RolledBack, r.Quarantined, r.Held, r.Drifted, r.Behind,
			r.Silent} {
			fmt.Fprintf(w, "\t%s", number(n))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// number formats a count for a table: "-" for 0, which draws less attention.
func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// mostOnLine is the maximum number of hosts that a line lists.
const mostOnLine = 5

func (p *program) printAttention(all []fleet.Attention) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(p.Out, "\nnothing needs a person")
		return err
	}
	fmt.Fprintf(p.Out, "\nneeds a person:\n")
	for _, a := range all {
		fmt.Fprintf(p.Out, "  %s\n", attentionText(a))
		for _, why := range a.Lines() {
			fmt.Fprintf(p.Out, "      %s\n", trust.Printable(why))
		}
		if hint := a.Advice(); hint != "" {
			fmt.Fprintf(p.Out, "      hint: %s\n", trust.Printable(strings.ReplaceAll(hint, "\n", "; ")))
		}
	}
	return nil
}

func attentionText(a fleet.Attention) string {
	text := a.What
	if a.Version != "" {
		text += ": " + a.Project + " " + a.Version
	}
	if len(a.Hosts) == 0 {
		return text
	}
	return text + " on " + hostCountOf(len(a.Hosts)) + ": " + named(a.Hosts, mostOnLine)
}

func hostCountOf(n int) string { return diag.Count(n, "host") }
