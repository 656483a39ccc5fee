package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// interruptedDeploy returns a host with versions 1 and 2 whose deploy of version 3 was killed: while its states ran, or
// after current was moved to it.
func interruptedDeploy(t *testing.T, promoted bool) *lab {
	t.Helper()
	l := newNativeLab(t)
	repo, storeDir, trustRoot := storeOnDisk(t)
	l.repo, l.store = repo, repo.Store
	for _, version := range []string{"1", "2"} {
		l.states(version, goodStates)
		l.expect(exit.OK)
	}
	files := stateFiles("3", threeFiles)
	files["hooks/post-release.d/10-skipped"] = "#!/bin/sh\n"
	l.repo.Release("myapp", "3", "testing", files)
	where, want := childStep+"=/etc/app/b", "2"
	if promoted {
		where, want = childNote+"=the post-release hooks were skipped", "3"
	}
	if code := spawn(t, l.Layout.Root, storeDir, trustRoot, 0, childNative+"=1", where); code != -1 {
		t.Fatalf("exit code %d, want the code of a killed process", code)
	}
	if got := l.version("service/current"); got != want {
		t.Fatalf("after the kill, current is %q, want %q", got, want)
	}
	return l
}

// TestRollbackAfterInterruptedDeployKeepsGoodRelease checks that the rollback returns to the release before the
// interrupted one, not to an earlier one, and that the next deploy does not bring back the one that was left.
func TestRollbackAfterInterruptedDeployKeepsGoodRelease(t *testing.T) {
	artifacttest.Long(t)
	for name, back := range map[string]func(*lab) (*report.Report, error){
		"rollback":        func(l *lab) (*report.Report, error) { return l.RollbackTo(l.t.Context(), "") },
		"rollback --to 2": func(l *lab) (*report.Report, error) { return l.RollbackTo(l.t.Context(), "2") },
		"rollback --converge": func(l *lab) (*report.Report, error) {
			return l.RollbackConverge(l.t.Context(), "", false)
		},
		"rollback --converge to 2": func(l *lab) (*report.Report, error) {
			return l.RollbackConverge(l.t.Context(), "2", false)
		},
	} {
		for where, promoted := range map[string]bool{"in its states": false, "after its links": true} {
			t.Run(name+", killed "+where, func(t *testing.T) {
				l := interruptedDeploy(t, promoted)
				r, err := back(l)
				if err != nil {
					t.Fatal(err)
				}
				l.links("2", "2", "1")
				if r.Leaves == nil || r.Leaves.Service.Version != "3" || r.Left.Service.Version != "2" {
					t.Errorf("the report has the left release %v and the commands %v", r.Leaves, r.Left)
				}
				if _, err := os.Lstat(l.Layout.Path("/etc/app/b")); err == nil {
					t.Error("the file of version 3 still exists")
				}
				s := mustStatus(t, l)
				if len(s.Quarantined) != 1 || s.Quarantined[0].What() != "myapp 3" || s.Cut != nil {
					t.Errorf("the quarantine is %v, the interrupted run %v", s.Quarantined, s.Cut)
				}
				noted(t, l.expect(exit.OK), "quarantined")
				l.links("2", "2", "1")
				if _, err := l.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := l.version("service/current"); got != "1" {
					t.Errorf("a second rollback leads to version %s, want 1", got)
				}
			})
		}
	}
}

