package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestRollbackToAReleaseOfAnOldBase deploys more releases of base than are kept, after a release of the service that
// is.
func TestRollbackToAReleaseOfAnOldBase(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.KeepReleases = 2
	l.publishBase("b1")
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	for n := 2; n <= 4; n++ {
		l.publishBase(fmt.Sprintf("b%d", n))
		l.expect(exit.OK)
	}
	list, err := l.Releases()
	must(t, err)
	var previous []string
	for _, k := range list {
		if slices.Contains(k.Marks(), "previous") {
			previous = append(previous, k.Release.String())
		}
	}
	if !slices.Equal(previous, []string{"base b3"}) {
		t.Errorf("releases marks %q as previous, and a rollback deploys base b3", previous)
	}
	_, err = l.RollbackTo(context.Background(), "1")
	must(t, err)
	if l.engine.last() != "b1+1" {
		t.Errorf("converged %q, want b1+1", l.engine.last())
	}
	bases, err := walk.Glob(l.Layout.Path("/srv/projects/base/releases/*"))
	must(t, err)
	if len(bases) > 4 {
		t.Errorf("%d releases of base are kept", len(bases))
	}
}

// TestRollbackWithoutTheOldBase removes the release of base that a kept release of the service needs.
func TestRollbackWithoutTheOldBase(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2"} {
		l.publishBase("b" + version)
		l.publish(version)
		l.expect(exit.OK)
	}
	bases, err := walk.Glob(l.Layout.Path("/srv/projects/base/releases/b1-*"))
	must(t, err)
	must(t, durable.RemoveAll(t.Context(), bases[0]))
	_, err = l.RollbackTo(context.Background(), "1")
	if exit.Code(err) != exit.Usage || !strings.Contains(fmt.Sprint(err),
		"myapp 1 is kept on this host, but base b1, with which it was good, is not") {
		t.Errorf("the rollback ended with %d, %v, hint %q", exit.Code(err), err, diag.HintOf(err))
	}
}
