package onhost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/doctor"
	"github.com/corpus-agent/corpus-agent/agent/doctor/onhost"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// TestControlOfOtherUsersIsAFailure makes a directory above the projects writable for all users, and the ledger a link.
func TestControlOfOtherUsersIsAFailure(t *testing.T) {
	h := &onhost.Host{OpenStore: func(string) (store.Store, error) { return nil, errors.New("none") }}
	h.Layout = layout.Layout{Root: t.TempDir()}
	for _, dir := range []string{h.Layout.State(), h.Layout.Projects()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("elsewhere.json", h.LedgerPath()); err != nil {
		t.Fatal(err)
	}
	srv := filepath.Dir(h.Layout.Projects())
	if err := os.Chmod(srv, 0o777); err != nil {
		t.Fatal(err)
	}
	found, err := h.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{"is a symbolic link"}
	if os.Geteuid() == 0 { // directories above are only checked as root
		wanted = append(wanted, srv+" can be changed by")
	}
	for _, want := range wanted {
		there := false
		for _, f := range found.List {
			there = there || f.Check == "control" && f.Status == doctor.Failed && strings.Contains(f.Text, want) &&
				f.Cure != ""
		}
		if !there {
			t.Errorf("no failure contains %q: %v", want, found.List)
		}
	}
}
