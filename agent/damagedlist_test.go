package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// flipDigest changes one bit of the digest of a file in the list of a release, as a failing disk does: the list can
// still be decoded.
func flipDigest(t *testing.T, l *lab, version, file string) {
	t.Helper()
	lists, err := walk.Glob(l.Layout.Tree("myapp", version+"-*"))
	must(t, err)
	if len(lists) != 1 {
		t.Fatalf("the lists of %s are %q", version, lists)
	}
	data, err := os.ReadFile(lists[0])
	must(t, err)
	at := strings.Index(string(data), file)
	if at < 0 {
		t.Fatalf("no %s in the list", file)
	}
	data[at+len(file)+12] ^= 4
	must(t, os.WriteFile(lists[0], data, 0o600))
}

// TestDamagedListIsFetchedAgain flips a bit in the list of the deployed release, whose files are intact.
func TestDamagedListIsFetchedAgain(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"version", "salt/config/states/top.sls"} {
		l := newLab(t)
		l.publish("1")
		l.expect(exit.OK)
		flipDigest(t, l, "1", file)
		_, err := l.Verify(t.Context())
		if exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), "not the one that was signed") ||
			!strings.Contains(diag.HintOf(err), "corpus-agent deploy") {
			t.Errorf("verify: %v, hint %q", err, diag.HintOf(err))
		}
		if strings.HasPrefix(file, "salt") {
			_, err = l.Converge(t.Context(), false)
			if exit.Code(err) != exit.Refused ||
				!strings.Contains(err.Error(), "the list of the files of myapp 1 was lost or damaged") {
				t.Errorf("converge without the store: %v", err)
			}
		}
		noted(t, l.expect(exit.OK), "the list of the files of myapp 1 was lost or damaged; it was fetched again")
		if _, err := l.Verify(t.Context()); err != nil {
			t.Errorf("verify afterwards: %v", err)
		}
		l.ticks(exit.OK)
		if set, _ := filepath.Glob(l.Layout.Path("/srv/projects/myapp/releases/.*")); len(set) > 0 {
			t.Errorf("the intact release was set aside: %q", set)
		}
	}
}

// TestRollbackWithDamagedList flips a bit in the list of the release before: a deploy fetches the list again, and a
// rollback, which has no store, does without it as without a lost one.
func TestRollbackWithDamagedList(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	flipDigest(t, l, "1", "salt/config/states/top.sls")
	l.publish("3")
	noted(t, l.expect(exit.OK), "the list of the files of myapp 1 was lost or damaged; it was fetched again")
	flipDigest(t, l, "2", "salt/config/states/top.sls")
	r, err := l.Rollback(context.Background())
	must(t, err)
	noted(t, r, "myapp 2 could not be verified before going back to it")
	l.links("2", "2", "1")
}

// TestDamagedVersionsAreForgotten flips a bit in the digest of the deployed version in the record of versions. Each
// later run refused the store for it.
func TestDamagedVersionsAreForgotten(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	file := filepath.Join(l.Layout.Trust(), "versions.json")
	data, err := os.ReadFile(file)
	must(t, err)
	at := strings.Index(string(data), "sha256:")
	data[at+len("sha256:")] ^= 1
	must(t, os.WriteFile(file, data, 0o600))
	l.expect(exit.OK)
	l.expect(exit.OK)
}
