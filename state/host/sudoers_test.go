package host_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestSudoers lets the machine's own visudo judge files in a chroot.
func TestSudoers(t *testing.T) {
	root := hosttest.Chroot(t)
	h, err := machine.New(host.Options{Root: root, Chroot: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := h.Which("visudo"); !ok {
		t.Skip("this machine has no visudo to test with")
	}
	const good, bad = "%adm ALL=(ALL) NOPASSWD: ALL\n", "%adm ALL=(ALL\n"
	for _, c := range []struct {
		file, content string
		refused       bool
	}{
		{"/etc/sudoers", good, false}, {"/etc/sudoers", bad, true}, {"/etc/sudoers.d/team", good, false}, {"/etc/sudoers.d/team", bad, true},
		{"/etc/sudoers.d/team.bak", bad, false}, {"/etc/motd", bad, false},
	} {
		err := h.CheckSudoers(context.Background(), c.file, []byte(c.content))
		if (err != nil) != c.refused {
			t.Errorf("%s with %q: %v", c.file, c.content, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.file+":1") || diag.HintOf(err) == "") {
			t.Errorf("%v (hint: %s); want file, line and a hint", err, diag.HintOf(err))
		}
	}
	if left, err := os.ReadDir(filepath.Join(root, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("left in /tmp: %v, %v", left, err)
	}
}

// TestSudoersBelowARoot asks nobody.
func TestSudoersBelowARoot(t *testing.T) {
	root := t.TempDir()
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.CheckSudoers(context.Background(), "/etc/sudoers", []byte("nonsense\n")); err != nil {
		t.Error(err)
	}
}
