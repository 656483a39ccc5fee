package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// fullFor has writes fail as on a full disk while one version converges.
func (l *lab) fullFor(version string) {
	l.engine.fails = func(what string) error {
		if what == "+"+version {
			return fmt.Errorf("file.managed of Ensure something failed: %w", syscall.ENOSPC)
		}
		return nil
	}
}

func (l *lab) quarantined() []ledger.Bad {
	l.t.Helper()
	s, err := l.Status()
	if err != nil {
		l.t.Fatal(err)
	}
	return s.Quarantined
}

// TestReleaseIsRetriedAfterADiskError deploys a version while the disk is full, and again when it has room.
func TestReleaseIsRetriedAfterADiskError(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.fullFor("2")
	_, err := l.deploy()
	if exit.Code(err) != exit.RolledBack || !strings.Contains(diag.HintOf(err), "room") {
		t.Errorf("exit code %d, %v, hint %q", exit.Code(err), err, diag.HintOf(err))
	}
	l.links("1", "1", "")
	l.engine.fails = nil
	r := l.expect(exit.OK)
	noted(t, r, "retried")
	l.links("2", "2", "1")
	if bad := l.quarantined(); len(bad) != 0 {
		t.Errorf("still quarantined: %+v", bad)
	}
}

// TestDeployFailedByTheHostIsRetriedAtGrowingIntervals has a disk that stays full: no release is quarantined, and the
// current pair converges while the new release waits.
func TestDeployFailedByTheHostIsRetriedAtGrowingIntervals(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now()
	l.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.fullFor("2")
	r := l.expect(exit.RolledBack)
	if r.Fault == nil || r.Fault.Of != report.FaultOfHost || r.Fault.Retry == nil {
		t.Errorf("the fault is %+v", r.Fault)
	}
	for _, wait := range []time.Duration{0, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 80 * time.Minute,
		160 * time.Minute, 4 * time.Hour, 4 * time.Hour} {
		if wait > 0 {
			now = now.Add(wait - time.Minute)
			r := l.expect(exit.OK)
			noted(t, r, "waits until")
			if r.To.Service.Version != "1" || r.Withheld == nil || r.Withheld.Service.Version != "2" {
				t.Errorf("the report has the releases %v and withholds %v", r.To, r.Withheld)
			}
			now = now.Add(2 * time.Minute)
		}
		l.expect(exit.RolledBack)
		l.links("1", "1", "")
	}
	if bad := l.quarantined(); len(bad) != 0 {
		t.Errorf("the quarantine is %+v", bad)
	}
	if _, err := l.Unquarantine("2"); err != nil {
		t.Fatal(err)
	}
	l.engine.fails = nil
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

// TestRollbackWithoutRoomHasAHint checks a rollback that fails on a full disk, and succeeds when the disk has room.
func TestRollbackWithoutRoomHasAHint(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.engine.fails = func(string) error { return errors.Join(errors.New("the disk is full"), syscall.ENOSPC) }
	_, err := l.deploy()
	if exit.Code(err) != exit.RollbackFailed || !strings.Contains(diag.HintOf(err), "make room") ||
		!strings.Contains(diag.HintOf(err), "corpus-agent deploy") {
		t.Errorf("exit code %d, %v, hint %q", exit.Code(err), err, diag.HintOf(err))
	}
	l.engine.fails = nil
	l.expect(exit.OK)
	l.links("2", "2", "1")
}
