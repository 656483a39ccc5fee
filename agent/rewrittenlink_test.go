package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestLinkThatIsWrittenAgain has another program write `current` with its present target: units that were started
// before still run the deployed release. If a person moves the link, and a run restores it, the units that were started
// meanwhile are restarted.
func TestLinkThatIsWrittenAgain(t *testing.T) {
	l, u := runningUnits(t, "1", "app.service")
	u.all["app.service"].script = true // the process gives no evidence of its release
	l.app("2")
	l.expect(exit.OK)
	drift := func() string {
		t.Helper()
		s := mustStatus(t, l)
		if err := l.RunningUnits(context.Background(), &s); err != nil || len(s.Units) != 1 {
			t.Fatalf("units are %+v, %v", s.Units, err)
		}
		return strings.Join(s.Drift, ", ")
	}
	if d := drift(); d != "" {
		t.Fatalf("after the deploy: %s", d)
	}
	current := filepath.Join(l.Layout.Project("myapp").Dir, "current")
	write := func(target string) {
		t.Helper()
		time.Sleep(10 * time.Millisecond) // so that the link is newer than the process
		if err := os.Remove(current); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, current); err != nil {
			t.Fatal(err)
		}
	}
	deployed, err := os.Readlink(current)
	if err != nil {
		t.Fatal(err)
	}
	write(deployed)
	if d := drift(); d != "" {
		t.Errorf("after the link was written again: %s", d)
	}
	l.expect(exit.OK)
	if d := drift(); d != "" {
		t.Errorf("and after another run: %s", d)
	}
	earlier, err := os.Readlink(filepath.Join(filepath.Dir(current), "previous"))
	if err != nil {
		t.Fatal(err)
	}
	write(earlier)
	time.Sleep(10 * time.Millisecond)
	u.all["app.service"].begin(u)
	l.expect(exit.OK) // restores the link and restarts the units that were started meanwhile
	u.runs(t, "app.service", "2")
	if d := drift(); d != "" {
		t.Errorf("for a unit that was started while the link was moved, drift is %q", d)
	}
}

// TestWhyAdviceOmitsUnreferencedReleases quarantines a release, and moves the channel.
func TestWhyAdviceOmitsUnreferencedReleases(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	l.expect(exit.RolledBack)
	advised := func() bool {
		t.Helper()
		w, err := l.Why()
		if err != nil || len(w.Quarantined) != 1 {
			t.Fatalf("%+v, %v", w.Quarantined, err)
		}
		return strings.Contains(strings.Join(w.Next, "\n"), "unquarantine 2-broken")
	}
	if !advised() {
		t.Error("why has no advice for the release of the channel")
	}
	l.publish("3")
	l.expect(exit.OK)
	if advised() {
		t.Error("why has advice for a release without a channel")
	}
}

// TestServiceLinkToBase rebuilds the ledger of a host whose /srv/service a user pointed at base.
func TestServiceLinkToBase(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	service := l.Layout.ServiceLink()
	for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports(), service} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("projects/base", service); err != nil {
		t.Fatal(err)
	}
	if s := mustStatus(t, l); s.Deployed != nil {
		t.Errorf("status has the deployed pair %s", s.Deployed)
	}
	l.expect(exit.OK)
	if s := mustStatus(t, l); s.Deployed == nil || s.Deployed.Service.Project != "myapp" || s.Previous != nil {
		t.Errorf("the deployed pair is %v, the previous one %v", s.Deployed, s.Previous)
	}
}
