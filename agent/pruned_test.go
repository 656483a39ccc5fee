package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestSIGTERMDuringPruneEndsTheRun sends SIGTERM to a run while it removes a large old release. The deploy is complete,
// and the next run removes the rest.
func TestSIGTERMDuringPruneEndsTheRun(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.KeepReleases = 2
	l.publish("1")
	l.expect(exit.OK)
	oldest, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
	must(t, err)
	for i := range 100 {
		dir := filepath.Join(oldest, "data", fmt.Sprint(i))
		must(t, os.MkdirAll(dir, 0o755))
		for j := range 200 {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(j)), nil, 0o644))
		}
	}
	l.publish("2")
	l.expect(exit.OK)
	l.publish("3")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leftovers := func() []string {
		left, err := filepath.Glob(filepath.Join(filepath.Dir(oldest), ".corpus-tmp-*", filepath.Base(oldest)))
		must(t, err)
		return left
	}
	go func() {
		for ctx.Err() == nil && len(leftovers()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	r, err := l.Deploy(ctx, agent.Given{}, false)
	if exit.Code(err) != exit.OK {
		t.Errorf("exit code %d: %v", exit.Code(err), err)
	}
	if l.links("3", "3", "2"); len(leftovers()) != 1 {
		t.Fatalf("the run continued until the release was removed; notes %q", r.Notes)
	}
	noted(t, r, "old releases were not all removed")
	l.expect(exit.OK)
	if left := leftovers(); len(left) != 0 {
		t.Errorf("the files %v remain", left)
	}
}
