package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/corpus-agent/corpus-agent/artifact/rollout/simulate"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

// pattern is a row of the table of failure patterns.
type pattern struct {
	Fails string          `json:"fails"`
	Bad   simulate.Result `json:"bad"`
}

// patternsOf simulates each failure pattern.
func patternsOf(params simulate.Params) []pattern {
	var rows []pattern
	for _, one := range simulate.Patterns() {
		p := params
		p.Fails = simulate.Failures{}
		one.Set(&p)
		rows = append(rows, pattern{one.Name, simulate.Run(p)})
	}
	return rows
}

func (p *program) simulatePatterns(s simulation) error {
	rows := patternsOf(s.params)
	good := s.params
	good.Fails = simulate.Failures{}
	healthy := simulate.Run(good)
	var broken []error
	for _, r := range append(rows, pattern{"", healthy}) {
		broken = append(broken, simulated{Bad: r.Bad}.broken())
	}
	if p.json {
		return errors.Join(p.JSON(struct {
			Patterns []pattern       `json:"patterns"`
			Good     simulate.Result `json:"good"`
		}{rows, healthy}), cli.AlreadyReported(errors.Join(broken...)))
	}
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "it fails\treaches\tfails on\tstops after\n")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\n", r.Fails, strings.Join(patternCells(r.Bad), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Out, "a good release: %s\n", goodText(healthy))
	return errors.Join(append(broken, err)...)
}

// patternCells returns the cells of a row: the number of hosts that took the release, the number of hosts on which it
// failed, and the time at which the rollout stopped.
func patternCells(r simulate.Result) []string {
	stops := "never"
	if r.Stopped != "" {
		stops = shortly(r.StopAt)
	}
	return []string{fmt.Sprintf("%d (%s)", r.Tried, percent(r.Tried, r.Hosts)), fmt.Sprint(r.Failed), stops}
}
