package accounts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// elsewhere queries the other sources for one line of a database.
func elsewhere[T any](a *Accounts, t *tables, database, key string, parse func(string) []T) (T, bool, error) {
	var none T
	answer, err := a.getent(t, database, database, key)
	if err != nil {
		return none, false, err
	}
	if found := parse(answer); len(found) > 0 {
		return found[0], true, nil
	}
	return none, false, nil
}

// named returns a name as a key for getent, or "" if getent would read it as an ID or an option.
func named(name string) string {
	if _, err := strconv.Atoi(name); err == nil || strings.HasPrefix(name, "-") {
		return ""
	}
	return name
}

// otherGroups returns the groups of a user in other sources.
func (a *Accounts) otherGroups(t *tables, user string) ([]string, error) {
	answer, err := a.getent(t, "group", "initgroups", user)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, field := range strings.Fields(answer) {
		gid, err := strconv.Atoi(field)
		if err != nil {
			continue // the user's name, which comes first
		}
		g, ok, err := a.GroupByID(gid)
		if err != nil {
			return nil, err
		}
		if ok {
			names = append(names, g.Name)
		}
	}
	return names, nil
}

// notFound is getent's exit code for a key that no source has.
const notFound = 2

// getent queries every source that nsswitch.conf names, and caches the answer. It runs nothing if files are the only
// source or if commands cannot run.
func (a *Accounts) getent(t *tables, database, table, key string) (string, error) {
	if !t.elsewhere[database] || a.refused || key == "" {
		return "", nil
	}
	query := table + " " + key
	a.mu.Lock()
	answer, known := a.others[query]
	a.mu.Unlock()
	if known {
		return answer, nil
	}
	tool, ok := host.Which(a.files, "getent")
	if !ok {
		return "", nil
	}
	out, err := a.commands.Run(context.Background(), host.Command{Argv: []string{tool, table, key},
		Env: host.ToolEnvironment(), Limit: 30 * time.Second, Quiet: true})
	switch {
	case err != nil:
		return "", fmt.Errorf("looking up %s: %w", query, err)
	case out.TimedOut:
		return "", fmt.Errorf("looking up %s: no answer in 30 seconds", query)
	case out.Code != 0 && out.Code != notFound:
		return "", fmt.Errorf("looking up %s: getent ended with code %d: %s", query, out.Code,
			strings.TrimSpace(out.Stderr))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.others == nil {
		a.others = map[string]string{}
	}
	a.others[query] = out.Stdout
	return out.Stdout, nil
}
