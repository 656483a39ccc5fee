package session_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// raising are states that declare setuid or setgid bits for the file PATH or for files below it.
var raising = map[string]state{
	"file.managed":          {args: "[{name: PATH}, {contents: x}, {mode: '4755'}]"},
	"file.managed group":    {args: "[{name: PATH}, {contents: x}, {mode: '2755'}]"},
	"file.managed kept":     {args: "[{name: PATH}, {contents: x}, {mode: '4755'}, {replace: false}]"},
	"file.managed not made": {args: "[{name: PATH}, {contents: x}, {mode: '4755'}, {create: false}]"},
	"file.managed below":    {args: "[{name: PATH/g/h}, {contents: x}, {mode: '4755'}, {makedirs: true}]"},
	"file.line": {args: "[{name: PATH}, {content: y}, {mode: insert}, {location: end}, {create: true}, " +
		"{file_mode: '4755'}]"},
	"file.serialize":           {args: "[{name: PATH}, {dataset: {a: b}}, {merge_if_exists: true}, {mode: '4755'}]"},
	"file.serialize not made":  {args: "[{name: PATH}, {dataset: {a: b}}, {create: false}, {mode: '4755'}]"},
	"file.recurse":             {args: "[{name: PATH}, {source: 'salt://tree'}, {file_mode: '4755'}]"},
	"file.directory":           {args: "[{name: PATH}, {file_mode: '4755'}, {recurse: [mode]}]"},
	"file.copy":                {args: "[{name: PATH}, {source: /etc/one}, {mode: '4755'}]"},
	"file.copy forced":         {args: "[{name: PATH}, {source: /etc/one}, {mode: '4755'}, {force: true}]"},
	"file.mknod":               {args: "[{name: PATH}, {ntype: p}, {mode: '4755'}]"},
	"module.run file.set_mode": {args: "[{file.set_mode: [{path: PATH}, {mode: '4755'}]}]"},
}

// alternatives are objects that a user can put at a path.
func alternatives(uid int) map[string]func(p string) error {
	return map[string]func(p string) error{
		"nothing": func(string) error { return nil },
		"file":    func(p string) error { return os.WriteFile(p, []byte("x"), 0o644) },
		"program": func(p string) error { return errors.Join(os.WriteFile(p, []byte("x\n"), 0o644), os.Chmod(p, 0o4755)) },
		"directory": func(p string) error {
			return errors.Join(os.MkdirAll(p+"/g", 0o755), os.WriteFile(p+"/f", nil, 0o644))
		},
		"link": func(p string) error { return errors.Join(os.WriteFile(p+"g", nil, 0o644), os.Symlink(p+"g", p)) },
		"loop": func(p string) error { return os.Symlink(p, p) },
		"pipe": func(p string) error { return unix.Mkfifo(p, 0o644) },
		"user's file": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte("x\n"), 0o644), os.Lchown(p, uid, uid), os.Chmod(p, 0o4755))
		},
		"user's link": func(p string) error { return errors.Join(os.Symlink("/etc/one", p), os.Lchown(p, uid, uid)) },
	}
}

// TestSetuidBitsAreDecidedWithoutTheFile checks that states which declare setuid bits below a directory of a user, or
// of all users, fail through the fault of the release, whatever a user puts at the path. If `user` names the owner of
// the directory, the release is never at fault.
func TestSetuidBitsAreDecidedWithoutTheFile(t *testing.T) {
	uid := max(os.Geteuid(), 64001)
	named := map[string]state{}
	for name, s := range raising {
		if strings.Contains(s.args, "4755") && !strings.HasPrefix(name, "module.run") {
			named[name] = state{args: strings.TrimSuffix(s.args, "]") + ", {user: ann}]"}
		}
	}
	for kind, put := range alternatives(uid) {
		run := func(of string, states map[string]state, open, release bool, put func(name, at string) error) {
			t.Run(fmt.Sprintf("%s in a directory of %s", kind, of), func(t *testing.T) {
				t.Parallel()
				for name, r := range runObstructed(t, states, put, open) {
					own := r.Outcome == exec.Failed && !host.ByUser(r.Cause()) && r.Obstruction() == nil
					if own != release || release && !strings.Contains(r.Comment, "setuid and setgid bits are refused") {
						t.Errorf("%s: %v, by the release %v: %s", name, r.Outcome, own, r.Comment)
					}
				}
			})
		}
		if os.Geteuid() == 0 || !strings.HasPrefix(kind, "user's") {
			run("all users", raising, true, true, func(_, at string) error { return put(at) })
		}
		if os.Geteuid() == 0 {
			below := func(_, at string) error {
				return errors.Join(put(at), os.Chown(strings.TrimSuffix(at, "/f"), uid, uid))
			}
			run("ann", raising, false, true, below)
			run("ann, who is named", named, false, false, below)
		}
	}
}
