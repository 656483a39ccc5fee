package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/lock"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestPermanentlyHeldLockIsAFailure holds the lock while the timer starts several runs.
func TestPermanentlyHeldLockIsAFailure(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.Metrics = "/metrics/corpus.prom"
	if err := os.MkdirAll(l.Layout.Path("/metrics"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.publish("1")
	l.expect(exit.OK)
	held, err := lock.Acquire(l.Layout.Lock(), "converge")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, step := range []struct {
		after time.Duration
		code  int
	}{{0, exit.Locked}, {4 * time.Minute, exit.Locked}, {5 * time.Minute, exit.Starved},
		{10 * time.Minute, exit.Starved}} {
		l.Now = func() time.Time { return began.Add(step.after) }
		_, err := l.deploy()
		if exit.Code(err) != step.code {
			t.Errorf("after %v the exit code is %d, want %d: %v", step.after, exit.Code(err), step.code, err)
		}
		if step.code == exit.Starved && (!strings.Contains(err.Error(), "no run got the lock since") ||
			!strings.Contains(diag.HintOf(err), "fuser -v /var/lib/corpus/lock")) {
			t.Errorf("error %v, hint %q", err, diag.HintOf(err))
		}
	}
	s, err := l.Status()
	if err != nil || s.Refused == nil || s.Refused.Count != 4 || s.Refused.Holder.Command != "converge" ||
		s.Refused.Last.Sub(s.Refused.Since) != 10*time.Minute {
		t.Errorf("status has %+v, %v", s.Refused, err)
	}
	if text := l.metrics("corpus_lock.prom"); !strings.Contains(text, "corpus_agent_lock_refused_runs 4\n") {
		t.Errorf("metrics are %s", text)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	l.expect(exit.OK)
	if s, err := l.Status(); err != nil || s.Refused != nil {
		t.Errorf("after a run, status has %+v, %v", s.Refused, err)
	}
	if text := l.metrics("corpus_lock.prom"); !strings.Contains(text, "corpus_agent_lock_refused_runs 0\n") {
		t.Errorf("after a run, metrics are %s", text)
	}
}

func (l *lab) metrics(name string) string {
	data, err := os.ReadFile(filepath.Join(l.Layout.Path("/metrics"), name))
	if err != nil {
		l.t.Error(err)
	}
	return string(data)
}
