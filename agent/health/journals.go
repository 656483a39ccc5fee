package health

import (
	"context"
	"strings"
)

// readJournals adds the last log lines of units that are not up to their results. It reads each unit once.
func (o Options) readJournals(ctx context.Context, results []Result) {
	if o.Journal == nil {
		return
	}
	read := map[string]bool{}
	for i, r := range results {
		if r.Error != "" && r.logs != "" && !read[r.logs] {
			read[r.logs] = true
			results[i].Journal = o.Journal(ctx, r.logs)
		}
	}
}

// journals returns the last log lines of the units that are not up, as lines to append to an error.
func (u *Unhealthy) journals() string {
	var text strings.Builder
	for _, r := range u.Results {
		if r.Error != "" && len(r.Journal) > 0 {
			text.WriteString("\n" + r.logs + " logged last:\n  " + strings.Join(r.Journal, "\n  "))
		}
	}
	return text.String()
}
