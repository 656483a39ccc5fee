package host

import (
	"context"
	"strings"
	"testing"
)

// scripted answers commands from a list, by the start of their command line.
type scripted struct {
	t       *testing.T
	answers map[string]Output
	ran     []string // what was run, in order
	writes  []string // of these, what was not quiet

	busy  Output // what the package manager, and not rpm, says while another process has its lock
	turns int    // how many of the next commands meet that
}

func (s *scripted) Allowed(string) error { return nil }

func (s *scripted) Run(_ context.Context, c Command) (Output, error) {
	line := strings.Join(c.Argv, " ")
	s.ran = append(s.ran, line)
	if !c.Quiet {
		s.writes = append(s.writes, line)
	}
	// Whether a cache is there does not change what is asked.
	line = strings.ReplaceAll(line, " -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=", "")
	if s.turns > 0 && c.Argv[0] != "rpm" {
		s.turns--
		return s.busy, nil
	}
	best, found := "", false
	for start := range s.answers {
		if strings.HasPrefix(line, start) && len(start) >= len(best) {
			best, found = start, true
		}
	}
	if !found {
		s.t.Errorf("nobody expected the command %s", line)
	}
	return s.answers[best], nil
}
