package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestRollbackToANamedRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2", "3"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	_, err := l.RollbackTo(context.Background(), "9")
	if exit.Code(err) != exit.Usage || diag.HintOf(err) != "kept on this host: 2, 1 [C057]" {
		t.Errorf("a version that does not exist: %v, hint %q", err, diag.HintOf(err))
	}
	if _, err := l.RollbackTo(context.Background(), "3"); exit.Code(err) != exit.Usage {
		t.Errorf("the current version: %v", err)
	}
	if _, err := l.RollbackTo(context.Background(), "1"); err != nil {
		t.Fatal(err)
	}
	l.links("1", "1", "")
	noted(t, l.expect(exit.OK), "quarantined") // the channel still has version 3
	l.links("1", "1", "")
	// A rollback to a named version removes its quarantine.
	if _, err := l.RollbackTo(context.Background(), "3"); err != nil {
		t.Fatal(err)
	}
	l.links("3", "3", "2")
	l.expect(exit.OK)
	l.links("3", "3", "2")
}

// TestRollbackOfAHostThatNeverDeployed rolls back on a new host, and on one whose hostname has no identity.
func TestRollbackOfAHostThatNeverDeployed(t *testing.T) {
	t.Parallel()
	for _, hostname := range []string{"myapp-testing-useast1-1", "localhost"} {
		l := newLab(t)
		l.Hostname = func() (string, error) { return hostname, nil }
		for _, version := range []string{"", "1"} {
			_, err := l.RollbackTo(context.Background(), version)
			if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "nothing on this host was deployed yet") ||
				!strings.Contains(diag.HintOf(err), "corpus-agent deploy") {
				t.Errorf("%s: a rollback to %q ends with %v, hint %q", hostname, version, err, diag.HintOf(err))
			}
		}
	}
}

func TestQuarantineIsLiftedByVersion(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	l.expect(exit.RolledBack)
	if _, err := l.Unquarantine("7"); exit.Code(err) != exit.Usage || !strings.Contains(diag.HintOf(err), "2-broken") {
		t.Errorf("a version that is not quarantined: %v, hint %q", err, diag.HintOf(err))
	}
	released, err := l.Unquarantine("2-broken")
	if err != nil || len(released) != 1 {
		t.Fatalf("released %v, %v", released, err)
	}
	l.expect(exit.RolledBack) // it is retried, and fails again
	if _, err := l.Unquarantine(""); err != nil {
		t.Error(err)
	}
	if _, err := l.Unquarantine(""); exit.Code(err) != exit.Usage {
		t.Errorf("nothing is quarantined: %v", err)
	}
}

func TestCorruptLedgerIsMovedAsideAndRestored(t *testing.T) {
	t.Run("from its copy", func(t *testing.T) { corruptLedger(t, false, "restored from its copy") })
	t.Run("from reports", func(t *testing.T) {
		corruptLedger(t, true, "rebuilt from links and reports, since its copy could not be read")
	})
}

// TestQuarantineSurvivesTheLossOfTheLedgerAndItsCopy removes both, and then the reports as well.
func TestQuarantineSurvivesTheLossOfTheLedgerAndItsCopy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	failed := l.expect(exit.RolledBack)
	for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy()} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := l.Status(); err != nil || len(s.Quarantined) != 1 {
		t.Errorf("status has the quarantine %v, %v", s.Quarantined, err)
	}
	r := l.expect(exit.OK)
	noted(t, r, "its quarantine (1) is as of run "+failed.ID+", and a hold is lost")
	if r.Left.Service.Version != "1" || len(r.Quarantined) != 1 || r.Quarantined[0].Run != failed.ID {
		t.Errorf("left %v, quarantined %+v", r.Left, r.Quarantined)
	}
	for _, path := range []string{l.Layout.Ledger(), l.Layout.LedgerCopy(), l.Layout.Reports()} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	noted(t, l.expect(exit.RolledBack), "which releases are quarantined, and a hold, is lost")
	// The ledger only had the start of the digest, which is not enough for a fetch.
	releases, err := filepath.Glob(l.Layout.Project("myapp").Release("1-*"))
	if err != nil || len(releases) != 1 {
		t.Fatalf("releases are %v, %v", releases, err)
	}
	if err := os.RemoveAll(releases[0]); err != nil {
		t.Fatal(err)
	}
	noted(t, l.expect(exit.OK), "which is deployed, was missing on the disk; it is deployed again")
	if s, err := l.Status(); err != nil || s.Deployed.Service.Digest.Part() || s.Previous != nil {
		t.Errorf("status has %+v, before it %+v, %v", s.Deployed, s.Previous, err)
	}
}

