package walk_test

import (
	"errors"
	"os"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// TestPathsForProgramsCannotBeExchanged passes paths to programs: only the users who can change the meaning of a path
// count, and neither its existence nor the owner of its target.
func TestPathsForProgramsCannotBeExchanged(t *testing.T) {
	root := homes(t)
	do(t, os.Mkdir(root+"/tmp/byann", 0o755))
	do(t, os.Lchown(root+"/tmp/byann", ann, ann))
	do(t, os.Mkdir(root+"/tmp/roots", 0o755))
	do(t, os.Symlink("/home/ann", root+"/toann"))
	do(t, os.Symlink("/vault", root+"/home/ann/tovault"))
	do(t, os.Symlink("/vault", root+"/tovault"))
	do(t, os.Symlink("/vault", root+"/tmp/sticky"))
	do(t, os.Lchown(root+"/tmp/sticky", ann, ann))
	for p, steady := range map[string]bool{
		"/": true, "/vault": true, "/vault/none": true, "/none/none": true, "/home/ann": true, "/home/ann/": true,
		"/toann": true, "/tovault/x": true,
		"/tmp": true, "/tmp/roots": true, "/vault/secret": true, "/vault/secret/below": true,
		"/home/ann/none": false, "/home/ann/own": false, "/home/ann/none/none": false, "/home/ann/tovault": false,
		"/home/ann/tovault/x": false,
		"/toann/x":            false, "/tmp/byann": false, "/tmp/none": false, "/tmp/byann/x": false,
		"/tmp/sticky": false, "/team/work": false,
	} {
		both(t, func(t *testing.T, o walk.Options) {
			o.Safe = true
			err := open(t, o, root).ByName(p)
			var unsafe *walk.UnsafeError
			if (err == nil) != steady || err != nil && !errors.As(err, &unsafe) {
				t.Errorf("%s for a program: %v, want refused: %v", p, err, !steady)
			}
			o.Safe = false
			if err := open(t, o, root).ByName(p); err != nil {
				t.Errorf("%s in a root that follows: %v", p, err)
			}
		})
	}
}
