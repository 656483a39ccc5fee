package agent_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// rootFile writes a root to a file, for --trust-root.
func rootFile(t *testing.T, root []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "root.json")
	if err := os.WriteFile(file, root, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// A root of another store is not pinned: a later deploy with the right one succeeds.
func TestWrongRootIsNotPinned(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1.0")
	other := rootFile(t, artifacttest.New(t).Root())
	_, err := l.Deploy(context.Background(), agent.Given{TrustRoot: other}, false)
	if exit.Code(err) != exit.Refused ||
		!strings.Contains(err.Error(), "this store is not the one these keys belong to") ||
		!strings.Contains(diag.HintOf(err), "--store") {
		t.Errorf("with the root of another store: exit code %d, %v\nhint: %s", exit.Code(err), err, diag.HintOf(err))
	}
	if names, err := os.ReadDir(l.Layout.Trust()); err != nil || len(names) != 1 || names[0].Name() != "given" {
		t.Errorf("a root that has verified nothing left the files %v, %v, want only the argument", names, err)
	}
	l.expect(exit.OK)
	if _, err := os.Stat(filepath.Join(l.Layout.Trust(), "given")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the saved argument remains after the pin: %v", err)
	}
	l.links("1.0", "1.0", "")
}

// A host that lost its root of trust continues when the root is given again, and still refuses older metadata.
func TestTrustRootAfterALostRoot(t *testing.T) {
	t.Parallel()
	for _, lost := range [][]string{{"root.json"}, {"root.json", "pinned"}} {
		t.Run(strings.Join(lost, " and "), func(t *testing.T) {
			l := newLab(t)
			l.publish("1.0")
			old := l.repo.Snapshot()
			l.publish("1.1")
			l.expect(exit.OK)
			for _, name := range lost {
				if err := os.Remove(filepath.Join(l.Layout.Trust(), name)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := l.Deploy(context.Background(), agent.Given{}, false); exit.Code(err) != exit.Refused ||
				!strings.Contains(diag.HintOf(err), "--trust-root") {
				t.Errorf("without a root: exit code %d, %v", exit.Code(err), err)
			}
			if _, err := l.Deploy(context.Background(), agent.Given{TrustRoot: rootFile(t, artifacttest.New(t).Root())},
				false); exit.Code(err) != exit.Refused {
				t.Errorf("with another root: exit code %d, %v", exit.Code(err), err)
			}
			newest := l.repo.Snapshot()
			l.repo.Restore(old)
			if _, err := l.deploy(); exit.Code(err) != exit.Refused {
				t.Errorf("a store with older metadata: exit code %d, %v", exit.Code(err), err)
			}
			l.repo.Restore(newest)
			l.publish("1.2")
			l.expect(exit.OK)
			l.links("1.2", "1.2", "1.1")
			if _, err := l.Deploy(context.Background(), agent.Given{}, false); err != nil {
				t.Errorf("without --trust-root afterwards: %v", err)
			}
		})
	}
}

// The error about an invalid root names its file, and does not suggest that the store is not trustworthy.
func TestInvalidTrustRootIsReported(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1.0")
	file := filepath.Join(l.repo.Keys.Dir, "root.pub")
	_, err := l.Deploy(context.Background(), agent.Given{TrustRoot: file}, false)
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), file+" is a key and not a root of trust") ||
		!strings.Contains(diag.HintOf(err), "keys/root.json") {
		t.Errorf("exit code %d, %v\nhint: %s", exit.Code(err), err, diag.HintOf(err))
	}
}
