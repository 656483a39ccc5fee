package session_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestOwnershipChangeRemovesWritePermission checks states that give a user's file to root without a mode. They remove
// the write permissions of others, and report it as a warning and in the changes.
func TestOwnershipChangeRemovesWritePermission(t *testing.T) {
	c := newClones(t)
	dir := filepath.Join(c.dir, "taken")
	file := filepath.Join(dir, "f")
	for _, o := range []struct{ sls, at string }{
		{"file.managed: [{name: FILE}, {user: root}, {contents: new}]", file},
		{"file.managed: [{name: FILE}, {user: root}, {replace: false}]", file},
		{"file.managed: [{name: FILE}, {user: root}, {contents: old}]", file},
		{"file.directory: [{name: DIR}, {user: root}]", dir},
		{"file.directory: [{name: DIR}, {user: root}, {recurse: [user]}]", file},
	} {
		c.must(os.RemoveAll(dir))
		hosttest.Put(t, file, "old\n", 0o666)
		for name, mode := range map[string]os.FileMode{dir: 0o777, file: 0o666} {
			c.must(os.Lchown(name, nobody, nobody))
			c.must(os.Chmod(name, mode))
		}
		sls := "t: {" + strings.NewReplacer("FILE", file, "DIR", dir).Replace(o.sls) + "}"
		if o.at == file && !strings.Contains(o.sls, "recurse") {
			c.must(os.Chown(dir, 0, 0))
			c.must(os.Chmod(dir, 0o755))
		}
		r := c.apply(sls)
		info, err := os.Stat(o.at)
		c.must(err)
		if r.Outcome != exec.Succeeded || info.Mode().Perm()&0o002 != 0 || !info.IsDir() && info.Mode().Perm()&0o020 != 0 ||
			!strings.Contains(strings.Join(r.Warnings, "\n"), "keeps no permission") || !strings.Contains(changesOf(r), "mode") {
			t.Errorf("%s: %v, mode %v, warnings %q, changes %s: %s", sls, r.Outcome, info.Mode(), r.Warnings, changesOf(r),
				r.Comment)
		}
		if again := c.apply(sls); again.Outcome != exec.Succeeded || again.Changes.Len() > 0 {
			t.Errorf("%s, again: %v: %s", sls, again.Outcome, changesOf(again))
		}
	}
}

// leasedFiles is a host.Files in which another process holds a lease on the file leased.
type leasedFiles struct {
	host.Files
	leased string
}

func (l leasedFiles) Open(p string) (io.ReadCloser, error) {
	if p == l.leased {
		return nil, &walk.Leased{PID: 4242}
	}
	return l.Files.Open(p)
}

func (l leasedFiles) ReadFile(p string) ([]byte, error) {
	if p == l.leased {
		return nil, &walk.Leased{PID: 4242}
	}
	return l.Files.ReadFile(p)
}

// TestLeaseWarningHasReason checks the warning for a file that is replaced although a lease prevents root from reading
// it.
func TestLeaseWarningHasReason(t *testing.T) {
	h := statetest.NewHost(t)
	h.Put("/srv/f", "old\n")
	h.Host.Files = leasedFiles{h.Host.Files, "/srv/f"}
	given, _ := settings(t, nil)
	given.Host = h.Host
	resource := families.New(given).Modules()["file"]["managed"]()
	call := module.Call{Function: "managed", Arguments: value.NewMap("name", "/srv/f", "contents", "new"),
		At: func(string) diag.Pos { return diag.Pos{} }}
	if _, problems := module.Decode(resource, call); len(problems) > 0 {
		t.Fatal(problems)
	}
	d, err := resource.Check(t.Context(), h.Host)
	if text := strings.Join(d.Warnings, "\n"); err != nil || !strings.Contains(text, "process 4242 holds a lease on it") {
		t.Errorf("%v; warnings %q", err, d.Warnings)
	}
}

func changesOf(r *exec.Result) string {
	if r.Changes == nil {
		return ""
	}
	return strings.Join(r.Changes.Names(), " ") + " " + value.Repr(r.Changes)
}
