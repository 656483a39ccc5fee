package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
)

// inFleet returns the only host of the fleet, and what needs a person.
func (l *lab) inFleet() (fleet.Host, []fleet.Attention) {
	l.t.Helper()
	v, err := fleet.Look(l.t.Context(), fleet.Query{Store: l.repo.Store, Now: time.Now(), SilentAfter: time.Hour})
	if err != nil {
		l.t.Fatal(err)
	}
	if err := v.Explain(l.t.Context(), l.repo.Store); err != nil || len(v.Hosts) != 1 {
		l.t.Fatalf("%+v, %v", v, err)
	}
	return v.Hosts[0], v.Attention
}

// recordsStored returns the keys of the records in the store.
func (l *lab) recordsStored() (keys []string) {
	for _, key := range l.stored() {
		if strings.HasPrefix(key, hostrecord.Prefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

// failsUntilMended runs ticks on a host whose state directory cannot be written, and one after mend.
func (l *lab) failsUntilMended(why, cure string, mend func()) {
	l.t.Helper()
	for tick := range 4 {
		_, err := l.deploy()
		l.t.Logf("the run ended with %v", err)
		h, needs := l.inFleet()
		if h.State != fleet.Failed || len(needs) == 0 || needs[0].What != string(fleet.Failed) {
			l.t.Fatalf("tick %d: the host is %s, and the fleet needs %+v", tick, h.State, needs)
		}
		if !strings.Contains(needs[0].Why, why) || !strings.Contains(needs[0].Hint, cure) || h.Service.Version != "1" ||
			!h.Signed || h.Copied {
			l.t.Errorf("tick %d: %+v of %+v", tick, needs[0], h)
		}
		if keys := l.recordsStored(); len(keys) > 2 {
			l.t.Errorf("tick %d: the store has the records %q", tick, keys)
		}
	}
	mend()
	l.expect(exit.OK)
}

// TestFullStateDirectoryIsShownInTheFleet checks that a host is shown as failed at the first tick after its disk is
// full, and as healthy at the first one after the disk has room.
func TestFullStateDirectoryIsShownInTheFleet(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.UploadReports, l.Config.Heartbeat = true, time.Hour
	mountStateDirectory(t, l.Layout.State())
	l.publish("1")
	l.expect(exit.OK)
	l.expect(exit.OK)
	if h, _ := l.inFleet(); h.State != fleet.Healthy {
		t.Fatalf("before, the host is %+v", h)
	}
	fill := filepath.Join(l.Layout.State(), "fill")
	if err := os.WriteFile(fill, make([]byte, 9<<20), 0o600); err == nil {
		t.Fatal("the filesystem is not full")
	}
	l.failsUntilMended("left: no space", "make room", func() { must(t, os.Remove(fill)) })
	if h, needs := l.inFleet(); h.State != fleet.Healthy || len(needs) != 0 {
		t.Errorf("after, the host is %+v, and the fleet needs %+v", h, needs)
	}
}

// TestReadOnlyStateDirectoryIsShownInTheFleet checks the same of a read-only filesystem. It cannot keep that the host
// has to write its record again, so this follows after reports.heartbeat.
func TestReadOnlyStateDirectoryIsShownInTheFleet(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	l := newLab(t)
	at := time.Now()
	l.Now = func() time.Time { return at }
	l.Config.UploadReports, l.Config.Heartbeat = true, time.Hour
	state := l.mountedState(t)
	l.publish("1")
	l.expect(exit.OK)
	l.expect(exit.OK)
	mount(t, state, syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY)
	l.failsUntilMended("read-only", "mount that filesystem for writing", func() {
		mount(t, state, syscall.MS_BIND|syscall.MS_REMOUNT)
	})
	at = at.Add(time.Hour)
	l.expect(exit.OK)
	if h, needs := l.inFleet(); h.State != fleet.Healthy || len(needs) != 0 {
		t.Errorf("after, the host is %+v, and the fleet needs %+v", h, needs)
	}
}

// mountedState makes the state directory a mount of its own, and returns it.
func (l *lab) mountedState(t *testing.T) string {
	t.Helper()
	state := l.Layout.State()
	must(t, os.MkdirAll(state, 0o700))
	mount(t, state, syscall.MS_BIND)
	t.Cleanup(func() { _ = syscall.Unmount(state, syscall.MNT_DETACH) })
	return state
}

// TestReadOnlyStateDirectoryConverges has nothing to deploy, and a file that other users may read.
func TestReadOnlyStateDirectoryConverges(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	l := newLab(t)
	state := l.mountedState(t)
	l.publish("1")
	l.expect(exit.OK)
	must(t, os.Chmod(l.Layout.Ledger(), 0o644))
	l.engine.converged = nil
	mount(t, state, syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY)
	_, err := l.deploy()
	if len(l.engine.converged) != 1 || err != nil && !strings.Contains(err.Error(), "read-only") {
		t.Errorf("converged %q, %v", l.engine.converged, err)
	}
}

// TestRunThatCannotBeginIsShownInTheFleet has a state directory that every user can replace.
func TestRunThatCannotBeginIsShownInTheFleet(t *testing.T) {
	t.Parallel()
	needsRoot(t) // the directories of another user's host are not checked
	l := newLab(t)
	l.Config.UploadReports, l.Config.Heartbeat = true, time.Hour
	l.publish("1")
	l.expect(exit.OK)
	state := l.Layout.State()
	must(t, os.Chmod(filepath.Dir(state), 0o777)) // another user can replace the state directory
	l.failsUntilMended(filepath.Dir(state), "chmod 755", func() { must(t, os.Chmod(filepath.Dir(state), 0o755)) })
	if h, needs := l.inFleet(); h.State != fleet.Healthy || len(needs) != 0 {
		t.Errorf("after, the host is %+v, and the fleet needs %+v", h, needs)
	}
}
