package outputter

import (
	"fmt"
	"strconv"
	"strings"
)

// counts holds the numbers of results of a run.
type counts struct {
	succeeded, unchanged, changed, failed, warnings int

	milliseconds float64
}

func countOf(all []result) (c counts) {
	for _, r := range all {
		switch {
		case r.failed():
			c.failed++
		case r.pending():
			c.unchanged++
			c.succeeded++
		default:
			c.succeeded++
		}
		if r.changed() {
			c.changed++
		}
		c.warnings += min(1, len(r.warnings))
		c.milliseconds += r.duration
	}
	return c
}

// summary returns the table below the results.
func (p paint) summary(all []result) string {
	c := countOf(all)
	digits := len(strconv.Itoa(max(c.succeeded, c.failed, c.warnings)))
	width := len("Succeeded: ") + digits
	line := func(color, label string, n int) string {
		return p.color(color, fmt.Sprintf("%s: %*d", label, width-len(label)-2, n))
	}
	var b strings.Builder
	b.WriteString("\n" + p.color(cyan, "Summary for "+host) + "\n" + p.color(cyan, strings.Repeat("-", width)) + "\n")
	b.WriteString(line(green, "Succeeded", c.succeeded) + p.details(c) + "\n")
	color := cyan
	if c.failed > 0 {
		color = red
	}
	b.WriteString(line(color, "Failed", c.failed) + "\n")
	if c.warnings > 0 {
		b.WriteString(line(red, "Warnings", c.warnings) + "\n")
	}
	b.WriteString(p.color(cyan, strings.Repeat("-", width)) + "\n")
	b.WriteString(p.color(cyan, fmt.Sprintf("Total states run: %*d", width-7, len(all))) + "\n")
	b.WriteString(p.color(cyan, "Total run time: "+elapsed(c.milliseconds, width-5)) + "\n")
	return b.String()
}

func (p paint) details(c counts) string {
	var parts []string
	if c.unchanged > 0 {
		parts = append(parts, p.color(yellow, fmt.Sprintf("unchanged=%d", c.unchanged)))
	}
	if c.changed > 0 {
		parts = append(parts, p.color(green, fmt.Sprintf("changed=%d", c.changed)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func elapsed(milliseconds float64, width int) string {
	if milliseconds > 999 {
		return fmt.Sprintf("%*.3f s", width, milliseconds/1000)
	}
	return fmt.Sprintf("%*.3f ms", width, milliseconds)
}
