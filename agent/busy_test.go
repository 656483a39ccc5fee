package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestConcurrentRunsAreRefused starts every command that changes a host while a deploy converges.
func TestConcurrentRunsAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	ctx := context.Background()
	l.engine.during = func(state.Request) {
		l.engine.during = nil
		for name, call := range map[string]func(*agent.Agent) error{
			"deploy":       func(a *agent.Agent) error { _, err := a.Deploy(ctx, agent.Given{}, false); return err },
			"converge":     func(a *agent.Agent) error { _, err := a.Converge(ctx, false); return err },
			"rollback":     func(a *agent.Agent) error { _, err := a.Rollback(ctx); return err },
			"unquarantine": func(a *agent.Agent) error { _, err := a.Unquarantine(""); return err },
			"project init": func(a *agent.Agent) error { _, err := a.InitProject(ctx, "other", agent.Init{}); return err },
		} {
			outside := *l.Agent
			err := call(&outside)
			if exit.Code(err) != exit.Locked || !strings.Contains(diag.HintOf(err), "wait for it") {
				t.Errorf("%s while a deploy converges: %v, hint %q", name, err, diag.HintOf(err))
			}
			inside := *l.Agent
			inside.Within = "20260101T000000.000000"
			err = call(&inside)
			if exit.Code(err) != exit.Locked ||
				!strings.Contains(err.Error(), "a hook or procedure of run 20260101T000000.000000") ||
				!strings.Contains(diag.HintOf(err), "--no-block") {
				t.Errorf("%s from a hook: %v, hint %q", name, err, diag.HintOf(err))
			}
		}
		if s, err := l.Status(); err != nil || s.Running == nil || s.Running.Command != "deploy" {
			t.Errorf("status meanwhile is %+v, %v", s.Running, err)
		}
	}
	l.expect(exit.OK)
	l.links("2", "2", "1")
}

// fill uses all free blocks of a filesystem.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 4096); ; {
		if _, err := f.Write(chunk); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			return
		}
	}
}

// TestDiskThatFillsUpWhileItConverges fills the disk when the release is current, so that the agent cannot write the
// ledger and the report.
func TestDiskThatFillsUpWhileItConverges(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	if err := os.MkdirAll(l.Layout.State(), 0o755); err != nil {
		t.Fatal(err)
	}
	mounted(t, l.Layout.State(), "size=1m", func() {
		l.expect(exit.OK)
		l.publish("2")
		l.engine.during = func(state.Request) {
			l.engine.during = nil
			fill(t, l.Layout.State())
		}
		r, err := l.deploy()
		if exit.Code(err) == exit.RollbackFailed {
			t.Errorf("the next run fails: %v", err)
		}
		noted(t, r, "no space left")
		if err := os.Remove(filepath.Join(l.Layout.State(), "filler")); err != nil {
			t.Fatal(err)
		}
		l.expect(exit.OK)
		l.links("2", "2", "1")
		book, err := ledger.Load(l.Layout.Ledger())
		if err != nil || book.Running != nil || book.Good == nil || book.Good.Service.Version != "2" {
			t.Errorf("the ledger is %+v, %v", book, err)
		}
		if left, _ := filepath.Glob(filepath.Join(l.Layout.State(), ".*")); len(left) != 0 {
			t.Errorf("the files %v remain", left)
		}
	})
}

// TestFullDiskBeforeTheLinksMove checks that a deploy that cannot write its begin into the ledger changes nothing.
func TestFullDiskBeforeTheLinksMove(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.expect(exit.OK)
	dir := l.Layout.State()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	mounted(t, dir, "size=1m", func() {
		if err := os.CopyFS(dir, os.DirFS(copied)); err != nil {
			t.Fatal(err)
		}
		fill(t, dir)
		_, err := l.Rollback(context.Background())
		if err == nil {
			t.Error("the disk has no room for the ledger, and the run reports no error")
		}
		l.links("2", "2", "1")
	})
}

func TestHostPillarOverridesReleasePillar(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", map[string]string{
		"version": "1", "salt/config/pillar/top.sls": "base: {'*': [app]}\n",
		"salt/config/pillar/app.sls": "app: {port: 80, user: web}\n",
	})
	l.expect(exit.OK)
	file := filepath.Join(l.Layout.Project("myapp").Pillar(), "init.sls")
	if err := os.WriteFile(file, []byte("app: {port: {{ 8000 + 80 }}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pillar, _, err := l.ShowPillar(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"app:port": 8080, "app:user": "web"} {
		if got, _ := value.Lookup(pillar, key, ":"); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if err := os.WriteFile(file, []byte("app: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Converge(context.Background(), false); exit.Code(err) != exit.Usage ||
		!strings.Contains(err.Error(), "init.sls") {
		t.Errorf("a broken pillar: exit code %d, %v", exit.Code(err), err)
	}
}
