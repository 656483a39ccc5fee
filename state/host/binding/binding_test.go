package binding_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/binding"
)

// ann is a user with a working tree, and as the user ID of the root of a guest.
const ann, as = 1000, 8 * 65536

// tree makes a working tree of ann's, with a file of hers and one of root's, and returns a binding of it. It skips the
// test where that cannot be mounted.
func tree(t *testing.T) binding.Binding {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting takes root")
	}
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	b := binding.Binding{Source: filepath.Join(home, "shop"), At: filepath.Join(dir, "run", "web1", "0"), Write: true,
		UID: ann, GID: ann, As: as}
	for _, step := range []error{os.MkdirAll(b.Source, 0o755), os.WriteFile(b.Source+"/mine", []byte("x"), 0o600),
		os.WriteFile(b.Source+"/other", []byte("x"), 0o600), os.Mkdir(filepath.Join(home, "private"), 0o755),
		os.Chown(home, ann, ann), os.Chown(b.Source, ann, ann), os.Chown(b.Source+"/mine", ann, ann)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if err := b.Possible(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := binding.Remove(b.At); err != nil {
			t.Error(err)
		}
	})
	return b
}

func owners(t *testing.T, file string) [2]int {
	t.Helper()
	info, err := os.Lstat(file)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return [2]int{int(st.Uid), int(st.Gid)}
}

// is fails the test unless a binding is, or is not, in effect.
func is(t *testing.T, b binding.Binding, want bool) {
	t.Helper()
	if got, err := b.Is(); got != want || err != nil {
		t.Errorf("the binding %+v is in effect: %t, %v; want %t", b, got, err, want)
	}
}

// TestOwnersAreMapped mounts a working tree, for reading and for writing.
func TestOwnersAreMapped(t *testing.T) {
	b := tree(t)
	is(t, b, false)
	if err := b.Make(); err != nil {
		t.Fatal(err)
	}
	is(t, b, true)
	if got := owners(t, b.At+"/mine"); got != [2]int{as, as} {
		t.Errorf("the file of ann belongs to %v in the guest", got)
	}
	if got := owners(t, b.At+"/other"); got != [2]int{65534, 65534} {
		t.Errorf("the file of root belongs to %v in the guest", got)
	}
	if err := os.WriteFile(b.At+"/made", nil, 0o644); err == nil {
		t.Error("root of the machine, who has no user ID in the guest, made a file there")
	}
	only := b
	only.Write = false
	is(t, only, false)
	if err := only.Make(); err != nil {
		t.Fatal(err)
	}
	is(t, only, true)
	is(t, b, false)
	if err := os.Remove(b.At + "/mine"); err == nil {
		t.Error("a file of a read-only mount was removed")
	}
	if err := binding.Remove(b.At); err != nil {
		t.Fatal(err)
	}
	is(t, only, false)
}

// TestOwnersCannotMisdirectMounts replaces a working tree by what its owner does not own.
func TestOwnersCannotMisdirectMounts(t *testing.T) {
	for what, replace := range map[string]func(private, source string) error{
		"a link of ann's to a directory of root's": func(private, source string) error {
			return errors.Join(os.Symlink(private, source), os.Lchown(source, ann, ann))
		},
		"a directory of root's that ann has renamed": os.Rename,
	} {
		b := tree(t)
		if err := errors.Join(b.Make(), os.Rename(b.Source, b.Source+".old"),
			replace(filepath.Join(filepath.Dir(b.Source), "private"), b.Source)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Is(); err == nil {
			t.Errorf("%s is taken for the working tree", what)
		}
		if err := b.Make(); err == nil || diag.HintOf(err) == "" {
			t.Errorf("%s was mounted, or its error has no hint: %v", what, err)
		}
		if got := owners(t, b.At+"/mine"); got != [2]int{as, as} {
			t.Errorf("%s: the mount that was there has a file of %v", what, got)
		}
	}
}

// TestReplacedTreesAreNoticed makes a working tree again, as git clone does.
func TestReplacedTreesAreNoticed(t *testing.T) {
	b := tree(t)
	if err := errors.Join(b.Make(), os.Rename(b.Source, b.Source+".old"), os.Mkdir(b.Source, 0o755),
		os.Chown(b.Source, ann, ann)); err != nil {
		t.Fatal(err)
	}
	is(t, b, false)
}
