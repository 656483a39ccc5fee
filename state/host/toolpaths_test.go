package host_test

import (
	"context"
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// TestToolsGetNoPathsOfUsers gives tools that change something a path below a directory of a user, and one in a
// directory of root.
func TestToolsGetNoPathsOfUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files of several users take root")
	}
	top := t.TempDir() // below /tmp, where root's own directories cannot be exchanged
	for dir, uid := range map[string]int{"/own": 0, "/lair": 64001} {
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
	err = touch(h, top+"/lair/f", changing)
	if _, unsafe := host.Unsafe(err); !unsafe {
		t.Errorf("in a user's directory: %v", err)
	}
	if _, err := os.Lstat(top + "/lair/f"); err == nil {
		t.Error("the tool followed a path in a user's directory")
	}
	if err := touch(h.Following(), top+"/lair/f", changing); err != nil {
		t.Errorf("with follow_unsafe: %v", err)
	}
}