// TestRollbackToAfterInterruptedDeploy rolls back to a named version; a version that is not on the disk changes
// nothing.
func TestRollbackToAfterInterruptedDeploy(t *testing.T) {
	for name, back := range map[string]func(l *lab, to string) error{
		"rollback": func(l *lab, to string) error { _, err := l.RollbackTo(l.t.Context(), to); return err },
		"rollback --converge": func(l *lab, to string) error {
			_, err := l.RollbackConverge(l.t.Context(), to, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := interruptedDeploy(t, true)
			if err := back(l, "9"); exit.Code(err) != exit.Usage {
				t.Errorf("a version that is not on the disk: %v", err)
			}
			if s := mustStatus(t, l); s.Cut == nil || len(s.Quarantined) > 0 {
				t.Errorf("a version that is not on the disk: the interrupted run is %v, the quarantine %v", s.Cut, s.Quarantined)
			}
			if err := back(l, "1"); err != nil {
				t.Fatal(err)
			}
			if got := l.version("service/current"); got != "1" {
				t.Errorf("the current version is %s, want 1", got)
			}
		})
	}
}

// TestDryRollbackAfterInterruptedDeploy checks that a dry run shows the changes of the rollback and makes none.
func TestDryRollbackAfterInterruptedDeploy(t *testing.T) {
	l := interruptedDeploy(t, true)
	before := snapshot(t, l.Layout.Root)
	r, err := l.ShowRollback(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "would undo the deploy of myapp 3, which was interrupted, and stay on myapp 2")
	noted(t, r, "would quarantine myapp 3")
	r, err = l.RollbackConverge(t.Context(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "would undo what is left of myapp 3; myapp 2 would stay deployed")
	if !strings.Contains(r.Output, "/etc/app/b") {
		t.Errorf("the output %q lacks the file of version 3", r.Output)
	}
	if after := snapshot(t, l.Layout.Root); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestRollbackFinishesInterruptedRollback checks that it continues to the named version and not to another one.
func TestRollbackFinishesInterruptedRollback(t *testing.T) {
	l := newLab(t)
	for _, version := range []string{"1", "2", "3"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	root := l.Layout.Root
	l.Sinks = []report.Sink{atStage{stage: "converge", call: func() { l.Layout.Root = copied(t, root) }}}
	_, _ = l.RollbackTo(t.Context(), "1")
	l.Sinks = nil
	must(t, os.WriteFile(l.Layout.Lock(), nil, 0o600)) // this process held it
	if s := mustStatus(t, l); s.Cut == nil {
		t.Fatal("the rollback was not interrupted")
	}
	if _, err := l.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := l.version("service/current"); got != "1" {
		t.Errorf("the current version is %s, want 1", got)
	}
}

// TestHeldHostLeavesAnInterruptedDeploy holds a host whose deploy was killed: each kind of run goes back to what was
// deployed, and applies no state of the release that waits. Without the hold, the release is deployed.
func TestHeldHostLeavesAnInterruptedDeploy(t *testing.T) {
	artifacttest.Long(t)
	for name, runs := range map[string]func(*lab) (*report.Report, error){
		"deploy":   func(l *lab) (*report.Report, error) { return l.Deploy(l.t.Context(), agent.Given{}, false) },
		"converge": func(l *lab) (*report.Report, error) { return l.Converge(l.t.Context(), false) },
	} {
		for where, promoted := range map[string]bool{"in its states": false, "after its links": true} {
			t.Run(name+", killed "+where, func(t *testing.T) {
				l := interruptedDeploy(t, promoted)
				if err := l.Hold("stop"); err != nil {
					t.Fatal(err)
				}
				r, err := runs(l)
				if err != nil {
					t.Fatal(err)
				}
				l.links("2", "2", "1")
				noted(t, r, "this host is held since")
				for _, file := range []string{"/etc/app/b", "/etc/app/c"} {
					if _, err := os.Lstat(l.Layout.Path(file)); err == nil {
						t.Errorf("%s of version 3 exists", file)
					}
				}
				if s := mustStatus(t, l); len(s.Quarantined) != 0 || s.Cut != nil {
					t.Errorf("the quarantine is %v, the interrupted run %v", s.Quarantined, s.Cut)
				}
				if held, err := l.Unhold(); err != nil || !held {
					t.Fatal(err)
				}
				l.expect(exit.OK)
				l.links("3", "3", "2")
			})
		}
	}
}
