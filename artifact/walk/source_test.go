package walk_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// TestSourcesAreTrustedByDestinationOwner copies a user's file to a file of that user, or into a tree of that user.
func TestSourcesAreTrustedByDestinationOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it gives files to users")
	}
	const user, other = 64001, 64002
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for p, uid := range map[string]int{"home/own/f": user, "home/other": other, "etc/f": 0,
		"releases/1/f": 0, "tree/d/f": user} {
		full := filepath.Join(dir, p)
		err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, nil, 0o644), os.Chown(full, uid, uid))
		if err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.Chown(filepath.Join(dir, "home/own"), user, user),
		os.Chown(filepath.Join(dir, "tree"), user, user), os.Symlink("/tree", filepath.Join(dir, "releases/2")))
	if err != nil {
		t.Fatal(err)
	}
	r, err := walk.Open(walk.Options{Dir: dir, Safe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	to := func(p string, uid int) *walk.Recipient { return &walk.Recipient{Path: p, UID: uid} }
	for name, c := range map[string]struct {
		source string
		trust  walk.Trust
		fine   bool
	}{
		"default trust":        {"/home/own/f", walk.Trust{}, false},
		"root's":               {"/etc/f", walk.Trust{}, true},
		"to root":              {"/home/own/f", walk.Trust{To: to("/etc/new", 0)}, false},
		"over root's":          {"/home/own/f", walk.Trust{To: to("/etc/f", -1)}, false},
		"over another's":       {"/home/own/f", walk.Trust{To: to("/home/other", -1)}, false},
		"given to the user":    {"/home/own/f", walk.Trust{To: to("/etc/new", user)}, true},
		"given to another":     {"/home/own/f", walk.Trust{To: to("/etc/new", other)}, false},
		"in the user's home":   {"/home/own/f", walk.Trust{To: to("/home/own/a/b", 0)}, true},
		"no path":              {"/home/own/f", walk.Trust{To: to("", user)}, true},
		"of a user's tree":     {"/releases/2/d/f", walk.Trust{Tops: []string{"/releases/1", "/releases/2"}}, true},
		"beside a user's tree": {"/home/own/f", walk.Trust{Tops: []string{"/releases/2", ""}}, false},
		"a removed tree":       {"/home/own/f", walk.Trust{Tops: []string{"/releases/3"}}, false},
	} {
		var refused *walk.UnsafeError
		if err := r.Source(c.source, c.trust); c.fine && err != nil || !c.fine && !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.SourceTree(filepath.Dir(c.source), c.trust); c.fine && err != nil || !c.fine &&
			!errors.As(err, &refused) {
			t.Errorf("%s, its directory: %v", name, err)
		}
	}
}
