//go:build hosts

package hosttest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// developer is a user with a working tree.
type developer struct {
	t    *testing.T
	tree string
	env  []string
}

func (d *developer) run(name string, args ...string) (string, error) {
	if name == "corpus" {
		path, err := filepath.Abs(filepath.Join(repository, "bin", name))
		if err != nil {
			return "", err
		}
		name = path
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = d.tree, d.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *developer) ok(name string, args ...string) string {
	d.t.Helper()
	out, err := d.run(name, args...)
	if err != nil {
		d.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// commit commits the project's only state file.
func (d *developer) commit(states string) {
	d.t.Helper()
	dir := filepath.Join(d.tree, ".salt")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00.sls"), []byte(states), 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.ok("git", "add", "-A")
	d.ok("git", "commit", "-q", "-m", "change")
}
