package hosttest

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Scripted is a fake of host.Commands. For each command, it returns the output in Answers whose key is the longest
// prefix of the command line.
type Scripted struct {
	T       testing.TB
	Answers map[string]host.Output
	Ran     []string // commands that were run, in order
	Writes  []string // of these, those that are not quiet

	Busy  host.Output // output of the package manager (not of rpm) while another process holds its lock
	Turns int         // number of following commands that get Busy
}

// Allowed allows every command.
func (s *Scripted) Allowed(string) error { return nil }

// Run records a command and returns its answer. A command without an answer fails the test.
func (s *Scripted) Run(_ context.Context, c host.Command) (host.Output, error) {
	line := strings.Join(c.Argv, " ")
	s.Ran = append(s.Ran, line)
	if !c.Quiet {
		s.Writes = append(s.Writes, line)
	}
	// Options that turn off apt's caches do not change the query.
	line = strings.ReplaceAll(line, " -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=", "")
	if s.Turns > 0 && c.Argv[0] != "rpm" {
		s.Turns--
		return s.Busy, nil
	}
	best, found := "", false
	for start := range s.Answers {
		if strings.HasPrefix(line, start) && len(start) >= len(best) {
			best, found = start, true
		}
	}
	if !found {
		s.T.Errorf("unexpected command %s", line)
	}
	return s.Answers[best], nil
}

// Root returns a host whose root is a temporary directory with the given files, by path.
func Root(t testing.TB, files map[string]string) *host.Host {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		Put(t, filepath.Join(dir, name), text, 0o644)
	}
	h, err := host.Open(host.Options{Root: dir}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Recorded is a recorder that lists the subjects that are replaced. It refuses them if Refuse is set.
type Recorded struct {
	Subjects []string
	Refuse   error
}

// Kept returns nil.
func (r *Recorded) Kept() error { return nil }

// Replacing records a subject, and returns Refuse.
func (r *Recorded) Replacing(s host.Subject) error {
	r.Subjects = append(r.Subjects, s.String())
	return r.Refuse
}
