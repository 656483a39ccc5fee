package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/rollout/simulate"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// broken returns an error if a simulation violated a rule of rollouts, which is a mistake in this program.
func (r simulated) broken() error {
	var errs []error
	for _, text := range append(append([]string{}, r.Bad.Broken...), r.Good.Broken...) {
		errs = append(errs, errors.New(text))
	}
	if len(errs) == 0 {
		return nil
	}
	return diag.Internal.Hint(fmt.Errorf("the simulation broke a rule of rollouts: %w", errors.Join(errs...)),
		"check that the plan can end at all (its windows); otherwise report this command and its output as a mistake")
}

func badText(r simulate.Result) string {
	if r.Stopped == "" && r.Waits != "" {
		return fmt.Sprintf("it reaches %s of %d and fails on %d, and goes no further: %s. It does not halt; a person decides",
			diag.Count(r.Tried, "host"), r.Hosts, r.Failed, r.Waits)
	}
	if r.Stopped == "" {
		return fmt.Sprintf("it reaches %s of %d and fails on %d, and nothing stops it", diag.Count(r.Tried, "host"), r.Hosts,
			r.Failed)
	}
	return fmt.Sprintf("it reaches %s of %d (%s) and fails on %d, and stops after %s: %s", diag.Count(r.Tried, "host"),
		r.Hosts, percent(r.Tried, r.Hosts), r.Failed, shortly(r.StopAt), r.Stopped)
}

func goodText(r simulate.Result) string {
	switch {
	case r.Stopped != "":
		return fmt.Sprintf("it stops after %s at %s: %s", shortly(r.StopAt), diag.Count(r.Tried, "host"), r.Stopped)
	case r.Healthy < r.Hosts:
		return fmt.Sprintf("it reaches %s of %d in %s; %d died", diag.Count(r.Healthy, "host"), r.Hosts, shortly(r.Ended),
			r.Dead)
	}
	return fmt.Sprintf("it reaches all %s in %s", diag.Count(r.Hosts, "host"), shortly(r.Ended))
}

// percent formats a fraction as a percentage.
func percent(part, whole int) string {
	return fmt.Sprintf("%.3g%%", float64(part)*100/float64(max(whole, 1)))
}

// across is the number of columns of a picture.
const across = 60

// picture draws the share of each wave that took the release over time: a row for each wave, and time from left to
// right.
func picture(plan rollout.Plan, r simulate.Result) string {
	end := max(r.Ended, r.StopAt, time.Minute)
	taken := make([][]int, len(plan.Waves))
	for w := range taken {
		taken[w] = make([]int, across)
	}
	for _, e := range r.Starts {
		taken[e.Wave][min(int(int64(across)*int64(e.At)/int64(end+1)), across-1)]++
	}
	stop := -1
	if r.Stopped != "" {
		stop = min(int(int64(across)*int64(r.StopAt)/int64(end+1)), across-1)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for i, counts := range taken {
		row, sum := make([]byte, across), 0
		for at, n := range counts {
			sum += n
			row[at] = shade(sum, r.Waves[i])
		}
		if stop >= 0 {
			row[stop] = '!'
		}
		fmt.Fprintf(w, "  %s\t%s\t|%s|\t%d of %d\n", trust.Printable(plan.WaveName(i)), plan.Waves[i].Share,
			row, sum, r.Waves[i])
	}
	left := shortly(end)
	fmt.Fprintf(w, "\t\t 0%s%s\t\n", strings.Repeat(" ", max(across-1-len(left), 1)), left)
	_ = w.Flush() // a strings.Builder never returns an error
	legend := "  . some of the wave took it, : a half, # all"
	if stop >= 0 {
		legend += ", ! it stops"
	}
	lines := strings.Split(b.String()+legend+"\n", "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// shade returns the character for a share of a wave.
func shade(part, whole int) byte {
	switch {
	case part == 0:
		return ' '
	case part >= whole:
		return '#'
	case 2*part >= whole:
		return ':'
	}
	return '.'
}