func corruptLedger(t *testing.T, both bool, how string) {
	l := newLab(t)
	l.publishBase("1")
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.expect(exit.OK)
	damaged := []string{l.Layout.Ledger()}
	if both {
		damaged = append(damaged, l.Layout.LedgerCopy())
	}
	for _, path := range damaged {
		if err := os.WriteFile(path, []byte(`{"version": 1, "go`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.Config.Store = "" // it was given on the command line and is saved
	if s, err := l.Status(); err != nil || s.Deployed == nil || s.Deployed.Service.Version != "2" {
		t.Errorf("status has the deployed pair %v, %v", s.Deployed, err)
	}
	noted(t, l.expect(exit.OK), how+": it says that base 1, myapp 2 is deployed")
	l.links("2", "2", "1")
	kept, _ := filepath.Glob(filepath.Join(l.Layout.State(), "ledger.corrupt-*.json"))
	if len(kept) != 1 {
		t.Errorf("the files set aside are %v", kept)
	}
	if _, err := l.Rollback(context.Background()); err != nil {
		t.Errorf("the earlier pair is lost: %v", err)
	}
	l.links("1", "1", "") // the release that was left is in quarantine, so no rollback returns to it
}

func TestFailedReleaseHasReport(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2-broken")
	r := l.expect(exit.RolledBack)
	data, err := os.ReadFile(filepath.Join(l.Layout.Project("myapp").Archives(), r.ID, "report.json"))
	var kept report.Report
	if err != nil || json.Unmarshal(data, &kept) != nil || kept.Outcome != report.RolledBack || kept.Error == "" {
		t.Errorf("the report beside the failed tree is %s, %v", data, err)
	}
}

func TestFailedReleasesDoNotDisplaceGoodOnes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Config.KeepFailed, l.Config.KeepReleases = 1, 2
	l.publish("1")
	l.expect(exit.OK)
	for _, version := range []string{"2-broken", "3-broken", "4-broken"} {
		l.publish(version)
		l.expect(exit.RolledBack)
	}
	l.links("1", "1", "")
	archives := filepath.Join(l.Layout.Project("myapp").Archives(), "*", "project.failed")
	if failed, _ := filepath.Glob(archives); len(failed) != 3 {
		t.Errorf("%d failed trees are kept before a deploy succeeds, want all 3", len(failed))
	}
	for _, version := range []string{"5", "6", "7"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	failed, _ := filepath.Glob(archives)
	if len(failed) != 1 || len(releaseDirs(t, l)) != 2 {
		t.Errorf("the kept trees are %v and %v, want one failed and two good", failed, releaseDirs(t, l))
	}
}

func TestWhyExplainsWithoutTheStore(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if w, err := l.Why(); err != nil || !strings.Contains(w.Reason, "no root of trust") || len(w.Next) == 0 {
		t.Errorf("on a new host, why has %+v, %v", w, err)
	}
	l.publish("1")
	l.expect(exit.OK)
	// The store does not answer from here on.
	l.store = storetest.NewFaulty(l.repo.Store, storetest.Fault{Err: store.ErrUnreachable})
	w, err := l.Why()
	if err != nil || w.Reason != "it is what myapp/testing named when the store was last asked" ||
		w.Failed != "" {
		t.Errorf("on a healthy host, why has %+v, %v", w, err)
	}
	if len(w.Signed) != 1 || len(w.Signed[0].Keys) != 1 || w.Signed[0].Channels["testing"].Version != "1" {
		t.Errorf("signed by %+v", w.Signed)
	}
	l.store = l.repo.Store
	l.publish("2-broken")
	r := l.expect(exit.RolledBack)
	w, err = l.Why()
	if err != nil || !strings.Contains(w.Reason, "myapp 2-broken, which the channels name, failed in run") ||
		!strings.Contains(w.Failed, "Ensure something failed") || w.FailedIn != r.ID {
		t.Errorf("after a rollback, why has %+v, %v", w, err)
	}
	if next := strings.Join(w.Next, "\n"); !strings.Contains(next, "corpus-agent report "+r.ID) ||
		!strings.Contains(next, "corpus-agent unquarantine 2-broken") {
		t.Errorf("the advice is %s", next)
	}
}

func TestStatusSeesDrift(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	if s, err := l.Status(); err != nil || len(s.Drift) != 0 || len(s.Channels) != 2 {
		t.Errorf("status of a healthy host is %+v, %v", s, err)
	}
	current := filepath.Join(l.Layout.Project("myapp").Dir, "current")
	if err := os.Remove(current); err != nil {
		t.Fatal(err)
	}
	s, err := l.Status()
	if err != nil || len(s.Drift) != 1 || !strings.Contains(s.Drift[0], "current of myapp leads to") {
		t.Errorf("drift is %q, %v", s.Drift, err)
	}
	l.expect(exit.OK)
	l.links("1", "1", "")
}
