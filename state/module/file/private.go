package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// readers says who may read a file, before and after a change. A line that was in a file that not every user may read
// may have a secret of an earlier release, which the pillar no longer has and no redactor can find. So the difference
// of such a file shows only lines of the present release; if lines of the file remain in it, it shows their number.
type readers struct {
	host    *host.Host // nil for a file that only its user may read, such as a crontab
	file    string
	mode    module.Mode // of the file after the change; not given if it stays
	release bool        // the release has all lines of the file after the change
}

// private reports whether not every user may read the file, before or after the change.
func (r readers) private() bool {
	return r.host == nil || r.mode.Given && r.mode.Bits&0o004 == 0 || host.Private(r.host, r.file)
}

// hiddenLines replace the lines that a private file had.
func hiddenLines(n int) []string {
	return slices.Repeat([]string{"-<not shown>\n"}, n)
}

// withheld replaces the difference of a private file of which lines remain.
func withheld(removed, added int) string {
	return fmt.Sprintf("<not shown, since not every user may read the file: %s removed, %d added>",
		diag.Count(removed, "line"), added)
}

// withheldText is withheld for a difference whose lines start with - and +.
func withheldText(diff string) string {
	removed, added := 0, 0
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '-':
			removed++
		case '+':
			added++
		}
	}
	return withheld(removed, added)
}
