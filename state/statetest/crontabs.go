package statetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Crontabs holds crontabs in memory, by user. A line that starts with ! is refused, as cron refuses an invalid one.
type Crontabs struct {
	Tabs map[string]string
	// Refused makes every change return a *host.Skipped, as below a root.
	Refused bool
}

// Allowed returns an error if Refused is set.
func (c *Crontabs) Allowed(what string) error {
	if c.Refused {
		return &host.Skipped{What: what}
	}
	return nil
}

// Read returns a user's crontab.
func (c *Crontabs) Read(_ context.Context, user string) (string, error) { return c.Tabs[user], nil }

// Write replaces a user's crontab.
func (c *Crontabs) Write(_ context.Context, user, text string) error {
	if strings.Contains("\n"+text, "\n!") {
		return fmt.Errorf("cron refused the crontab of %s", user)
	}
	c.Tabs[user] = text
	return nil
}

// String shows all crontabs.
func (c *Crontabs) String() string {
	var b strings.Builder
	for _, user := range slices.Sorted(maps.Keys(c.Tabs)) {
		fmt.Fprintf(&b, "%s:\n%s", user, c.Tabs[user])
	}
	return b.String()
}
