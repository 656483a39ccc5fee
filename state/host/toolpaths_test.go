package host_test

import (
	"context"
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestToolsGetNoPathsOfUsers checks that a tool that changes files gets a path in a directory of root, and none in a
// directory of another user.
func TestToolsGetNoPathsOfUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files of several users require root")
	}
	top := t.TempDir() // below /tmp, where no other user can replace root's directories
	for dir, uid := range map[string]int{"/own": 0, "/theirs": 64001} {
		if err := os.Mkdir(top+dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(top+dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	touch := func(h *host.Host, file string, changes host.Subject) error {
		_, err := h.Tool(context.Background(), host.Tool{Argv: []string{"touch", file}, Changes: changes})
		return err
	}
	changing := host.Subject{Kind: host.KindMount, Name: "x"}
	if err := touch(h, top+"/own/f", changing); err != nil {
		t.Errorf("in root's directory: %v", err)
	}
	err = touch(h, top+"/theirs/f", changing)
	if _, unsafe := host.Unsafe(err); !unsafe {
		t.Errorf("in a user's directory: %v", err)
	}
	if _, err := os.Lstat(top + "/theirs/f"); err == nil {
		t.Error("the tool followed a path in a user's directory")
	}
	if err := touch(h.Following(), top+"/theirs/f", changing); err != nil {
		t.Errorf("with follow_unsafe: %v", err)
	}
}
