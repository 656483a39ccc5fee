package main

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/self"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/state/host/units"
)

// self returns the agent that this host starts next. It is nil below a root, where another agent is installed.
func (p *program) self(l layout.Layout) *self.Self {
	executable, err := os.Executable()
	if l.Relocated() || err != nil {
		return nil
	}
	s := &self.Self{
		Executable: executable, Files: []string{l.Config(), l.EnvironmentFile()}, UnitDirs: units.Paths(),
		Env: slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "CORPUS_RUN=") || strings.HasPrefix(v, "NOTIFY_SOCKET=")
		}),
		Systemctl: func(ctx context.Context, args ...string) (string, error) {
			return site.Systemctl(ctx, 10*time.Second, args...)
		},
	}
	if p.config != "" && p.Getenv("CORPUS_CONFIG") == "" {
		s.Flags = []string{"--config", p.config}
	}
	return s
}

// lent returns the descriptor of the lock that the run which tests this program has passed to it, or 0.
func (p *program) lent() int {
	fd, err := strconv.Atoi(p.Getenv(self.LentLock))
	if err != nil || fd < 3 {
		return 0
	}
	return fd
}
